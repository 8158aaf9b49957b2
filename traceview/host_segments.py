"""What each host thread was doing at each moment: the innermost event that was open.

The events of a thread overlap because calls nest. Cut at every start and end they become segments that do not overlap,
each with the one event that was innermost, so that a stretch of time can be divided among them without rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from traceview import nesting

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceview.intervals import IntervalSet

NO_EVENT = -1


@dataclass(frozen=True, slots=True)
class Segments:
    """Segments of one thread, sorted and disjoint; where no event was open there is none.

    Attributes:
        starts: Start of each, ns.
        ends: End of each, ns.
        event: Id of the innermost open event.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    event: NDArray[np.int32]

    @property
    def cover(self) -> IntervalSet:
        """As an interval set."""
        return self.starts, self.ends


def rows_within(events: pl.DataFrame, within: IntervalSet) -> NDArray[np.int32]:
    """Ids of the host events with a duration that touch some sorted, disjoint stretches of time, ascending."""
    starts, durations = events["start_ns"].to_numpy(), events["dur_ns"].to_numpy()
    wanted = events["thread"].is_not_null().to_numpy() & (durations > 0)
    wanted &= _touches(starts, durations, within)
    return np.flatnonzero(wanted).astype(np.int32)


def host_segments(events: pl.DataFrame, rows: NDArray[np.int32] | None = None) -> dict[int, Segments]:
    """The segments of each host thread.

    Args:
        events: Events of a linked timeline, all of them.
        rows: Ascending ids of the host events to look at; not given: all that have a duration.

    Returns:
        Thread key to its segments.
    """
    starts, durations = events["start_ns"].to_numpy(), events["dur_ns"].to_numpy()
    if rows is None:
        rows = np.flatnonzero(events["thread"].is_not_null().to_numpy() & (durations > 0)).astype(np.int32)
    if not len(rows):
        return {}
    threads = events["thread"].gather(pl.Series(rows)).to_numpy()
    rows = rows[nesting.thread_order(threads)]
    threads = np.sort(threads)
    firsts = np.flatnonzero(np.concatenate(([True], threads[1:] != threads[:-1])))
    stops = np.append(firsts[1:], len(rows))
    parent = events["parent_id"].cast(pl.Int32).fill_null(NO_EVENT).to_numpy()
    return {
        int(threads[first]): _of_thread(rows[first:stop], starts, durations, parent)
        for first, stop in zip(firsts.tolist(), stops.tolist(), strict=True)
    }


def _touches(starts: NDArray[np.int64], durations: NDArray[np.int64], within: IntervalSet) -> NDArray[np.bool_]:
    low, high = within
    if not len(low):
        return np.zeros(len(starts), np.bool_)
    next_one = np.searchsorted(high, starts, side="right")
    reached: NDArray[np.bool_] = (next_one < len(low)) & (low[np.minimum(next_one, len(low) - 1)] < starts + durations)
    return reached


def _of_thread(
    rows: NDArray[np.int32], starts: NDArray[np.int64], durations: NDArray[np.int64], parent: NDArray[np.int32]
) -> Segments:
    begin = starts[rows]
    end = begin + durations[rows]
    after = _open_after(rows, begin, end, starts, durations, parent)
    moments = np.concatenate((end, begin))
    # At one moment ends come before starts, and outer starts before inner ones: the last word is the innermost.
    order = np.argsort(moments, kind="stable")
    moments = moments[order]
    event = np.concatenate((after, rows))[order]
    until = np.append(moments[1:], moments[-1])
    real = (until > moments) & (event != NO_EVENT)
    return Segments(moments[real], until[real], event[real])


def _open_after(
    rows: NDArray[np.int32],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    starts: NDArray[np.int64],
    durations: NDArray[np.int64],
    parent: NDArray[np.int32],
) -> NDArray[np.int32]:
    """The innermost event that is still open when each of the rows ends."""
    # Whatever is open began before: it is the latest event that began, or one of those around it.
    found = rows[np.searchsorted(begin, end, side="right") - 1].copy()
    climbing = np.flatnonzero(found >= 0)
    while len(climbing):
        here = found[climbing]
        climbing = climbing[starts[here] + durations[here] <= end[climbing]]
        found[climbing] = parent[found[climbing]]
        climbing = climbing[found[climbing] >= 0]
    return found.astype(np.int32)
