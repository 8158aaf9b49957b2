"""The work that ends idle time: what each device ran, and how each piece of it was launched."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals, schema
from traceview.host_marks import host_marks
from traceview.launches import graph_replays
from traceview.profiler_steps import profiler_steps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceview.intervals import IntervalSet
    from traceview.timeline import Timeline

NEVER_NS: Final = 1 << 62
"""A moment after every event: when work that is not recorded was launched."""

_DEVICE_SYNC: Final = r"^(cuda|cu|hip)(Device|Ctx)Synchronize"
_NOTHING: Final[IntervalSet] = (np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True, slots=True)
class Coming:
    """The work that comes next after some moments; one entry per moment.

    Attributes:
        next_id: Its event id; -1 if no more work comes.
        launch_id: The host call that launched it; -1 if it is not recorded.
        launched_ns: When that call began, ns; :data:`NEVER_NS` if it is not recorded.
        returned_ns: When it returned, ns.
        thread: Its thread, or the one that launched last; -1 if none is known.
        orphan: The launch is missing although that of earlier work is recorded. Work before the first recorded launch
            was launched before the recording began, so it counts as launched at the beginning of time.
        collective: It communicates with other devices.
    """

    next_id: NDArray[np.int64]
    launch_id: NDArray[np.int64]
    launched_ns: NDArray[np.int64]
    returned_ns: NDArray[np.int64]
    thread: NDArray[np.int64]
    orphan: NDArray[np.bool_]
    collective: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Work:
    """Everything one device did, sorted by start.

    Attributes:
        device: Key into ``Timeline.devices``; ``None``: the host's ops, of a trace without device work.
        ids: Event ids.
        starts: Starts, ns.
        ends: Ends, ns.
        launch_id: Host calls that launched it, -1 if not recorded.
        launched_ns: When these calls began, ns.
        returned_ns: When they returned, ns.
        thread: Their threads; for work without a launch that of the launch before.
        orphan: Its launch is missing although that of earlier work is recorded.
        collective: Communicates with other devices.
        silent: Stretches in which a replayed graph may have run unrecorded.
        waiting: Stretches in which the device waits for its own asynchronous copies or collectives.
        programs: Runs of compiled programs, which the host does not interrupt.
        edges: Moments that bound the time looked at besides the work itself, as intervals of one nanosecond.
    """

    device: int | None
    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    launch_id: NDArray[np.int64]
    launched_ns: NDArray[np.int64]
    returned_ns: NDArray[np.int64]
    thread: NDArray[np.int64]
    orphan: NDArray[np.bool_]
    collective: NDArray[np.bool_]
    silent: IntervalSet = _NOTHING
    waiting: IntervalSet = _NOTHING
    programs: IntervalSet = _NOTHING
    edges: IntervalSet = _NOTHING

    @property
    def window(self) -> IntervalSet:
        """From the first to the last of its work, waits and edges, as one interval; none if there is nothing."""
        starts = np.concatenate((self.starts, self.waiting[0], self.edges[0]))
        ends = np.concatenate((self.ends, self.waiting[1], self.edges[1]))
        if not len(starts):
            return _NOTHING
        return starts.min(keepdims=True), ends.max(keepdims=True)

    def after(self, moments: NDArray[np.int64]) -> Coming:
        """The first work that starts at or after each moment."""
        at = np.searchsorted(self.starts, moments, side="left")
        there = at < len(self.starts)
        at = np.minimum(at, len(self.starts) - 1)
        launch = np.where(there, self.launch_id[at], -1)
        return Coming(
            next_id=np.where(there, self.ids[at], -1),
            launch_id=launch,
            launched_ns=np.where(there, self.launched_ns[at], NEVER_NS),
            returned_ns=np.where(there, self.returned_ns[at], NEVER_NS),
            thread=self.thread[at],
            orphan=there & self.orphan[at],
            collective=there & self.collective[at],
        )


def device_works(timeline: Timeline) -> tuple[Work, ...]:
    """The work of each device that did any, in order of its key."""
    events = timeline.events
    rows = timeline.device_work.select("id", "device", "kind", "start_ns", "dur_ns", "launch_id")
    found = []
    silent = _silent_replays(timeline)
    others = {
        kind: events.filter(pl.col("device").is_not_null() & (pl.col("kind") == kind))
        .select("device", "start_ns", "dur_ns")
        .partition_by("device", as_dict=True)
        for kind in ("async_wait", "xla_module")
    }
    main_threads = _MainThreads(timeline)
    owners = dict(timeline.threads.select("thread", "process").iter_rows())
    # Arrays of all devices at once: a trace can have thousands of them.
    rows = rows.sort("device", maintain_order=True)
    launch = rows["launch_id"]
    called = events.select(pl.col("start_ns", "dur_ns", "thread").gather(launch))
    ids, starts = rows["id"].cast(pl.Int64).to_numpy(), rows["start_ns"].to_numpy()
    ends = starts + rows["dur_ns"].to_numpy()
    launch_id = launch.cast(pl.Int64).fill_null(-1).to_numpy()
    begun_ns, took_ns = called["start_ns"].fill_null(NEVER_NS).to_numpy(), called["dur_ns"].fill_null(0).to_numpy()
    threads = (
        pl.DataFrame([rows["device"], called["thread"].cast(pl.Int64)])
        .select(pl.col("thread").forward_fill().backward_fill().over("device").fill_null(-1))["thread"]
        .to_numpy()
    )
    collective = (rows["kind"] == "collective").to_numpy()
    devices = rows["device"].to_numpy()
    changes = np.flatnonzero(np.concatenate(([True], devices[1:] != devices[:-1], [True])))
    bounds: list[int] = changes.tolist() if len(devices) else []
    for first, stop in pairwise(bounds):
        device, own = int(devices[first]), slice(first, stop)
        missing = launch_id[own] < 0
        linked = not missing.all()
        leading = missing & (np.arange(len(missing)) < int(np.argmin(missing))) & linked
        begun = np.where(leading, -NEVER_NS, begun_ns[own])
        thread = threads[own] if linked else np.full(len(missing), main_threads.of(device), np.int64)
        process = _process_of(owners, thread)
        found.append(
            Work(
                device=device,
                ids=ids[own],
                starts=starts[own],
                ends=ends[own],
                launch_id=launch_id[own],
                launched_ns=begun,
                returned_ns=begun + took_ns[own],
                thread=thread,
                orphan=missing & ~leading & linked,
                collective=collective[own],
                silent=_unseen(silent.get(process, ()), starts[own], begun),
                waiting=_union(others["async_wait"].get((device,))),
                programs=_union(others["xla_module"].get((device,))),
            )
        )
    return tuple(found)


def host_works(timeline: Timeline) -> tuple[Work, ...]:
    """The ops of the host as work, for a trace without device work; what the host loads or compiles is none."""
    events = timeline.events
    is_op = (events["kind"] == "op").to_numpy() & events["thread"].is_not_null().to_numpy()
    if not is_op.any():
        return ()
    marks = host_marks(timeline)
    parent_op = events["op_id"].gather(events["parent_id"])
    rows = np.flatnonzero(is_op & parent_op.is_null().to_numpy() & ~marks.whole)
    threads = events["thread"].cast(pl.Int64).fill_null(-1).to_numpy()
    every_start = events["start_ns"].to_numpy()
    every_end = every_start + events["dur_ns"].to_numpy()
    parts = []
    for thread in np.unique(threads[rows]).tolist():
        own = rows[threads[rows] == thread]
        aside = np.flatnonzero(marks.whole & (threads == thread))
        cover = intervals.merge(every_start[aside], every_end[aside])
        which, label, low, high = intervals.tiled(every_start[own], every_end[own], cover)
        parts.append((own[which[label < 0]], low[label < 0], high[label < 0]))
    if not parts:
        return ()
    ids, starts, ends = (np.concatenate([part[at] for part in parts]) for at in range(3))
    order = np.argsort(starts, kind="stable")
    ids, starts, ends = ids[order].astype(np.int64), starts[order], ends[order]
    return (
        Work(
            device=None,
            ids=ids,
            starts=starts,
            ends=ends,
            launch_id=ids,
            launched_ns=starts,
            returned_ns=starts,
            thread=threads[ids],
            orphan=np.zeros(len(ids), np.bool_),
            collective=np.zeros(len(ids), np.bool_),
            edges=_step_edges(timeline),
        ),
    )


def _step_edges(timeline: Timeline) -> IntervalSet:
    """The begin of the first and the end of the last profiler step, one nanosecond each."""
    marks = profiler_steps(timeline)
    if not marks.height:
        return _NOTHING
    starts, ends = marks["start_ns"].to_numpy(), marks["end_ns"].to_numpy()
    low = np.array([starts.min(), ends.max() - 1], np.int64)
    return low, low + 1


def _union(rows: pl.DataFrame | None) -> IntervalSet:
    if rows is None:
        return _NOTHING
    starts = rows["start_ns"].to_numpy()
    return intervals.merge(starts, starts + rows["dur_ns"].to_numpy())


class _MainThreads:
    """Of each run the thread on which most is recorded, looked up when it is asked for."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._run_of_device = dict(timeline.devices.select("device", "run").iter_rows())
        self._of_run: dict[int, int] = {}

    def of(self, device: int) -> int:
        """The main thread of the run of a device; -1 if there is none."""
        run = self._run_of_device.get(device)
        if run is None:
            return -1
        if run not in self._of_run:
            self._of_run[run] = self._find(run)
        return self._of_run[run]

    def _find(self, run: int) -> int:
        processes = self._timeline.processes.filter(pl.col("run") == run)["process"]
        counts = (
            self._timeline.events.filter(
                pl.col("thread").is_not_null()
                & pl.col("process").is_in(processes.implode())
                & pl.col("kind").is_in(list(schema.HOST_KINDS))
            )
            .group_by("thread")
            .len()
            .sort("len", "thread", descending=[True, False])
        )
        return int(counts["thread"][0]) if counts.height else -1


def _process_of(owners: dict[int, int], threads: NDArray[np.int64]) -> int:
    """The process that launches the work of a device; -1 if it is not known."""
    known = threads[threads >= 0]
    return owners.get(int(known[0]), -1) if len(known) else -1


def _silent_replays(timeline: Timeline) -> dict[int, NDArray[np.int64]]:
    """Of each process: until when it is unknown what ran, as rows of (start, known again) of its silent replays."""
    events = timeline.events
    silent = graph_replays(events).silent
    if not len(silent):
        return {}
    calls = events.select("process", "start_ns").with_row_index("id").filter(pl.col("id").is_in(silent.implode()))
    names = events.filter(pl.col("kind") == "sync")["name"].unique().cast(pl.String)
    waits = names.filter(names.str.contains(_DEVICE_SYNC)).cast(pl.Categorical)
    drained = events.filter(
        (pl.col("kind") == "sync") & pl.col("thread").is_not_null() & pl.col("name").is_in(waits.implode())
    ).select("process", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    found = {}
    for (process,), own in calls.group_by("process", maintain_order=True):
        if process is None:
            continue
        ends = drained.filter(pl.col("process") == process).sort("start_ns")
        starts = own["start_ns"].to_numpy()
        at = np.searchsorted(ends["start_ns"].to_numpy(), starts, side="left")
        until = np.append(ends["end_ns"].to_numpy(), NEVER_NS)[at]
        found[int(process)] = np.stack((starts, until), axis=1)
    return found


def _unseen(
    replays: NDArray[np.int64] | tuple[()], starts: NDArray[np.int64], launched: NDArray[np.int64]
) -> IntervalSet:
    """From each silent replay to the first recorded work that was launched after it, or to a wait for the device."""
    if not len(replays):
        return _NOTHING
    replays = np.asarray(replays)
    order = np.argsort(launched, kind="stable")
    starts = starts[order]
    # The earliest start among all work launched from here on.
    earliest = np.minimum.accumulate(np.append(starts, NEVER_NS)[::-1])[::-1]
    at = np.searchsorted(launched[order], replays[:, 0], side="right")
    return intervals.merge(replays[:, 0], np.minimum(earliest[at], replays[:, 1]))
