"""Give memory that is free back to the system between two phases of loading.

Array work of one phase leaves free blocks that glibc keeps for itself; Polars, which works in the next phase, has an
allocator of its own and cannot use them. Without this the peak of a large load is the sum of the phases.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None  # Not glibc: musl, macOS and Windows give memory back by themselves or not at all.


def release_free() -> None:
    """Return free memory to the system where the C library can; costs a few milliseconds on a large heap."""
    trim = _trim()
    if trim is not None:
        trim(0)
