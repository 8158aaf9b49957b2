"""Which device work the ranges of a program launched: the projection of host ranges onto devices.

Device work belongs to a range if the call that launched it lies inside the range, on the range's thread. That is how
Nsight Systems projects NVTX ranges (report ``nvtx_gpu_proj_trace``), and it holds for ranges that overlap without
nesting, too. The projected span contains idle time and other ranges' work, so the busy time is given beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals
from traceview.schema import Column, FrameSchema

if TYPE_CHECKING:
    from numpy.typing import NDArray

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

_BLOCK: Final = 256
"""Work per block of the two-level search for first starts and last ends."""


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
    call, call_end = work["call_ns"].to_numpy(), work["call_end_ns"].to_numpy()
    # A call inside another one ends first; what counts is where a stretch of calls is over.
    reach = np.maximum.accumulate(call_end)
    start, end = ranges["start_ns"].to_numpy(), ranges["end_ns"].to_numpy()
    first = np.searchsorted(call, start, side="left")
    stop = np.maximum(np.searchsorted(reach, end, side="right"), first)
    # Calls that reach past the range while a later one does not: nested calls at its end, one or two rows.
    limit = np.searchsorted(call, end, side="right")
    own_start, own_end = work["start_ns"].to_numpy(), work["end_ns"].to_numpy()
    ragged = np.flatnonzero(limit > stop)
    ragged = ragged[[bool((call_end[stop[r] : limit[r]] <= end[r]).any()) for r in ragged]]
    some = np.flatnonzero((stop > first) | np.isin(np.arange(len(first)), ragged))
    rows = []
    sums = np.concatenate(([0], np.cumsum(own_end - own_start)))
    lows, highs = _Extremes(own_start, np.minimum), _Extremes(own_end, np.maximum)
    uneven = set(ragged.tolist())
    for at in some:
        lo, hi = int(first[at]), int(stop[at])
        if at in uneven:
            inside = np.flatnonzero(call_end[lo : limit[at]] <= end[at]) + lo
            s, e = own_start[inside], own_end[inside]
            rows.append((len(inside), int(s.min()), int(e.max()), int((e - s).sum()), intervals.total(*_merged(s, e))))
        else:
            busy = intervals.total(*_merged(own_start[lo:hi], own_end[lo:hi]))
            rows.append((hi - lo, lows.over(lo, hi), highs.over(lo, hi), int(sums[hi] - sums[lo]), busy))
    names = ("count", "start_ns", "end_ns", "sum_ns", "busy_ns")
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.Int64), orient="row")
    return frame.with_columns(id=ranges["id"].gather(pl.Series(some.astype(np.uint32))))


def _merged(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> intervals.IntervalSet:
    return intervals.merge(starts, ends)


class _Extremes:
    """Smallest or largest value of a stretch, from the extremes of blocks and the ragged ends."""

    def __init__(self, values: NDArray[np.int64], pick: np.ufunc) -> None:
        self._values, self._pick = values, pick
        self._blocks = pick.reduceat(values, np.arange(0, len(values), _BLOCK)) if len(values) else values

    def over(self, first: int, stop: int) -> int:
        """The extreme of ``values[first:stop]``, which is not empty."""
        low, high = -(-first // _BLOCK), stop // _BLOCK
        if low >= high:
            return int(self._pick.reduce(self._values[first:stop]))
        parts = [
            self._values[first : low * _BLOCK], self._blocks[low:high], self._values[high * _BLOCK : stop]
        ]  # fmt: skip
        return int(self._pick.reduce(np.concatenate(parts)))
