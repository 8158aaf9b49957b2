"""Which idle stretches of a device a blocking host call explains, and by how much.

A wait is only to blame as far as two things hold. The device ran dry: the host had to launch the next work after the
wait, so a gap is open. And the host would have been earlier without it: it cannot win more than it waited. Each gap is
therefore charged the smaller of its own length and of the waiting that ended in it. A long wait over a full queue costs
nothing, and neither does a short one on a slow host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals
from traceview.schema import Column, FrameSchema

if TYPE_CHECKING:
    from traceview.rules.base import Facts

WAIT_COSTS: Final = FrameSchema(
    "wait_costs",
    "Idle stretches that a wait of the launching thread explains.",
    (
        Column("device", pl.UInt32, "", "key into `devices`"),
        Column("start_ns", pl.Int64, "ns", "start of the gap"),
        Column("cost_ns", pl.Int64, "ns", "part of the gap that the wait explains"),
        Column("wait_id", pl.UInt32, "", "the last blocking call before the launch that ended the gap"),
    ),
)

CLOCK_SLACK_NS: Final = 20_000
"""The host returns from a wait a little after the device is done, and the clocks differ by a few microseconds."""

_TO_HOST: Final = "DtoH|Device-to-Host"
_BLOCKING_COPY: Final = r"^(cuda|cu|hip)Memcpy\w*$"


def wait_costs(facts: Facts) -> pl.DataFrame:
    """The :data:`WAIT_COSTS` of a trace."""
    waits = _waits(facts)
    gaps = facts.gaps.filter(pl.col("launch_id").is_not_null())
    if not waits.height or not gaps.height:
        return WAIT_COSTS.empty()
    events = facts.timeline.events
    launch = gaps["launch_id"].to_numpy()
    launched_ns = events["start_ns"].gather(launch).to_numpy()
    thread = events["thread"].gather(launch).to_numpy()
    gap_start, gap_end = gaps["start_ns"].to_numpy(), gaps["end_ns"].to_numpy()
    cost = np.zeros(len(launch), np.int64)
    wait_id = np.zeros(len(launch), np.int64)
    for (key,), own in waits.group_by("thread"):
        rows = np.flatnonzero(thread == key)
        if not len(rows):
            continue
        own_ends = own.sort("end_ns")
        starts, ends = intervals.merge(own["start_ns"].to_numpy(), own["end_ns"].to_numpy())
        waited_before = np.concatenate(([0], np.cumsum(ends - starts)))
        first = np.searchsorted(ends, gap_start[rows] - CLOCK_SLACK_NS, side="left")
        stop = np.searchsorted(ends, launched_ns[rows], side="right")
        waited = np.where(stop > first, waited_before[stop] - waited_before[np.minimum(first, stop)], 0)
        cost[rows] = np.minimum(gap_end[rows] - gap_start[rows], waited)
        last = np.searchsorted(own_ends["end_ns"].to_numpy(), launched_ns[rows], side="right") - 1
        wait_id[rows] = own_ends["id"].to_numpy()[np.maximum(last, 0)]
    found = gaps.select("device", "start_ns").with_columns(
        cost_ns=pl.Series(cost), wait_id=pl.Series(wait_id).cast(pl.UInt32)
    )
    return found.filter(pl.col("cost_ns") > 0)


def _waits(facts: Facts) -> pl.DataFrame:
    """Blocking host calls: synchronisation, and copies that end on the host."""
    events = facts.timeline.events
    to_host = facts.work.filter((pl.col("kind") == "memcpy") & pl.col("name").str.contains(_TO_HOST))
    is_copy = (
        (pl.col("kind") == "api")
        & pl.col("id").is_in(to_host["launch_id"].drop_nulls().unique().implode())
        & pl.col("name").cast(pl.String).str.contains(_BLOCKING_COPY)
    )
    return events.filter(pl.col("thread").is_not_null() & ((pl.col("kind") == "sync") | is_copy)).select(
        "id", "thread", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
