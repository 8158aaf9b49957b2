"""Kernels were benchmarked against each other inside the recorded steps.

What it finds
    Autotuning spans of Triton or Inductor, and single convolution calls under which eight or more different
    convolution kernels ran (``cudnn.benchmark``, MIOpen's find mode), after the first recorded step.

Why it costs
    Every candidate is run to choose one. It is worth it once per shape; with changing shapes it never ends.

Evidence it needs
    Kernels with the op that launched them, or autotuning spans; profiler steps to leave the warm-up out. Without steps
    it is only said that tuning took place.

When it is wrong
    A shape that is new in this window and then stays.

Fix
    Pad or bucket the shapes, or set ``torch.backends.cudnn.benchmark = False`` when they change; keep the
    autotune cache.

Scope and sources
    PyTorch with cuDNN, MIOpen or Triton. pytorch ``torch/_inductor/runtime/triton_heuristics.py`` (span names,
    torch 2.13), read in source code 2026-11; what ``cudnn.benchmark`` does is general knowledge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Confidence, CostOf, Finding, Severity, Window
from traceview.host_calls import host_union_ns, named
from traceview.quantities import milliseconds
from traceview.rules.device_work import union_ns
from traceview.rules.kernel_evidence import located, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV302"
NAME: Final = "autotune"
SEVERITY: Final = Severity.WARNING

FEWEST_CANDIDATES: Final = 8
"""One convolution call, with its layout conversions left out, runs at most a handful of kernels, even backward."""

_SPANS: Final = r"(?i)autotun\w*\.|benchmark_all_configs|autotune"
_ASIDE: Final = ("layout", "offsets", "helper", "bias")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all tuning."""
    steady = facts.steady
    spans = named(facts.timeline, ("compile",), _SPANS)
    kernels = facts.work.filter(
        (pl.col("family") == "conv") & ~pl.col("implementation").is_in(_ASIDE) & pl.col("op_id").is_not_null()
    ).filter(pl.col("name").n_unique().over("op_id") >= FEWEST_CANDIDATES)
    if steady:
        spans, kernels = steady.within(spans), steady.within(kernels)
    calls = kernels.select("op_id", "op").unique()
    if not spans.height and not calls.height:
        return
    cost_ns = host_union_ns(spans) + union_ns(kernels)
    evidence = []
    if not steady:
        evidence.append("fewer than two profiler steps are recorded, so this may be the warm-up")
    if spans.height:
        evidence.append(f"{spans.height:,} × {spans['name'][0]}: {milliseconds(host_union_ns(spans))} on the host")
    if calls.height:
        tried = kernels.group_by("op_id").agg(pl.col("name").n_unique())["name"]
        evidence.append(
            f"{calls.height:,} × {calls['op'][0]} ran up to {max(tried.to_list())} different convolution kernels: "
            f"{milliseconds(union_ns(kernels))} of device time"
        )
    yield Finding(
        code=CODE,
        severity=Severity.WARNING if steady else Severity.INFO,
        title=f"{plural(spans.height + calls.height, 'call')} tried kernels against each other"
        f"{' after the first recorded step' if steady else ''}: {milliseconds(cost_ns)}",
        **located(facts, pl.concat([spans["id"], kernels["id"]])),
        evidence=tuple(evidence),
        cost_ns=cost_ns,
        cost_of=CostOf.WALL,
        window=Window.STEPS if steady else Window.TRACE,
        confidence=Confidence.MEASURED,
        fix="Pad or bucket shapes, or switch benchmarking off when shapes change.",
        false_alarm_if="the shapes are new in this window and then stay",
    )
