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
    Short stretches: ``torch.compile(mode="reduce-overhead")``, CUDA graphs, larger batches. Long ones: prefetch data in
    workers, move preprocessing and logging out of the loop.

Scope and sources
    Any device with recorded launches. PyTorch performance tuning guide, docs.pytorch.org/tutorials, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Confidence, CostOf, Finding, Severity
from traceview.gap_culprits import culprits
from traceview.knowledge.idle_causes import Cause
from traceview.quantities import percent
from traceview.rules.kernel_evidence import located, milliseconds, plural, together

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
        fix="launch: compile or capture graphs. Other causes: prefetch data, move host work out of the loop.",
        false_alarm_if="the profiler slowed the host, or the window spans a pause of the program",
    )


def _held(facts: Facts, late: pl.DataFrame, cause: str) -> str:
    """What held the host, where that is one thing rather than each op in turn."""
    if cause == Cause.LAUNCH.value:
        return ""
    first = culprits(facts.timeline, late.filter(pl.col("cause") == cause), most=1)
    return f", most in {first[0].words} ({milliseconds(first[0].ns)})" if first else ""
