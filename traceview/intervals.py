"""Arithmetic on sets of half-open time intervals ``[start, end)``, vectorised, on int64 nanoseconds.

Device-busy time is the length of a *union*: two kernels that overlap keep the device busy once. Summing
durations instead is the oldest mistake of trace tools, so everything that speaks of time goes through here.

An interval set is a pair of int64 arrays ``(starts, ends)``. Functions accept any order, overlap and
nesting, and empty or reversed intervals count for nothing. What they return is *normalised*: sorted,
disjoint, not touching, none empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Nanoseconds = NDArray[np.int64]
    IntervalSet = tuple[Nanoseconds, Nanoseconds]
    Indices = NDArray[np.int64]


def merge(starts: Nanoseconds, ends: Nanoseconds) -> IntervalSet:
    """The union of the intervals, normalised. Touching intervals become one.

    Args:
        starts: Start of each interval, ns.
        ends: End of each interval, ns, exclusive.
    """
    real = ends > starts
    if not real.all():
        starts, ends = starts[real], ends[real]
    if not len(starts):
        return starts, ends
    # Most of what comes here is in order, or is the union of something already.
    if (starts[1:] < starts[:-1]).any():
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    elif (starts[1:] > ends[:-1]).all():
        return starts.copy(), ends.copy()
    # The running maximum, not the previous end: a long interval may cover several that come after it.
    reach = np.maximum.accumulate(ends)
    first = np.empty(len(starts), dtype=bool)
    first[0] = True
    np.greater(starts[1:], reach[:-1], out=first[1:])
    last = np.append(np.flatnonzero(first)[1:] - 1, len(starts) - 1)
    return starts[first], reach[last]


def total(starts: Nanoseconds, ends: Nanoseconds) -> int:
    """Length of the union, ns."""
    starts, ends = merge(starts, ends)
    return int((ends - starts).sum())


def grouped_total(groups: NDArray[np.int64], starts: Nanoseconds, ends: Nanoseconds) -> Nanoseconds:
    """Length of the union within each group, ns, for many small groups at once.

    Args:
        groups: Group of each interval, counted from 0 without holes.
        starts: Start of each interval, ns.
        ends: End of each interval, ns, exclusive.

    Returns:
        One length per group.
    """
    if not len(starts):
        return np.zeros(0, np.int64)
    # Move every group to its own stretch of time: then one union does them all.
    stretch = int(ends.max()) - int(starts.min()) + 2
    shift = groups * stretch - int(starts.min())
    merged_starts, merged_ends = merge(starts + shift, ends + shift)
    totals = np.zeros(int(groups.max()) + 1, np.int64)
    np.add.at(totals, merged_starts // stretch, merged_ends - merged_starts)
    return totals


def span(starts: Nanoseconds, ends: Nanoseconds) -> int:
    """From the first start to the last end, ns; 0 for no interval."""
    return int(ends.max() - starts.min()) if len(starts) else 0


def gaps(starts: Nanoseconds, ends: Nanoseconds) -> IntervalSet:
    """What lies between the first start and the last end without being covered."""
    starts, ends = merge(starts, ends)
    return ends[:-1], starts[1:]


def subtract(a: IntervalSet, b: IntervalSet) -> IntervalSet:
    """The part of ``a`` that ``b`` does not cover."""
    a_starts, a_ends = merge(*a)
    if not len(a_starts):
        return a_starts, a_ends
    low, high = a_starts[0], a_ends[-1]
    b_starts, b_ends = merge(*b)
    # a minus b = a intersected with the complement of b inside a's span.
    outside = (np.concatenate(([low], b_ends)), np.concatenate((b_starts, [high])))
    return intersect((a_starts, a_ends), outside)


def intersect(a: IntervalSet, b: IntervalSet) -> IntervalSet:
    """The part that both ``a`` and ``b`` cover."""
    a_starts, a_ends = merge(*a)
    b_starts, b_ends = merge(*b)
    if not len(a_starts) or not len(b_starts):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    # Both sets are disjoint and sorted, so interval i of a meets the run [first, stop) of b.
    first = np.searchsorted(b_ends, a_starts, side="right")
    stop = np.searchsorted(b_starts, a_ends, side="left")
    count = np.maximum(stop - first, 0)
    which_a = np.repeat(np.arange(len(a_starts)), count)
    offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    which_b = np.repeat(first, count) + offset
    return np.maximum(a_starts[which_a], b_starts[which_b]), np.minimum(a_ends[which_a], b_ends[which_b])


def crossings(a: IntervalSet, b: IntervalSet) -> tuple[NDArray[np.intp], NDArray[np.intp], Nanoseconds, Nanoseconds]:
    """Where intervals of two sets overlap, and which ones.

    Args:
        a: Sorted and disjoint; intervals that touch stay apart.
        b: Likewise.

    Returns:
        For each overlap the index in ``a``, the index in ``b``, its start and its end, ns.
    """
    (a_starts, a_ends), (b_starts, b_ends) = a, b
    if not len(a_starts) or not len(b_starts):
        nothing = np.empty(0, np.intp)
        return nothing, nothing, np.empty(0, np.int64), np.empty(0, np.int64)
    first = np.searchsorted(b_ends, a_starts, side="right")
    stop = np.searchsorted(b_starts, a_ends, side="left")
    count = np.maximum(stop - first, 0)
    which_a = np.repeat(np.arange(len(a_starts)), count)
    which_b = np.repeat(first, count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return (
        which_a,
        which_b,
        np.maximum(a_starts[which_a], b_starts[which_b]),
        np.minimum(a_ends[which_a], b_ends[which_b]),
    )


def exclusive(starts: Nanoseconds, ends: Nanoseconds) -> IntervalSet:
    """For each interval the part that none before it covers: disjoint pieces that keep their order.

    Args:
        starts: Start of each interval, ns, ascending; of two that overlap the first keeps the overlap.
        ends: End of each interval, ns, exclusive.
    """
    if not len(starts):
        return starts, ends
    reach = np.concatenate(([starts[0]], np.maximum.accumulate(ends)[:-1]))
    return np.maximum(starts, reach), np.maximum(ends, np.maximum(starts, reach))


def covered(starts: Nanoseconds, ends: Nanoseconds, cover: IntervalSet) -> Nanoseconds:
    """For each interval on its own, how much of it ``cover`` covers, ns.

    Unlike :func:`intersect` the intervals keep their order and identity, so overlapping ones each get their share.
    """
    cover_starts, cover_ends = merge(*cover)
    if not len(cover_starts):
        return np.zeros(len(starts), np.int64)
    lengths = cover_ends - cover_starts
    before = np.concatenate(([0], np.cumsum(lengths)))

    def covered_until(moment: Nanoseconds) -> Nanoseconds:
        index = np.searchsorted(cover_starts, moment, side="right")
        inside = np.minimum(moment - cover_starts[np.maximum(index - 1, 0)], lengths[np.maximum(index - 1, 0)])
        done: Nanoseconds = np.where(index > 0, before[np.maximum(index - 1, 0)] + inside, 0)
        return done

    return np.where(ends > starts, covered_until(ends) - covered_until(starts), 0)


def tiled(
    starts: Nanoseconds, ends: Nanoseconds, cover: IntervalSet
) -> tuple[Indices, Indices, Nanoseconds, Nanoseconds]:
    """Cut each interval where a cover begins and ends. Nothing is lost: the pieces of an interval add up to it.

    Args:
        starts: Start of each interval, ns, in any order; they may overlap.
        ends: End of each interval, ns, exclusive.
        cover: Sorted and disjoint; its intervals may touch, and keep their identity.

    Returns:
        Of each piece: index of its interval, index of the cover's interval (-1: not covered), start and end. Sorted by
        interval, then by start.
    """
    cover_starts, cover_ends = cover
    bounds = np.empty(2 * len(cover_starts), np.int64)
    bounds[0::2], bounds[1::2] = cover_starts, cover_ends
    # Tile t lies between bound t-1 and bound t; odd tiles are covered. The first and the last reach without end.
    first = np.searchsorted(bounds, starts, side="right")
    last = np.searchsorted(bounds, ends, side="left")
    count = np.where(ends > starts, last - first + 1, 0)
    which = np.repeat(np.arange(len(starts)), count)
    tile = np.repeat(first, count) + np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    inner = bounds if len(bounds) else np.zeros(1, np.int64)
    low = np.where(tile > first[which], inner[np.maximum(tile - 1, 0)], starts[which])
    high = np.where(tile < last[which], inner[np.minimum(tile, len(inner) - 1)], ends[which])
    real = high > low
    which, tile, low, high = which[real], tile[real], low[real], high[real]
    return which, np.where(tile % 2 == 1, tile // 2, -1), low, high
