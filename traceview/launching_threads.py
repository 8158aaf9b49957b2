"""What the threads that launch work did at each moment, and which other threads may have kept them waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals, nesting, schema
from traceview.host_marks import NO_CAUSE, host_marks
from traceview.host_segments import host_segments

if TYPE_CHECKING:
    from traceview.host_segments import Segments
    from traceview.intervals import IntervalSet
    from traceview.timeline import Timeline

_MOST_HELPERS: Final = 3
_ACTIVE_KINDS: Final = ("op", "api", "sync", "compile")


class HostTime:
    """The host of a trace, looked at only where it matters.

    Args:
        timeline: With launches linked.
        within: The stretches of time that matter, in any order.

    Attributes:
        cause: Number of the cause of each event, see :mod:`traceview.host_marks`.
        culprit: Event that gives each event its cause.
        active: Whether an event does something of note: an op, a call, or anything that has a cause.
        is_op: Whether an event is an op.
    """

    def __init__(self, timeline: Timeline, within: IntervalSet) -> None:
        events = timeline.events
        marks = host_marks(timeline)
        kinds = events["kind"].to_physical().to_numpy()
        self.cause = marks.cause
        self.culprit = marks.culprit
        self.active = np.isin(kinds, [schema.KINDS.index(kind) for kind in _ACTIVE_KINDS]) | (marks.cause != NO_CAUSE)
        self.is_op = kinds == schema.KINDS.index("op")
        self._segments = host_segments(events, intervals.merge(*within))
        busy = (
            events.filter(pl.col("thread").is_not_null() & pl.col("kind").is_in(["op", "api"]))
            .group_by("process", "thread")
            .len()
            .sort("len", "thread", descending=[True, False])
        )
        self._by_process: dict[int, list[int]] = {}
        self._process: dict[int, int] = {}
        for process, thread, _ in busy.iter_rows():
            self._by_process.setdefault(process, []).append(thread)
        for thread, process in timeline.threads.select("thread", "process").iter_rows():
            self._process[thread] = process

    def segments(self, thread: int) -> Segments | None:
        """What a thread did; ``None`` if nothing of it is recorded where it matters."""
        return self._segments.get(thread)

    def helpers(self, thread: int) -> list[int]:
        """Other threads of the same process that call ops, busiest first."""
        same = self._by_process.get(self._process.get(thread, -1), [])
        return [one for one in same if one != thread][:_MOST_HELPERS]


def nearest_of_kind(events: pl.DataFrame, ids: pl.Series, kind: str) -> pl.Series:
    """For each event id (null: none) the innermost event of a kind that is it or encloses it; null if none does."""
    parent = events["parent_id"].cast(pl.Int32).fill_null(nesting.NO_PARENT).to_numpy()
    if not len(parent) or not len(ids):
        return pl.Series([None] * len(ids), dtype=pl.UInt32)
    around = nesting.nearest_marked(parent, (events["kind"] == kind).to_numpy())
    found = around[ids.fill_null(0).to_numpy()]
    known = (found >= 0) & ids.is_not_null().to_numpy()
    return pl.Series(np.where(known, found, 0)).cast(pl.UInt32).set(pl.Series(~known), None)
