"""Give memory that is free back to the system while a trace is loaded.

Array work leaves free blocks that glibc keeps for itself; Polars, which works beside it, has an allocator of its own
and cannot use them. Without this the peak of a large load is the sum of its phases.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_M_MMAP_THRESHOLD: Final = -3
"""Parameter number of mallopt(3)."""

_LARGE_BYTES: Final = 1 << 18

_LARGEST_THRESHOLD_BYTES: Final = 4 * 1024 * 1024 * ctypes.sizeof(ctypes.c_long)
"""What glibc itself raises the threshold to once blocks of that size have been freed (DEFAULT_MMAP_THRESHOLD_MAX)."""


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None  # Not glibc: musl, macOS and Windows give memory back by themselves or not at all.
    return trim


def release_free() -> None:
    """Return free memory to the system where the C library can; costs a few milliseconds on a large heap."""
    trim = _trim()
    if trim is not None:
        trim(0)


@contextmanager
def large_blocks_apart() -> Iterator[None]:
    """Within this block, arrays of 256 KiB and more go back to the system the moment they are freed.

    By default glibc puts ever larger arrays into its heap, where one that lives keeps all freed ones below it.
    """
    option = _option()
    if option is None:
        yield
        return
    option(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    try:
        yield
    finally:
        # Not the default it started with: glibc adapts it to what a program frees, and no longer does once it was set.
        option(_M_MMAP_THRESHOLD, _LARGEST_THRESHOLD_BYTES)


@cache
def _option() -> Callable[[int, int], int] | None:
    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018 - its presence tells glibc; others number the options differently
        option: Callable[[int, int], int] = library.mallopt
    except (OSError, AttributeError, TypeError):
        return None
    return option
