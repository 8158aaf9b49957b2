"""On which row of its lane each event is drawn, so that no two events of a row overlap.

Host calls nest, so their row is how deep they lie in the call tree. Device work of one stream rarely overlaps; where
it does (concurrent lines, copies beside kernels), the later event moves to the next free row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from traceview.nesting import OVERHANG_NS

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_PARENT: Final = -1

MOST_ROWS: Final = 4096
"""Deeper events share the last row; it is more than a screen can show, and bounds what a hostile trace can ask for."""


def rows(
    lanes: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    parents: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The row of each event inside its lane, counted from 0.

    A child lies below its parent. Two events of a row do not overlap, except that nested calls may by the overhang
    that rounding makes (:data:`traceview.nesting.OVERHANG_NS`).

    Args:
        lanes: Lane of each event, counted from 0.
        starts: Start of each event, ns, ascending; at equal starts the longer event comes first.
        ends: End of each event, ns.
        parents: Index of the enclosing event of the same lane, always a smaller one, or :data:`NO_PARENT`.
    """
    depth = _depths(parents)
    for lane in _lanes_with_overlaps(lanes, starts, ends, depth, parents):
        members = np.flatnonzero(lanes == lane)
        depth[members] = _first_fit(members, starts, ends, parents)
    return np.minimum(depth, MOST_ROWS - 1)


def _depths(parents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of ancestors, level by level from the top."""
    depth = np.zeros(len(parents), np.int64)
    below = np.flatnonzero(parents >= 0)
    settled = parents < 0
    while len(below):
        ready = settled[parents[below]]
        now = below[ready]
        if not len(now):
            break  # a circle of parents; such events stay at the top
        depth[now] = depth[parents[now]] + 1
        settled[now] = True
        below = below[~ready]
    return depth


def _lanes_with_overlaps(
    lanes: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    depth: NDArray[np.int64],
    parents: NDArray[np.int64],
) -> list[int]:
    """Lanes in which depth alone leaves events of one row on top of each other."""
    if not len(starts):
        return []
    key = lanes * (int(depth.max()) + 1) + depth
    order = np.argsort(key, kind="stable")
    key, starts, ends, slack = key[order], starts[order], ends[order], np.where(parents[order] >= 0, OVERHANG_NS, 0)
    # Each row gets a stretch of time of its own, so that one running maximum serves them all.
    number = np.concatenate(([0], np.cumsum(key[1:] != key[:-1])))
    stretch = int(ends.max()) - int(starts.min()) + 1
    reach = np.maximum.accumulate(ends - int(starts.min()) + number * stretch) - number * stretch + int(starts.min())
    over = np.zeros(len(starts), np.bool_)
    over[1:] = (number[1:] == number[:-1]) & (starts[1:] + slack[1:] < reach[:-1])
    found: list[int] = np.unique(lanes[order][over]).tolist()
    return found


def _first_fit(
    members: NDArray[np.intp], starts: NDArray[np.int64], ends: NDArray[np.int64], parents: NDArray[np.int64]
) -> list[int]:
    """Rows of one lane, event by event: the first row that is free, below that of the parent."""
    row_of: dict[int, int] = {}
    free_from: list[int] = []
    for event, start, end, parent in zip(
        members.tolist(), starts[members].tolist(), ends[members].tolist(), parents[members].tolist(), strict=True
    ):
        row = row_of[parent] + 1 if parent >= 0 and parent in row_of else 0
        while row < len(free_from) and free_from[row] > start:
            row += 1
        row = min(row, MOST_ROWS - 1)
        while row >= len(free_from):
            free_from.append(0)
        free_from[row] = max(free_from[row], end)
        row_of[event] = row
    return list(row_of.values())
