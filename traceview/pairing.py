"""Matching rows by (process, number), where the number (a correlation id, say) is unique within a process only.

Both halves become one int64 per row, so that a match is a binary search in a sorted array: a join of data frames
needs several times the memory of the rows that it joins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_SPOTS_PER_KEY: Final = 8
"""Profilers count correlations up, so a table of all numbers in between is little larger than the calls are many."""


def keys(
    sides: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> list[NDArray[np.int64]]:
    """One number per row that is equal where process and number are.

    Args:
        sides: For each side of the match the process of each row (at least 0) and its number.

    Returns:
        For each side one key per row, comparable between the sides of this call only.
    """
    filled = [numbers for _, numbers in sides if len(numbers)]
    if not filled:
        return [np.empty(0, np.int64) for _ in sides]
    lowest = min(int(numbers.min()) for numbers in filled)
    width = max(int(numbers.max()) for numbers in filled) - lowest + 1
    processes = max(int(process.max()) for process, _ in sides if len(process)) + 1
    if width * processes < 1 << 63:
        return [process * width + (numbers - lowest) for process, numbers in sides]
    # Numbers too far apart to be packed beside the process: their places among the distinct ones are not.
    distinct = np.unique(np.concatenate(filled))
    return [process * len(distinct) + np.searchsorted(distinct, numbers) for process, numbers in sides]


def in_table(known: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int32] | None:
    """Where each wanted key is among the known ones, looked up in a table of all keys in between: no sort, no search.

    Args:
        known: Keys, at least one.
        wanted: Keys to find.

    Returns:
        For each wanted key its index in ``known``, -1 if it is not there; ``None`` if a known key is there twice or
        the keys lie too far apart for a table.
    """
    low, high = int(known.min()), int(known.max())
    spots = high - low + 1
    if spots > _SPOTS_PER_KEY * len(known) + (1 << 16):
        return None
    table = np.full(spots, -1, np.int32)
    table[known - low] = np.arange(len(known), dtype=np.int32)
    if np.count_nonzero(table >= 0) < len(known):
        return None
    inside = (wanted >= low) & (wanted <= high)
    return np.where(inside, table[np.where(inside, wanted - low, 0)], np.int32(-1))


def last_not_after(
    times: NDArray[np.int64], moments: NDArray[np.int64], first: NDArray[np.int64], stop: NDArray[np.int64]
) -> NDArray[np.int64]:
    """In each stretch ``first`` to ``stop`` of ascending times the last place whose time is not after the moment.

    Args:
        times: Times, ascending within each stretch.
        moments: One moment per stretch.
        first: First place of each stretch.
        stop: The place behind each stretch, greater than ``first``.

    Returns:
        One place per stretch; its first one where all of it is after the moment.
    """
    low, high = first.copy(), stop.copy()
    # `low` is never after the moment (or is the first place); the search ends when nothing is left above it.
    while (open_ := high - low > 1).any():
        middle = (low + high) // 2
        fits = times[middle] <= moments
        low = np.where(open_ & fits, middle, low)
        high = np.where(open_ & ~fits, middle, high)
    return low
