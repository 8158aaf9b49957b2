"""What the threads that launch work did at each moment, and which other threads may have kept them waiting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals, nesting, schema
from traceview.host_copies import only_on_host
from traceview.host_marks import NO_CAUSE, host_marks
from traceview.host_segments import host_segments, rows_within
from traceview.profiler_steps import STEP_NAME

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceview.host_marks import HostMarks
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
        culprit: Event that gives each event its cause; -1 for the mark of a step, which holds nobody.
        active: Whether an event does something of note: an op, a call, or anything that has a cause.
        overhead: What the profiler and the driver recorded as overhead; they do not say on which thread it was.
        copies: Copies to devices that only the host recorded, see :func:`traceview.host_copies.only_on_host`.
    """

    API: Final = schema.KINDS.index("api")

    def __init__(self, timeline: Timeline, within: IntervalSet) -> None:
        events = timeline.events
        stretches = intervals.merge(*within)
        rows = rows_within(events, stretches)
        marks = host_marks(timeline, _with_ancestors(rows, events))
        kinds = events["kind"].to_physical().to_numpy()
        self.cause = marks.cause
        self.culprit = marks.culprit
        # That the host was in some step says nothing about what held it.
        self.culprit[_step_marks(timeline)] = -1
        self.active = np.isin(kinds, [schema.KINDS.index(kind) for kind in _ACTIVE_KINDS]) | (marks.cause != NO_CAUSE)
        self.overhead = _overhead(events, marks)
        self.copies = only_on_host(timeline).filter("to_device")
        self._kinds = kinds
        self._parent = events["parent_id"].cast(pl.Int32).fill_null(nesting.NO_PARENT).to_numpy()
        self._segments = host_segments(events, rows)
        busy = (
            events.filter(pl.col("thread").is_not_null() & pl.col("kind").is_in(["op", "api"]))
            .group_by("process", "thread")
            .len()
            .sort("len", "thread", descending=[True, False])
        )
        self._by_process: dict[int, list[int]] = {}
        self._process: dict[int, int] = {}
        self._returns = _returns(timeline)
        for process, thread, _ in busy.iter_rows():
            self._by_process.setdefault(process, []).append(thread)
        for thread, process in timeline.threads.select("thread", "process").iter_rows():
            self._process[thread] = process

    def segments(self, thread: int) -> Segments | None:
        """What a thread did; ``None`` if nothing of it is recorded where it matters."""
        return self._segments.get(thread)

    def helpers(self, thread: int) -> list[int]:
        """Other threads of the same process that call ops, busiest first."""
        same = self._by_process.get(self.process_of(thread), [])
        return [one for one in same if one != thread][:_MOST_HELPERS]

    def notable(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some events (-1: none) do something of note: an op, a call, or anything that has a cause."""
        noted: NDArray[np.bool_] = (ids >= 0) & self.active[np.maximum(ids, 0)]
        return noted

    def returns(self, thread: int) -> NDArray[np.int64]:
        """When the calls of a thread returned that left work to a device, ns, in any order."""
        return self._returns.get(thread, np.empty(0, np.int64))

    def process_of(self, thread: int) -> int:
        """The process of a thread; -1 if it is not known."""
        return self._process.get(thread, -1)

    def kind_of(self, ids: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Number of the kind of some events, as in :data:`traceview.schema.KINDS`."""
        kinds: NDArray[np.uint8] = self._kinds[ids]
        return kinds

    def outermost_op(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """For some events (-1: none) the outermost op around each; itself where no op is around it."""
        found = ids.copy()
        current = ids.copy()
        climbing = np.flatnonzero(current >= 0)
        while len(climbing):
            here = current[climbing]
            is_op = self._kinds[here] == schema.KINDS.index("op")
            found[climbing[is_op]] = here[is_op]
            current[climbing] = self._parent[here]
            climbing = climbing[current[climbing] >= 0]
        return found


def _step_marks(timeline: Timeline) -> NDArray[np.uint32]:
    """Ids of the ranges that mark the steps of the profiler."""
    names = timeline.host_names(("annotation",))
    names = names.filter(names.cast(pl.String).str.contains(STEP_NAME))
    rows = timeline.events.select("id", "kind", "name", "thread").filter(
        (pl.col("kind") == "annotation") & pl.col("thread").is_not_null() & pl.col("name").is_in(names.implode())
    )
    return rows["id"].to_numpy()


def _returns(timeline: Timeline) -> dict[int, NDArray[np.int64]]:
    """When the launches of each thread returned, without those that returned only when their work was done."""
    done = (
        timeline.device_work.select("launch_id", done_ns=pl.col("start_ns") + pl.col("dur_ns"))
        .drop_nulls("launch_id")
        .group_by("launch_id")
        .agg(pl.col("done_ns").max())
    )
    rows = (
        timeline.events.select(pl.col("thread", "start_ns", "dur_ns").gather(done["launch_id"]))
        .with_columns(done["done_ns"], end_ns=pl.col("start_ns") + pl.col("dur_ns"))
        .filter(pl.col("thread").is_not_null() & (pl.col("done_ns") > pl.col("end_ns")))
    )
    threads, ends = rows["thread"].to_numpy(), rows["end_ns"].to_numpy()
    order = np.argsort(threads, kind="stable")
    threads, ends = threads[order], ends[order]
    bounds = np.flatnonzero(np.concatenate(([True], threads[1:] != threads[:-1]))) if len(threads) else order
    return {int(threads[first]): own for first, own in zip(bounds.tolist(), np.split(ends, bounds[1:]), strict=False)}


def _with_ancestors(rows: NDArray[np.int32], events: pl.DataFrame) -> NDArray[np.int32]:
    """The rows and all that enclose them: a parent may end a little before its child, and so outside of the rows."""
    parent = events["parent_id"].cast(pl.Int32).fill_null(nesting.NO_PARENT).to_numpy()
    chosen = np.zeros(len(parent), np.bool_)
    chosen[rows] = True
    new = rows
    while len(new):
        around = parent[new]
        around = around[around >= 0]
        new = np.unique(around[~chosen[around]])
        chosen[new] = True
    return np.flatnonzero(chosen).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Overhead:
    """Overhead, disjoint and sorted.

    Attributes:
        cover: Starts and ends, ns.
        event: Event id of each.
        cause: Number of the cause of each.
    """

    cover: IntervalSet
    event: NDArray[np.int64]
    cause: NDArray[np.uint8]


def _overhead(events: pl.DataFrame, marks: HostMarks) -> Overhead:
    rows = events.filter((pl.col("kind") == "overhead") & pl.col("device").is_null() & (pl.col("dur_ns") > 0))
    starts, event = rows["start_ns"].to_numpy(), rows["id"].cast(pl.Int64).to_numpy()
    cause = marks.cause[event]
    ends = starts + rows["dur_ns"].to_numpy()
    # They hardly ever overlap; where they do, the later one has what is left.
    reach = np.maximum.accumulate(np.concatenate(([0], ends[:-1]))) if len(ends) else ends
    begin = np.maximum(starts, reach)
    real = (ends > begin) & (cause != NO_CAUSE)
    return Overhead((begin[real], ends[real]), event[real], cause[real])


def nearest_of_kind(events: pl.DataFrame, ids: pl.Series, kind: str) -> pl.Series:
    """For each event id (null: none) the innermost event of a kind that is it or encloses it; null if none does."""
    parent = events["parent_id"].cast(pl.Int32).fill_null(nesting.NO_PARENT).to_numpy()
    if not len(parent) or not len(ids):
        return pl.Series([None] * len(ids), dtype=pl.UInt32)
    around = nesting.nearest_marked(parent, (events["kind"] == kind).to_numpy())
    found = around[ids.fill_null(0).to_numpy()]
    known = (found >= 0) & ids.is_not_null().to_numpy()
    return pl.Series(np.where(known, found, 0)).cast(pl.UInt32).set(pl.Series(~known), None)
