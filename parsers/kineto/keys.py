"""Which key a quoted text is, for many keys at once: a hash table over the last eight characters and the length."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from .event import EVENT_KEYS
from .numbers import U64
from .raw import INT_ARGS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

TIME_FIELDS: Final = ("ts", "dur")
IDENTITY_FIELDS: Final = ("pid", "tid", "id")
TEXT_FIELDS: Final = ("ph", "cat", "name")
KNOWN_TEXT_ARGS: Final = (
    "bp", "s", "Input Dims", "Input type", "Input Strides", "Concrete Inputs", "Call stack", "Module Hierarchy",
    "Trace name", "Collective name", "dtype", "grid", "block", "kernel", "kind", "name", "labels", "finished",
    "est. achieved occupancy %", "blocks per SM", "warps per SM", "memory bandwidth (GB/s)", "Process Group Ranks",
    "Process Group Name", "Process Group Description", "In split size", "Out split size", "Kwinputs", "stream_id",
)  # fmt: skip

UNKNOWN: Final = 0xFFFF
MAX_KEYS: Final = 1024
"""Keys that a table can learn; events with further ones go through the slow lane."""
MAX_KEY_BYTES: Final = 200
_SLOT_BITS: Final = 13
_TAIL_SHIFT: Final = np.array([0, *(64 - 8 * n for n in range(1, 9))], U64)


class KeyTable:
    """An immutable set of keys that are recognised at once.

    Attributes:
        names: The keys; the index of a key is its number. The time fields come first, then the identity fields,
            then the whole-number arguments, then all else.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        raw = [name.encode() for name in self.names]
        self._length = np.array([len(key) for key in raw] + [-1], np.int64)
        widest = max(len(key) for key in raw)
        self._first = np.array([key[0] for key in raw] + [0], np.uint8)
        self._tail = np.array([int.from_bytes(key[-8:], "little") for key in raw] + [0], U64)
        self._words = np.zeros((widest // 8 + 1, len(raw) + 1), U64)
        for number, key in enumerate(raw):
            for k in range(len(key) // 8):
                self._words[k, number] = int.from_bytes(key[8 * k : 8 * k + 8], "little")
        self._build()

    def _build(self) -> None:
        """Find a multiplier without collisions; where there is none, the keys that lose a slot are never found."""
        count = len(self.names)
        random = np.random.default_rng(1)
        best: tuple[int, NDArray[np.int64], np.uint64] | None = None
        for _ in range(50):
            multiplier = U64(int(random.integers(1 << 62)) | 1)
            slots = self._slots(self._tail[:count], self._length[:count], self._first[:count], multiplier)
            lost = count - len(np.unique(slots))
            if best is None or lost < best[0]:
                best = (lost, slots, multiplier)
            if lost == 0:
                break
        assert best is not None
        _, slots, self._multiplier = best
        self._table = np.full(1 << _SLOT_BITS, count, np.int64)
        self._table[slots[::-1]] = np.arange(count)[::-1]

    @staticmethod
    def _slots(
        tail: NDArray[np.uint64], length: NDArray[np.int64], first: NDArray[np.uint8], multiplier: np.uint64
    ) -> NDArray[np.int64]:
        with np.errstate(over="ignore"):
            # The first character tells "External id" from "external id".
            mixed = (tail ^ (length.astype(U64) << U64(48)) ^ (first.astype(U64) << U64(40))) * multiplier
        slots: NDArray[np.int64] = (mixed >> U64(64 - _SLOT_BITS)).view(np.int64)
        return slots

    def extended(self, fresh: Iterable[str]) -> KeyTable:
        """A table with more keys behind those of this one."""
        return KeyTable((*self.names, *fresh))

    def find(
        self, text: NDArray[np.uint8], words: NDArray[np.uint64], start: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.uint16]:
        """The number of the key in each span, or :data:`UNKNOWN`. Every byte of a key is compared."""
        length = end - start
        size = np.minimum(length, 8)
        tail = words[end - 8] >> _TAIL_SHIFT[size]
        key = self._table[self._slots(tail, length, text[start], self._multiplier)]
        same = (self._tail[key] == tail) & (self._length[key] == length)
        longer = np.flatnonzero(same & (length > 8))
        for k in range(len(self._words)):
            longer = longer[length[longer] >= 8 * k + 8]
            if not len(longer):
                break
            same[longer] &= words[start[longer] + 8 * k] == self._words[k, key[longer]]
        return np.where(same, key, UNKNOWN).astype(np.uint16)


@cache
def initial_table() -> KeyTable:
    """A table of the keys that Kineto files are known to hold."""
    first = (*TIME_FIELDS, *IDENTITY_FIELDS, *sorted(INT_ARGS))
    rest = (*TEXT_FIELDS, "args", *(name for name in KNOWN_TEXT_ARGS if name not in EVENT_KEYS))
    return KeyTable((*first, *rest))
