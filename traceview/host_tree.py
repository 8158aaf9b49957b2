"""The call tree of the host: which event encloses which, and which op is around each.

It is worked out a stretch of events at a time. What is still open at the end of a stretch is taken along to the next,
so that the answer is that of the whole, in the memory of a part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from traceview import nesting, schema
from traceview.building import taken

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

_STRETCH: Final = 1 << 16
"""Events at a time; more where calls are nested deeper than this."""


class _Host:
    """The host events, thread by thread and by start within each.

    Attributes:
        ids: Event of each place.
        threads: Thread of each place, ascending.
    """

    def __init__(self, events: pl.DataFrame) -> None:
        hosted = events["thread"].is_not_null().arg_true()
        threads = events["thread"].gather(hosted).to_numpy()
        order = nesting.thread_order(threads)
        self.ids: NDArray[np.int32] = taken(hosted.to_numpy().view(np.int32), order)
        few = int(threads.max(initial=0)) < 1 << 16
        self.threads: NDArray[np.unsignedinteger[Any]] = taken(threads.astype(np.uint16) if few else threads, order)
        self.starts = _At(events["start_ns"].to_numpy(), self.ids)
        self._durations = _At(events["dur_ns"].to_numpy(), self.ids)
        self.ends = _Sum(self.starts, self._durations)
        self._kinds = events["kind"].to_physical().to_numpy()

    def __len__(self) -> int:
        return len(self.ids)

    def is_kind(self, kind: str) -> NDArray[np.bool_]:
        """Which places are of a kind."""
        same: NDArray[np.bool_] = self._kinds == schema.KINDS.index(kind)
        return taken(same, self.ids)


class _At:
    """A column of the events, by place."""

    def __init__(self, column: NDArray[np.int64], ids: NDArray[np.int32]) -> None:
        self._column = column
        self._ids = ids

    def __getitem__(self, places: NDArray[np.int32]) -> NDArray[np.int64]:
        return self._column[self._ids[places]]


class _Sum:
    """Ends of events, by place."""

    def __init__(self, starts: _At, durations: _At) -> None:
        self._starts = starts
        self._durations = durations

    def __getitem__(self, places: NDArray[np.int32]) -> NDArray[np.int64]:
        return self._starts[places] + self._durations[places]


def host_tree(events: pl.DataFrame) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Parent of each event of a host thread and the innermost op around it (itself if it is one); -1 for none.

    Args:
        events: In the order of :data:`traceview.schema.EVENTS`.
    """
    host = _Host(events)
    if not len(host):
        nothing = np.full(events.height, nesting.NO_PARENT, np.int32)
        return nothing, nothing.copy()
    parent = _parents(host)
    is_op = host.is_kind("op")
    outliving = nesting.outliving(host.starts, host.ends, host.threads, parent, host.is_kind("annotation"))
    through = _ops_through(outliving, host, parent, is_op) if len(outliving) else None
    op = nesting.nearest_marked(parent, is_op)
    if through is not None:
        inside, op_of_inside = through
        op[inside] = op_of_inside
    parent_id = _as_ids(host, parent, events.height)
    del parent
    return parent_id, _as_ids(host, op, events.height)


def _as_ids(host: _Host, places: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """For each event the id of the event at its place, where there is one."""
    ids = np.full(count, nesting.NO_PARENT, np.int32)
    for begin in range(0, len(places), _STRETCH):
        part = places[begin : begin + _STRETCH]
        known = part >= 0
        ids[host.ids[begin : begin + _STRETCH][known]] = host.ids[part[known]]
    return ids


def _parents(host: _Host) -> NDArray[np.int32]:
    """The place of the parent of each place."""
    count = len(host)
    parent = np.full(count, nesting.NO_PARENT, np.int32)
    begin = 0
    while begin < count:
        # Whoever climbs out of the stretch comes to the event before it and goes on to its ancestors.
        open_ = _chain(parent, begin - 1) if begin and host.threads[begin - 1] == host.threads[begin] else []
        stop = min(count, begin + max(_STRETCH, len(open_)))
        places = np.concatenate((np.array(open_[::-1], np.int32), np.arange(begin, stop, dtype=np.int32)))
        above = nesting.parents(host.starts[places], host.ends[places], host.threads[places])[len(open_) :]
        parent[begin:stop] = np.where(above >= 0, places[above], np.int32(nesting.NO_PARENT))
        begin = stop
    return parent


def _chain(parent: NDArray[np.int32], place: int) -> list[int]:
    """A place and its ancestors, outwards."""
    chain = []
    while place >= 0:
        chain.append(place)
        place = int(parent[place])
    return chain


def _ops_through(
    outliving: NDArray[np.int32], host: _Host, parent: NDArray[np.int32], is_op: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The places that some ranges stand between and an op, and the op around each as if the ranges were not there.

    A range that outlives the event it started in (NVTX start/end, asynchronous marks) stands in the tree between that
    event and what runs in both. Which op asked for work must not depend on such ranges.

    Args:
        outliving: The ranges.
        host: The host events. Frames of Python stacks, most of all events, launch nothing themselves: their op is not
            wanted.
        parent: Parent of each place.
        is_op: Which are ops.
    """
    is_range = np.zeros(len(parent), np.bool_)
    is_range[outliving] = True
    nearest = nesting.nearest_marked(parent, is_op | is_range)
    hidden = ~host.is_kind("python")
    hidden &= ~is_range
    hidden &= nearest >= 0
    hidden[hidden] = is_range[nearest[hidden]]
    del nearest
    inside = np.flatnonzero(hidden).astype(np.int32)
    # Ops are all that is looked for, and only those of the same threads can be around.
    concerned = np.zeros(int(host.threads[-1]) + 1, np.bool_)
    concerned[host.threads[inside]] = True
    ops = np.flatnonzero(is_op).astype(np.int32)
    hidden[ops[concerned[host.threads[ops]]]] = True
    places = np.flatnonzero(hidden).astype(np.int32)
    tree = nesting.parents(host.starts[places], host.ends[places], host.threads[places])
    op = nesting.nearest_marked(tree, is_op[places])
    of_inside = op[np.searchsorted(places, inside)]
    return inside, np.where(of_inside >= 0, places[of_inside], np.int32(nesting.NO_PARENT))
