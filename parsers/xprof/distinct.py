"""The distinct values of an array and where each row's value is among them, without a sort where that can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SMALL_TABLE: Final = 1 << 16
"""Numbers that lie closer together than this, or than a few times their count, go into a table instead of a sort."""


def distinct(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """Like ``numpy.unique`` with ``return_inverse``, for integers.

    Ids in a profile are small and dense, so a table does in one pass what a sort of millions of rows takes seconds for.
    """
    if len(values) < 64:
        found, inverse = np.unique(values, return_inverse=True)
        return found, inverse.ravel().astype(np.uint32)
    low, high = int(values.min()), int(values.max())
    if high - low >= max(SMALL_TABLE, 4 * len(values)):
        found, inverse = np.unique(values, return_inverse=True)
        return found, inverse.ravel().astype(np.uint32)
    shifted = (values - values.dtype.type(low)).astype(np.uint32)
    present = np.zeros(high - low + 1, np.bool_)
    present[shifted] = True
    codes = np.flatnonzero(present)
    table = np.zeros(len(present), np.uint32)
    table[codes] = np.arange(len(codes), dtype=np.uint32)
    return codes.astype(values.dtype) + values.dtype.type(low), table[shifted]


def distinct_pairs(first: NDArray[Any], second: NDArray[Any]) -> tuple[list[tuple[int, int]], NDArray[np.uint32]]:
    """Distinct pairs of two arrays of integers, and the index of each row's pair."""
    firsts, first_code = distinct(first)
    seconds, second_code = distinct(second)
    width = max(len(seconds), 1)
    pairs, code = distinct(first_code.astype(np.int64) * width + second_code)
    return [(int(firsts[pair // width]), int(seconds[pair % width])) for pair in pairs.tolist()], code
