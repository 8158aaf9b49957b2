"""Matching rows by (process, number), where the number (a correlation id, say) is unique within a process only.

Both halves become one int64 per row, so that a match is a binary search in a sorted array: a join of data frames
needs several times the memory of the rows that it joins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


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
