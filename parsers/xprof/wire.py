"""Protocol-buffer wire format: one field at a time for small messages, many messages at once for events and stats.

No generated code and no protobuf run time: generated code is tied to one run time, and a text that is no UTF-8 makes
every run time refuse the whole file. Nothing here reads beyond the bounds it is given.

Source: protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from mmap import mmap

    from numpy.typing import NDArray

    Data = mmap | bytes
    Positions = NDArray[np.int64]

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2
FIXED32: Final = 5

_MOST_VARINT_BYTES: Final = 10


class WireError(ValueError):
    """The bytes at ``at`` are not what the format allows there."""

    def __init__(self, at: int, why: str) -> None:
        super().__init__(f"{why} at byte {at:,}")
        self.at = at


def varint(data: Data, at: int, end: int) -> tuple[int, int]:
    """An unsigned varint and the position behind it.

    Raises:
        WireError: it does not end before ``end`` or within ten bytes.
    """
    value = shift = 0
    begin = at
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
        if shift >= 7 * _MOST_VARINT_BYTES:
            break
    raise WireError(begin, "a number does not end")


def signed(value: int) -> int:
    """The int64 with the bits of an unsigned value."""
    return value - (1 << 64) if value >= 1 << 63 else value


def fields(data: Data, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Walk the fields of a message.

    Yields:
        ``(field number, wire type, value or start of the value, position behind the field)``.

    Raises:
        WireError: the message is damaged or reaches beyond ``end``.
    """
    while at < end:
        begin = at
        tag, at = varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        if not number:
            raise WireError(begin, "a field has the number 0")
        if wire == VARINT:
            value, at = varint(data, at, end)
            yield number, wire, value, at
        elif wire == LENGTH:
            size, at = varint(data, at, end)
            if size > end - at:
                raise WireError(begin, f"a field of {size:,} bytes reaches beyond its end")
            yield number, wire, at, at + size
            at += size
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
            if size > end - at:
                raise WireError(begin, "a number reaches beyond its end")
            yield number, wire, at, at + size
            at += size
        else:
            raise WireError(begin, f"wire type {wire} is not in use")


def text(data: Data, start: int, end: int) -> str:
    """Text as recorded; bytes that are no UTF-8 become U+FFFD."""
    return bytes(data[start:end]).decode("utf-8", "replace")


def varints(
    octets: NDArray[np.uint8], at: Positions, end: Positions
) -> tuple[NDArray[np.uint64], Positions, NDArray[np.bool_]]:
    """One varint at each position.

    Returns:
        Values, positions behind them, and which of them are sound; the others have no meaning.
    """
    value = np.zeros(len(at), np.uint64)
    behind = at.copy()
    sound = at < end
    active = np.flatnonzero(sound)
    for step in range(_MOST_VARINT_BYTES):
        if not len(active):
            break
        octet = octets[behind[active]]
        value[active] |= (octet & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * step)
        behind[active] += 1
        active = active[octet >= 0x80]
        over = behind[active] >= end[active]
        sound[active[over]] = False
        active = active[~over]
    sound[active] = False
    return value, behind, sound
