"""Decimal digits to integers, eight bytes of text at a time, for many numbers at once.

A 64-bit word holds eight characters, the first one in its lowest byte. ``words`` is a view of the text with one such
word for every position, so ``words[end - 8]`` are the last eight characters before ``end``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

U64 = np.uint64

PAD: Final = 32
"""Bytes that must lie before the first and behind the last number, so that no word reaches outside the text."""
MAX_DIGITS: Final = 18
"""Longer numbers may not fit int64 and are left to the slow lane."""

_ZEROS: Final = U64(0x3030303030303030)
_HIGH: Final = U64(0x8080808080808080)
_LOW7: Final = U64(0x7F7F7F7F7F7F7F7F)
_ABOVE_NINE: Final = U64(0x7676767676767676)
_ABOVE_SPACE: Final = U64(0x5F5F5F5F5F5F5F5F)
_DOTS: Final = U64(0x2E2E2E2E2E2E2E2E)
_ONES: Final = U64(0x0101010101010101)
_LAST_BYTES: Final = np.array([0, *(((1 << 64) - 1) ^ ((1 << (64 - 8 * n)) - 1) for n in range(1, 9))], U64)
"""Mask of the last n characters of a word, n from 0 to 8."""
_POWERS: Final = np.array([10**n for n in range(19)], np.int64)
_JOINS: Final = (
    (U64(10), U64(8), U64(0x00FF00FF00FF00FF)),
    (U64(100), U64(16), U64(0x0000FFFF0000FFFF)),
    (U64(10000), U64(32), U64(0xFFFFFFFF)),
)
_MINUS: Final = 45
_ZERO: Final = 48


def word_view(text: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """One overlapping little-endian word for every position of ``text`` but the last seven."""
    return np.ndarray((len(text) - 7,), np.dtype("<u8"), buffer=text, strides=(1,))


def _last_digits(word: NDArray[np.uint64], count: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The value of the last ``count`` characters (0 to 8) of each word, and whether they are all digits."""
    digits = word ^ _ZEROS
    digits &= _LAST_BYTES[count]
    other = digits + _ABOVE_NINE
    other |= digits
    other &= _HIGH
    ok = other == 0
    # Neighbours are joined: 8 digits to 4 numbers below 100, to 2 below 10,000, to 1.
    for power, shift, mask in _JOINS:
        np.right_shift(digits, shift, out=other)
        digits *= power
        digits += other
        digits &= mask
    return digits.view(np.int64), ok


def _unsigned(
    words: NDArray[np.uint64], end: NDArray[np.int64], count: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The numbers made of the ``count`` (0 to 24) characters before ``end``."""
    value, ok = _last_digits(words[end - 8], np.minimum(count, 8))
    for done in (8, 16):
        longer = np.flatnonzero(count > done)
        if not len(longer):
            break
        part, part_ok = _last_digits(words[end[longer] - done - 8], np.minimum(count[longer] - done, 8))
        value[longer] += part * _POWERS[done]
        ok[longer] &= part_ok
    return value, ok


def parse_whole(
    text: NDArray[np.uint8], words: NDArray[np.uint64], start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Whole numbers in their JSON form.

    Returns:
        The values, and whether the span is such a number of at most :data:`MAX_DIGITS` digits. Values that are not
        are without meaning.
    """
    first = text[start]
    negative = first == _MINUS
    any_negative = bool(negative.any())
    if any_negative:
        start = start + negative
        first = text[start]
    count = end - start
    ok = (count >= 1) & (count <= MAX_DIGITS) & ((first != _ZERO) | (count == 1))
    value, digits_ok = _unsigned(words, end, np.clip(count, 0, MAX_DIGITS))
    ok &= digits_ok
    if any_negative:
        value = np.where(negative, -value, value)
    return value, ok


def parse_decimal_ns(
    text: NDArray[np.uint8], words: NDArray[np.uint64], start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Decimal microseconds to nanoseconds, exactly; digits beyond the third are rounded half away from zero.

    Returns:
        The nanoseconds, and whether the span is a JSON number without exponent, with at most 15 to 16 digits before
        and 7 behind the point, so that the result fits int64.
    """
    negative = text[start] == _MINUS
    any_negative = bool(negative.any())
    if any_negative:
        start = start + negative
    word = words[end - 8] & _LAST_BYTES[np.clip(end - start, 0, 8)]
    # The lowest byte flagged is the first point: the subtraction can only err above it.
    dots = word ^ _DOTS
    dots = (dots - _ONES) & ~dots & _HIGH
    has_dot = dots != 0
    before = (np.bitwise_count((dots & (~dots + U64(1))) - U64(1)) >> np.uint8(3)).astype(np.int64)
    places = np.where(has_dot, 7 - before, 0)
    part, part_ok = _last_digits(word, places)
    whole_end = np.where(has_dot, end - places - 1, end)
    whole, ok = parse_whole(text, words, start, whole_end)
    ok &= part_ok & (whole >= 0) & (whole < 9_000_000_000_000_000) & ((places > 0) | ~has_dot)
    # A second minus sign is no digit, but parse_whole would take it as the sign.
    ok &= text[start] != _MINUS
    long = places > 3
    if long.any():
        scale = _POWERS[np.where(long, places - 3, 0)]
        part = np.where(long, (2 * part + scale) // (2 * scale), part * _POWERS[np.where(long, 0, 3 - places)])
    else:
        part = part * _POWERS[3 - places]
    ns = whole * 1000 + part
    if any_negative:
        ns = np.where(negative, -ns, ns)
    return ns, ok


def skip_space_back(
    words: NDArray[np.uint64], end: NDArray[np.int64], rounds: int = 16
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Move each ``end`` back over the white space before it; control characters count as white space.

    Returns:
        The new ends, and whether they are final: after 8 * ``rounds`` characters the search is given up.
    """
    kept = _kept_of_last_eight(words, end)
    out = end - 8 + kept
    open_ = np.flatnonzero(kept == 0)
    for _ in range(rounds):
        if not len(open_):
            break
        kept = _kept_of_last_eight(words, out[open_])
        out[open_] += kept - 8
        open_ = open_[kept == 0]
    done = np.ones(len(out), np.bool_)
    done[open_] = False
    return out, done


def _kept_of_last_eight(words: NDArray[np.uint64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of the eight characters before ``end`` are left without trailing white space."""
    word = words[end - 8]
    solid = word & _LOW7
    solid += _ABOVE_SPACE
    solid |= word
    solid &= _HIGH
    for shift in (8, 16, 32):
        np.right_shift(solid, U64(shift), out=word)
        solid |= word
    kept: NDArray[np.int64] = np.bitwise_count(solid).astype(np.int64)
    return kept
