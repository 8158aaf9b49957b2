"""Code was compiled again after the warm-up.

What it finds
    Compilation (``torch.compile`` or XLA) in a recorded step after the first one.

Why it costs
    A compilation takes seconds in which the device has nothing to do. It comes back with each new shape, type or guard
    that fails; after eight times PyTorch gives up and runs the frame uncompiled.

Evidence it needs
    Compile spans, which the profiler records, and profiler steps. The number M in ``Torch-Compiled Region: N/M`` alone
    proves nothing: it also counts up in the warm-up. Without steps it is only said that something was compiled.

When it is wrong
    A first batch of another size, or the first evaluation in a training loop, may compile once by design.

Fix
    Run with ``TORCH_LOGS=recompiles`` to see the guard that failed; mark changing sizes dynamic
    (``mark_dynamic``, ``dynamic=True``) or pad to few sizes. For JAX: ``JAX_LOG_COMPILES=1`` names what is compiled,
    ``JAX_EXPLAIN_CACHE_MISSES=1`` why; keep shapes and weak types stable, or pad to few sizes.

Scope and sources
    PyTorch 2.1 and later, JAX. pytorch ``torch/_dynamo/utils.py`` (``dynamo_timed`` spans, read in source code
    2026-11), pytorch issues #136235 and #128954, jax-ml/jax issue #31319.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Confidence, CostOf, Finding, Severity, Window
from traceview.host_calls import host_union_ns
from traceview.quantities import milliseconds
from traceview.recompiles import after_warm_up, compilations, compile_spans
from traceview.rules.kernel_evidence import located, on_the_host, plural, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV301"
NAME: Final = "recompile"
SEVERITY: Final = Severity.WARNING

_WHAT: Final = ("torch-compile", "eager-fallback", "xla")
_MOST_REASONS: Final = 3

_FIX_TORCH: Final = "Run with TORCH_LOGS=recompiles, then mark changing sizes dynamic or pad them."
_FIX_JAX: Final = (
    "Run with JAX_LOG_COMPILES=1 and JAX_EXPLAIN_CACHE_MISSES=1, then keep shapes, dtypes and weak types stable or pad "
    "to few sizes."
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for the steady steps, or one that says it cannot tell."""
    steady = facts.steady
    late = (
        after_warm_up(facts.timeline, steady) if steady else compilations(facts.timeline, compile_spans(facts.timeline))
    )
    if not late.count:
        return
    tops, count = late.spans, late.count
    if not steady:
        # As many as `traceview recompiles` lists: one can have begun before the recording.
        count = max(count, facts.recompiles.filter(pl.col("what").is_in(_WHAT)).height)
    cost_ns = host_union_ns(tops)
    took = f"{milliseconds(cost_ns)} {on_the_host(tops)}"
    if steady:
        steps = late.steps
        title = f"{plural(count, 'compilation')} after the first recorded step: {took}"
        remark = f"in step{'s' if len(steps) > 1 else ''} {', '.join(map(str, steps[:8]))}"
    else:
        title = f"{plural(count, 'compilation')} in the recorded window: {took}"
        remark = "fewer than two profiler steps are recorded, so warm-up and recompilation cannot be told apart"
    longest = (
        tops.group_by("name").agg(pl.len(), pl.col("dur_ns").sum()).sort("dur_ns", "name", descending=[True, False])
    )
    yield Finding(
        code=CODE,
        severity=Severity.WARNING if steady else Severity.INFO,
        title=title,
        **located(facts, tops.sort("dur_ns", descending=True)["id"]),
        evidence=(
            remark,
            *(f"{n:,} × {name}: {milliseconds(ns)}" for name, n, ns in longest.head(3).iter_rows()),
            *_reasons(facts),
        ),
        cost_ns=cost_ns,
        cost_of=CostOf.HOST,
        window=Window.STEPS if steady else Window.TRACE,
        confidence=Confidence.MEASURED,
        fix=_fix(facts),
        false_alarm_if="a new batch size or the first evaluation is meant to compile once",
    )


def _fix(facts: Facts) -> str:
    """What to do with the framework that compiled: XLA's own profiler records JAX, Kineto PyTorch."""
    formats = {run.format for run in facts.timeline.runs}
    if formats == {"xprof"}:
        return _FIX_JAX
    if formats == {"kineto"}:
        return _FIX_TORCH
    return f"PyTorch: {_FIX_TORCH} JAX: {_FIX_JAX}"


def _reasons(facts: Facts) -> Iterator[str]:
    """What is recorded of the functions concerned, longest first."""
    found = facts.recompiles.filter(~pl.col("warmup").fill_null(value=False) & pl.col("what").is_in(_WHAT))
    for row in found.sort("dur_ns", descending=True, nulls_last=True).head(_MOST_REASONS).iter_rows(named=True):
        said = [part for part in (row["reason"], row["shapes"]) if part]
        if said:
            version = f" {row['compile_id']}" if row["compile_id"] else ""
            yield shortened(f"{row['function'] or 'a function'}{version}: {'; '.join(said)}", 200)
