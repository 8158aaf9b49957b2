"""Which device work the ranges of a program launched: the projection of host ranges onto devices.

Device work belongs to a range if the call that launched it lies inside the range, on the range's thread. That is how
Nsight Systems projects NVTX ranges (report ``nvtx_gpu_proj_trace``), and it holds for ranges that overlap without
nesting, too. The projected span contains idle time and other ranges' work, so the busy time is given beside it.

For scripts and notebooks: ``docs/nsys.md`` shows how. No command asks for it, as commands show stages, of which each
piece of work belongs to one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals
from traceview.schema import Column, FrameSchema

if TYPE_CHECKING:
    from traceview.timeline import Timeline

PROJECTION: Final = FrameSchema(
    "projection",
    "Device work launched inside host ranges, one row per range and device; ranges without any have no row.",
    (
        Column("id", pl.UInt32, "", "event id of the range"),
        Column("device", pl.UInt32, "", "key into `devices`"),
        Column("count", pl.Int64, "", "pieces of device work"),
        Column("start_ns", pl.Int64, "ns", "start of the first"),
        Column("end_ns", pl.Int64, "ns", "end of the last"),
        Column("sum_ns", pl.Int64, "ns", "sum of their durations"),
        Column("busy_ns", pl.Int64, "ns", "union of their intervals"),
    ),
)

_PAIRS: Final = 1_000_000
"""Pairs of a range and work that are looked at in one go."""


def project(timeline: Timeline, ranges: pl.Series | None = None) -> pl.DataFrame:
    """The :data:`PROJECTION` of a linked timeline.

    Args:
        timeline: With launches linked.
        ranges: Event ids of host rows; all annotations on threads if not given. Ranges that started on one thread and
            ended on another have no thread and project nothing.
    """
    events = timeline.events
    chosen = events.filter(pl.col("thread").is_not_null())
    chosen = chosen.filter(
        pl.col("kind") == "annotation" if ranges is None else pl.col("id").is_in(ranges.implode())
    ).select("id", "thread", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    work = timeline.device_work.filter(pl.col("launch_id").is_not_null()).select(
        "device", "launch_id", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    launch = work["launch_id"]
    placed = work.with_columns(
        thread=events["thread"].gather(launch),
        call_ns=events["start_ns"].gather(launch),
        call_end_ns=events["start_ns"].gather(launch) + events["dur_ns"].gather(launch),
    )
    by_thread = {key: rows for (key,), rows in chosen.partition_by("thread", as_dict=True).items()}
    parts = []
    for (thread, device), own in placed.partition_by("thread", "device", as_dict=True).items():
        if thread in by_thread:
            parts.append(_projected(by_thread[thread], own).with_columns(device=pl.lit(device, pl.UInt32)))
    if not parts:
        return PROJECTION.empty()
    return pl.concat(parts).select(list(PROJECTION.dtypes)).sort("id", "device")


def _projected(ranges: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """Ranges of one thread, and work on one device that this thread launched."""
    work = work.sort("call_ns", "call_end_ns")
    calls = work["call_ns"].to_numpy()
    first = np.searchsorted(calls, ranges["start_ns"].to_numpy(), side="left")
    stop = np.maximum(np.searchsorted(calls, ranges["end_ns"].to_numpy(), side="right"), first)
    ids, parts = ranges["id"].to_numpy(), [PROJECTION.empty().drop("device")]
    # Pairs of a range and work in it, so many at a time that they fit in memory whatever the ranges are.
    if not (stop > first).any():
        return parts[0]
    bounds = np.searchsorted(np.cumsum(stop - first), np.arange(0, int((stop - first).sum()), _PAIRS), side="left")
    for low, high in zip(bounds, [*bounds[1:], len(ids)], strict=True):
        counts = (stop - first)[low:high]
        owner = np.repeat(np.arange(low, high), counts)
        member = (
            np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first[low:high], counts)
        )
        pairs = work[pl.Series(member)].with_columns(
            id=pl.Series(ids[owner]), limit_ns=ranges["end_ns"].gather(pl.Series(owner))
        )
        pairs = pairs.filter(pl.col("call_end_ns") <= pl.col("limit_ns"))
        parts.append(_summed(pairs))
    return pl.concat(parts)


def _summed(pairs: pl.DataFrame) -> pl.DataFrame:
    """One row per range of some pairs."""
    if not pairs.height:
        return PROJECTION.empty().drop("device")
    group = pairs["id"].rank("dense").cast(pl.Int64) - 1
    busy = intervals.grouped_total(group.to_numpy(), pairs["start_ns"].to_numpy(), pairs["end_ns"].to_numpy())
    return (
        pairs.group_by("id")
        .agg(
            count=pl.len().cast(pl.Int64),
            start_ns=pl.col("start_ns").min(),
            end_ns=pl.col("end_ns").max(),
            sum_ns=(pl.col("end_ns") - pl.col("start_ns")).sum(),
        )
        .sort("id")
        .with_columns(busy_ns=pl.Series(busy, dtype=pl.Int64))
    )
