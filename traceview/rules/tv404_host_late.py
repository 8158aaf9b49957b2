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

from traceview import intervals
from traceview.findings import Confidence, CostOf, Finding, Severity
from traceview.quantities import percent
from traceview.rules.kernel_evidence import milliseconds, places, shortened
from traceview.rules.wait_costs import wait_costs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV404"
NAME: Final = "host-late"
SEVERITY: Final = Severity.INFO

SHARE_OF_SPAN: Final = 0.25
"""Profiling itself makes the host late now and then; a quarter of the time is more than that."""

SHORT_NS: Final = 100_000
"""Up to here a stretch is the pace of launching ops; beyond it the host was busy with something else."""

_MOST_NAMES: Final = 50
_MOST_LINES: Final = 3
_STEP: Final = "ProfilerStep"


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all devices."""
    gaps = facts.gaps.filter(pl.col("launch_id").is_not_null())
    if not gaps.height:
        return
    launched_ns = facts.timeline.events["start_ns"].gather(gaps["launch_id"])
    late = gaps.filter(launched_ns >= gaps["start_ns"]).join(wait_costs(facts), on=["device", "start_ns"], how="left")
    starts, ends = late["start_ns"].to_numpy(), late["end_ns"].to_numpy()
    compiling = intervals.covered(starts, ends, _intervals(facts.timeline.events.filter(pl.col("kind") == "compile")))
    idle_ns = pl.col("end_ns") - pl.col("start_ns")
    late = late.with_columns(
        cost_ns=pl.max_horizontal(idle_ns - pl.col("cost_ns").fill_null(0) - pl.Series(compiling), 0)
    )
    cost_ns = int(late["cost_ns"].sum())
    if not cost_ns or cost_ns < SHARE_OF_SPAN * facts.span_ns:
        return
    short = late.filter(pl.col("end_ns") - pl.col("start_ns") <= SHORT_NS)
    long = late.filter(pl.col("end_ns") - pl.col("start_ns") > SHORT_NS)
    yield Finding(
        code=CODE,
        severity=Severity.INFO,
        title=f"The device waited for late launches for {milliseconds(cost_ns)}, "
        f"{percent(cost_ns / facts.span_ns)} of the recorded span",
        where=places(facts, late.sort("cost_ns", descending=True)["launch_id"]),
        evidence=(
            f"{short.height:,} stretches up to 0.1 ms: {milliseconds(int(short['cost_ns'].sum()))} (launching ops)",
            f"{long.height:,} longer ones: {milliseconds(int(long['cost_ns'].sum()))} (the host was busy elsewhere)",
            *_ranges_in(facts, long),
        ),
        cost_ns=cost_ns,
        cost_of=CostOf.IDLE,
        confidence=Confidence.INFERRED,
        fix="Short stretches: compile or capture graphs. Long ones: prefetch data, move host work out of the loop.",
        false_alarm_if="the profiler slowed the host, or the window spans a pause of the program",
    )


def _ranges_in(facts: Facts, gaps: pl.DataFrame) -> tuple[str, ...]:
    """Named host ranges in which the host was while the device stood idle, longest first."""
    ranges = facts.timeline.events.filter(
        pl.col("thread").is_not_null()
        & (pl.col("kind") == "annotation")
        & ~pl.col("name").cast(pl.String).str.starts_with(_STEP)
    ).with_columns(pl.col("name").cast(pl.String))
    longest = ranges.group_by("name").agg(pl.col("dur_ns").sum()).sort("dur_ns", "name", descending=[True, False])
    idle = (gaps["start_ns"].to_numpy(), gaps["end_ns"].to_numpy())
    found = []
    for name in longest["name"].head(_MOST_NAMES):
        inside = intervals.total(*intervals.intersect(idle, _intervals(ranges.filter(pl.col("name") == name))))
        found.append((inside, name))
    return tuple(
        f"{milliseconds(inside)} of it inside {shortened(name)}"
        for inside, name in sorted(found, reverse=True)[:_MOST_LINES]
        if inside
    )


def _intervals(rows: pl.DataFrame) -> intervals.IntervalSet:
    starts = rows["start_ns"].to_numpy()
    return starts, starts + rows["dur_ns"].to_numpy()
