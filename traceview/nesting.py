"""Which host event directly encloses which: the call tree of each thread, vectorised.

Events of one thread nest because calls do. A range that outlives the one it started in (an asynchronous
annotation) is not its child, but nothing is dropped for that: it simply hangs one level higher.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_PARENT: Final = -1

OVERHANG_NS: Final = 1_000
"""A child may end this much after its parent. Whole-microsecond traces round start and duration apart, and
driver calls are stamped by another clock than ops, so a true child can seem to outlive its parent a little."""


def parents(
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    threads: NDArray[np.unsignedinteger[Any]],
    *,
    overhang_ns: int = OVERHANG_NS,
) -> NDArray[np.int32]:
    """Index of the directly enclosing event of each event, or :data:`NO_PARENT`.

    Args:
        starts: Start of each event, ns, ascending; at equal starts the outer event comes first.
        ends: End of each event, ns.
        threads: Thread key of each event.
        overhang_ns: How much later than its parent a child may end.
    """
    order: NDArray[np.int32] | None = None
    if (threads[1:] < threads[:-1]).any():
        order = thread_order(threads)
        starts, ends, threads = starts[order], ends[order], threads[order]
    parent = _parents_by_thread(starts, ends, threads, overhang_ns)
    if order is None:
        return parent
    result = np.full(len(threads), NO_PARENT, np.int32)
    has_parent = parent >= 0
    result[order[has_parent]] = order[parent[has_parent]]
    return result


def _parents_by_thread(
    starts: NDArray[np.int64], ends: NDArray[np.int64], threads: NDArray[np.unsignedinteger[Any]], overhang_ns: int
) -> NDArray[np.int32]:
    """The same for events thread by thread.

    Only an event within which the next one starts can enclose anything. Where these are few, the tree is built of them
    first, and every other event then climbs in it.
    """
    count = len(threads)
    holds = np.zeros(count, np.bool_)
    holds[:-1] = (starts[1:] < ends[:-1]) & (threads[1:] == threads[:-1])
    holders = np.flatnonzero(holds).astype(np.int32)
    if 2 * len(holders) > count:
        return _tree(starts, ends, threads, overhang_ns)  # recorded stacks: copies of most events would be no help
    parent = np.full(count, NO_PARENT, np.int32)
    if not len(holders):
        return parent
    above = _tree(starts[holders], ends[holders], threads[holders], overhang_ns)
    parent[holders] = np.where(above >= 0, holders[above], NO_PARENT)
    rest = np.flatnonzero(~holds).astype(np.int32)
    before = np.cumsum(holds, dtype=np.int32)[rest] - 1
    guess = np.where(before >= 0, holders[before], NO_PARENT)
    guess[(guess >= 0) & (threads[guess] != threads[rest])] = NO_PARENT
    for _ in range(_CLIMBS):
        known = guess >= 0
        rest, guess = rest[known], guess[known]
        fits = (ends[guess] > starts[rest]) & (ends[guess] + overhang_ns >= ends[rest])
        parent[rest[fits]] = guess[fits]
        rest, guess = rest[~fits], parent[guess[~fits]]
    if len(rest):
        # Behind the end of a deep stack step by step is slow; `_tree` leaps.
        both = np.sort(np.concatenate([holders, rest]))
        above = _tree(starts[both], ends[both], threads[both], overhang_ns)
        found = above[np.searchsorted(both, rest)]
        parent[rest] = np.where(found >= 0, both[found], NO_PARENT)
    return parent


_CLIMBS: Final = 8
"""Most events lie a few levels below what ended before them."""


def _tree(
    starts: NDArray[np.int64], ends: NDArray[np.int64], threads: NDArray[np.unsignedinteger[Any]], overhang_ns: int
) -> NDArray[np.int32]:
    """Parents among events thread by thread, all of which may enclose others."""
    count = len(threads)
    parent = np.arange(-1, count - 1, dtype=np.int32)
    parent[np.flatnonzero(np.diff(threads)) + 1] = NO_PARENT
    # Start from the previous event and climb. Whoever does not enclose `p` has ended before `p` does, so it cannot
    # enclose an event that `p` does not enclose either: jumping to p's own current guess skips nobody, and since
    # guesses improve together a run of n siblings takes log2(n) rounds.
    settled = np.ones(count, np.bool_)
    settled[1:] = (ends[:-1] > starts[1:]) & (ends[:-1] + overhang_ns >= ends[1:])
    open_rows = np.flatnonzero(~settled & (parent >= 0)).astype(np.int32)
    parent[open_rows] = parent[open_rows - 1]
    open_rows = open_rows[parent[open_rows] >= 0]
    while len(open_rows):
        guess = parent[open_rows]
        fits = (ends[guess] > starts[open_rows]) & (ends[guess] + overhang_ns >= ends[open_rows])
        open_rows, guess = open_rows[~fits], guess[~fits]
        parent[open_rows] = parent[guess]
        open_rows = open_rows[parent[open_rows] >= 0]
    return parent


class ByPlace(Protocol):
    """A column that gives its values at some places."""

    def __getitem__(self, places: NDArray[np.int32], /) -> NDArray[np.int64]:
        """The values."""
        ...


def outliving(
    starts: ByPlace,
    ends: ByPlace,
    threads: NDArray[np.unsignedinteger[Any]],
    parent: NDArray[np.int32],
    asked: NDArray[np.bool_],
) -> NDArray[np.int32]:
    """Which of the asked events end after the event that they started in: ranges that are open across calls.

    Args:
        starts: Start of each event, ns, ascending within a thread.
        ends: End of each event, ns.
        threads: Thread key of each event, ascending.
        parent: As :func:`parents` returns it for these events.
        asked: Which events to look at; false for the others.

    Returns:
        Their indices, ascending.
    """
    # Their direct predecessor, or its ancestors, were still open at the start and are not the parent.
    rows = np.flatnonzero(asked).astype(np.int32)
    rows = rows[rows > 0]
    guess = rows - 1
    open_ = (threads[rows] == threads[guess]) & (parent[rows] != guess)
    rows, guess = rows[open_], guess[open_]
    found = [np.empty(0, np.int32)]
    while len(rows):
        crossed = (ends[guess] > starts[rows]) & (ends[guess] + OVERHANG_NS < ends[rows])
        found.append(rows[crossed])
        up = parent[guess]
        going = ~crossed & (up != parent[rows]) & (up >= 0)
        rows, guess = rows[going], up[going]
    return np.sort(np.concatenate(found))


def thread_order(threads: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.int32]:
    """The order that puts events thread by thread and keeps their order within each.

    Row numbers have 32 bits: large traces are held by memory before they are held by time.
    """
    highest = int(threads.max(initial=0))
    if highest >= 1 << 16:
        return np.argsort(threads, kind="stable").astype(np.int32)
    # A stretch at a time, each sorted by a radix sort and its threads put behind what came before of them.
    counts = np.zeros(highest + 1, np.int64)
    for begin in range(0, len(threads), _STRETCH):
        counts += np.bincount(threads[begin : begin + _STRETCH], minlength=highest + 1)
    filled = np.cumsum(counts) - counts
    order = np.empty(len(threads), np.int32)
    for begin in range(0, len(threads), _STRETCH):
        part = threads[begin : begin + _STRETCH].astype(np.uint16)
        inner = np.argsort(part, kind="stable")
        part = part[inner]
        here = np.bincount(part, minlength=highest + 1)
        before = np.cumsum(here) - here
        order[(filled - before)[part] + np.arange(len(part))] = inner + begin
        filled += here
    return order


_STRETCH: Final = 1 << 16


def nearest_marked(parent: NDArray[np.int32], marked: NDArray[np.bool_]) -> NDArray[np.int32]:
    """For each event the nearest of itself and its ancestors that is marked, or :data:`NO_PARENT`.

    Args:
        parent: As :func:`parents` returns it.
        marked: Which events count.
    """
    if not marked.any():
        return np.full(len(parent), NO_PARENT, np.int32)
    target = parent.astype(np.int32)
    # Parents come before their children, so all before a stretch is settled when the stretch is looked at.
    ordered = True
    for begin in range(0, len(target), _STRETCH):
        part = parent[begin : begin + _STRETCH]
        ordered &= bool((part < np.arange(begin, begin + len(part))).all())
    width = _STRETCH if ordered else max(len(target), 1)
    for begin in range(0, len(target), width):
        stretch = target[begin : begin + width]
        np.copyto(stretch, np.arange(begin, begin + len(stretch), dtype=np.int32), where=marked[begin : begin + width])
        moving = np.flatnonzero(~marked[begin : begin + width] & (stretch >= 0))
        while len(moving):
            at = stretch[moving]
            before = at < begin
            if before.any():
                stretch[moving[before]] = target[at[before]]
            going = ~(marked[at] | before)
            moving, at = moving[going], at[going]
            stretch[moving] = target[at]
            moving = moving[stretch[moving] >= 0]
    return target
