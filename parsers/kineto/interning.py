"""From spans of text to codes of Categorical, decoding each different text once.

A trace repeats a few thousand texts millions of times. Spans are looked up by a hash of their first, middle and last
words and their length, and then compared byte by byte with the text that the hash points to; only texts that are not
found that way become Python strings.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from .numbers import LAST_BYTES, PAD, U64, word_view
from .pieces import codes_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_SLOT_BITS: Final = 19
_CAPACITY: Final = 1 << 15
"""Texts that are remembered; a real trace has some thousand that come more than once."""
_ARENA_BYTES: Final = 8 << 20
_LONGEST: Final = 4096
_MULTIPLIERS: Final = tuple(U64(value) for value in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))


class Interner:
    """Codes of the texts of one file. Threads share it: they read without a lock and add under one.

    Args:
        understand: Gives the text that a raw span means, and a flag that comes back with its code.
    """

    def __init__(self, understand: Callable[[str], tuple[str, int]]) -> None:
        self._understand = understand
        self._lock = threading.Lock()
        self._known: dict[bytes, int] = {}
        self._slots = np.zeros(1 << _SLOT_BITS, np.int32)
        # Memory of the arrays is not touched before it is used. Number 0 is no text: its length is never found.
        self._head = np.zeros(_CAPACITY, U64)
        self._tail = np.zeros(_CAPACITY, U64)
        self._length = np.zeros(_CAPACITY, np.int64)
        self._length[0] = -1
        self._at = np.zeros(_CAPACITY, np.int64)
        self._code = np.zeros(_CAPACITY, np.uint32)
        self._flag = np.zeros(_CAPACITY, np.uint8)
        self._arena = np.zeros(_ARENA_BYTES, np.uint8)
        self._arena_words = word_view(self._arena)
        self._used = PAD
        self._count = 1

    def codes(
        self, block: bytes, words: NDArray[np.uint64], start: NDArray[np.int64], length: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        """The codes of the spans of a block, and the flags of their texts."""
        head, tail, slot = _signature(words, start, length)
        number = self._slots[slot]
        found = self._length[number] == length
        found &= self._tail[number] == tail
        found &= self._head[number] == head
        open_ = np.flatnonzero(found & (length > 16))
        done = 8
        while len(open_):
            same = words[start[open_] + done] == self._arena_words[self._at[number[open_]] + done]
            found[open_[~same]] = False
            done += 8
            open_ = open_[same & (length[open_] > done + 8)]
        code, flag = self._code[number], self._flag[number]
        missing = np.flatnonzero(~found)
        if len(missing):
            code[missing], flag[missing] = self._add(block, start[missing], length[missing], slot[missing])
        return code, flag

    def _add(
        self, block: bytes, start: NDArray[np.int64], length: NDArray[np.int64], slot: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        """Codes of spans that were not found, which are remembered as long as there is room."""
        raw = [block[at:end] for at, end in zip(start.tolist(), (start + length).tolist(), strict=True)]
        slot_of = dict(zip(raw, slot.tolist(), strict=True))
        fresh = [text for text in slot_of if text not in self._known]
        understood = [self._understand(text.decode()) for text in fresh]
        codes = codes_of(pl.Series([text for text, _ in understood], dtype=pl.String)).tolist()
        results = dict(zip(fresh, zip(codes, (flag for _, flag in understood), strict=True), strict=True))
        with self._lock:
            for text, (code, flag) in results.items():
                self._remember(text, code, flag, slot_of[text])
        for text in slot_of:
            if text not in results:
                number = self._known[text]
                results[text] = (int(self._code[number]), int(self._flag[number]))
        pairs = [results[text] for text in raw]
        return np.array([code for code, _ in pairs], np.uint32), np.array([flag for _, flag in pairs], np.uint8)

    def _remember(self, text: bytes, code: int, flag: int, slot: int) -> None:
        size = len(text)
        full = self._count == _CAPACITY or self._used + size + 2 * PAD > _ARENA_BYTES
        if full or size > _LONGEST or text in self._known:
            return
        number, at = self._count, self._used
        self._arena[at : at + size] = np.frombuffer(text, np.uint8)
        self._used += size + 8
        self._count += 1
        self._at[number], self._code[number], self._flag[number] = at, code, flag
        where = np.array([at]), np.array([size])
        head, tail, _ = _signature(self._arena_words, *where)
        self._head[number], self._tail[number], self._length[number] = head[0], tail[0], size
        self._known[text] = number
        # Last of all, because from here on other threads find it.
        if self._slots[slot] == 0:
            self._slots[slot] = number


def _signature(
    words: NDArray[np.uint64], start: NDArray[np.int64], length: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]:
    """First and last eight characters of each span (the first ones only if it is longer than that), and its slot."""
    tail = words[start + length - 8] & LAST_BYTES[np.minimum(length, 8)]
    head = words[start] * (length > 8)
    middle = words[start + (length >> 1) - 4] * (length > 16)
    mixed = (tail ^ length.view(U64)) * _MULTIPLIERS[0]
    mixed ^= (head ^ (mixed >> U64(29))) * _MULTIPLIERS[1]
    mixed ^= (middle ^ (mixed >> U64(31))) * _MULTIPLIERS[2]
    slot: NDArray[np.int64] = (mixed >> U64(64 - _SLOT_BITS)).view(np.int64)
    return head, tail, slot
