"""The device stood idle because the host launched its work too late.

What it finds
    Idle stretches that end with work whose launch was issued when the device was already idle, together a quarter or
    more of the recorded span. What a blocking call (TV401) or a compilation (TV301) explains is not counted.

Why it costs
    The device can only run what is queued. Many small ops, Python between them, data loading or logging keep the host
    from queuing ahead: faster kernels would then change nothing.

Evidence it needs
    Device work linked to its launches.

When it is wrong
    The profiler slows the host, with stacks by a factor: compare with the wall time without it. A window that spans a
    pause (validation, a server without requests) holds idle time by nature.

Fix
    That of the cause that takes most; the evidence lists them. Launching: ``torch.compile(mode="reduce-overhead")``,
    CUDA graphs, larger batches. Data loading: prefetch in workers. Host work: move preprocessing, logging and saving
    out of the loop or to another thread. Slow calls and the allocator: most are the first use of a kernel or of memory,
    so record after a warm-up; if they come back, look at the call. Copies: pinned memory, without blocking.

Scope and sources
    Any device with recorded launches. PyTorch performance tuning guide, docs.pytorch.org/tutorials, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Confidence, CostOf, Finding, Severity
from traceview.gap_culprits import LEAST_NAMED, MOST_OF_IT, culprits
from traceview.knowledge.idle_causes import Cause
from traceview.quantities import milliseconds, percent
from traceview.rules.kernel_evidence import located, plural, together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV404"
NAME: Final = "host-late"
SEVERITY: Final = Severity.INFO

SHARE_OF_SPAN: Final = 0.25
"""Profiling itself makes the host late now and then; a quarter of the time is more than that."""

LATE: Final = (
    Cause.LAUNCH,
    Cause.HOST_WORK,
    Cause.SLOW_CALL,
    Cause.DATA_LOADING,
    Cause.GARBAGE_COLLECTION,
    Cause.ALLOCATOR,
    Cause.COPY_TO_DEVICE,
)
"""The host had something else to do than to launch; waits and compilations have rules of their own."""


_WARM_UP: Final = "Record after a warm-up: a first use of kernels or memory is slow only once."
_FIXES: Final = {
    Cause.LAUNCH.value: ("Launch less often: compile, capture CUDA graphs, or use larger batches.",),
    Cause.HOST_WORK.value: ("Move host work (preprocessing, logging, saving) out of the loop or to another thread.",),
    Cause.SLOW_CALL.value: (_WARM_UP, "If the slow call comes back, look at what it waits for."),
    Cause.DATA_LOADING.value: ("Load data ahead of the step: more workers, prefetching, less work per sample.",),
    Cause.GARBAGE_COLLECTION.value: ("Collect garbage between steps (gc.freeze, gc.disable and an own gc.collect).",),
    Cause.ALLOCATOR.value: (_WARM_UP, "If memory is taken in every step, keep it: a caching allocator, fixed sizes."),
    Cause.COPY_TO_DEVICE.value: ("Copy from pinned memory without blocking, and before the data is needed.",),
}
_ALSO: Final = 0.5
"""A second cause of at least this part of the first is worth its own advice."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all devices."""
    late = facts.idle.filter(pl.col("cause").cast(pl.String).is_in([cause.value for cause in LATE])).with_columns(
        cost_ns=pl.col("end_ns") - pl.col("start_ns")
    )
    cost_ns = int(late["cost_ns"].sum())
    if not cost_ns or cost_ns < SHARE_OF_SPAN * facts.span_ns:
        return
    by_cause = (
        late.group_by("cause")
        .agg(pl.col("cost_ns").sum(), pl.col("interval").n_unique())
        .sort("cost_ns", descending=True)
    )
    longest = late.sort("cost_ns", descending=True)["culprit_id"].drop_nulls().unique(maintain_order=True)
    yield Finding(
        code=CODE,
        severity=Severity.INFO,
        title=f"The device waited for late launches for {milliseconds(cost_ns)}{together(facts)}, "
        f"{percent(cost_ns / facts.span_ns)} of the recorded span",
        **located(facts, longest),
        evidence=tuple(
            f"{cause}: {milliseconds(ns)} in {plural(count, 'stretch', 'stretches')}{_held(facts, late, cause)}"
            for cause, ns, count in by_cause.iter_rows()
        ),
        cost_ns=cost_ns,
        cost_of=CostOf.IDLE,
        confidence=Confidence.INFERRED,
        fix=_fix(by_cause),
        false_alarm_if="the profiler slowed the host, or the window spans a pause of the program",
    )


def _fix(by_cause: pl.DataFrame) -> str:
    """What helps against the cause that takes most, and against the next one where that is much of it, too."""
    named = list(zip(by_cause["cause"].cast(pl.String), by_cause["cost_ns"], strict=True))
    most = named[0][1]
    return " ".join(dict.fromkeys(text for cause, ns in named[:2] if ns >= _ALSO * most for text in _FIXES[cause]))


def _held(facts: Facts, late: pl.DataFrame, cause: str) -> str:
    """What held the host, where that is one thing rather than each op in turn."""
    if cause == Cause.LAUNCH.value:
        return ""
    own = late.filter(pl.col("cause") == cause)
    first = culprits(facts.timeline, own, most=1)
    share = first[0].ns / int(own["cost_ns"].sum()) if first else 0.0
    if share < LEAST_NAMED:
        return ""
    which = "most in" if share >= MOST_OF_IT else "of it in"
    return f", {which} {first[0].words} ({milliseconds(first[0].ns)})"
