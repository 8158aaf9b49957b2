"""Many protocol-buffer messages at once: each row is put together from parts of whole columns.

Numbers are written as varints of a fixed width, padded with continuation bytes, which every reader of protocol buffers
takes (source: the encoding guide of protobuf.dev; Perfetto's own writer pads the lengths of messages in the same way).
So a part has the same width in every row that has it, and NumPy writes a column of parts in one go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2

Bytes = "NDArray[np.uint8]"


def varint(value: int) -> bytes:
    """One number in its shortest form; negative ones as 64-bit two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(number: int, wire: int) -> bytes:
    """What stands before the value of a field."""
    return varint(number << 3 | wire)


def number_field(number: int, value: int) -> bytes:
    """A field that holds one number."""
    return tag(number, VARINT) + varint(value)


def bytes_field(number: int, value: bytes | str) -> bytes:
    """A field that holds a text, or a message."""
    data = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return tag(number, LENGTH) + varint(len(data)) + data


def varints(values: NDArray[np.integer], width: int) -> NDArray[np.uint8]:
    """A row of ``width`` bytes for each number; ten hold any, five any below 2**35."""
    unsigned = values.astype(np.int64).view(np.uint64) if values.dtype != np.uint64 else values
    out = np.empty((len(values), width), np.uint8)
    for at in range(width):
        out[:, at] = ((unsigned >> np.uint64(7 * at)) & np.uint64(0x7F)).astype(np.uint8)
        if at < width - 1:
            out[:, at] |= 0x80
    return out


def fixed64(values: NDArray[np.integer]) -> NDArray[np.uint8]:
    """A row of eight bytes for each number."""
    return np.ascontiguousarray(values.astype("<u8")).view(np.uint8).reshape(-1, 8)


class Rows:
    """Messages that are being put together, one a row.

    Args:
        count: Number of rows.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.lengths = np.zeros(count, np.int64)
        self._parts: list[tuple[NDArray[np.intp] | None, NDArray[np.uint8]]] = []

    def constant(self, data: bytes, rows: NDArray[np.intp] | None = None) -> None:
        """The same bytes in all rows, or in those given."""
        count = self.count if rows is None else len(rows)
        self.add(np.broadcast_to(np.frombuffer(data, np.uint8), (count, len(data))), rows)

    def add(self, part: NDArray[np.uint8], rows: NDArray[np.intp] | None = None) -> None:
        """One row of bytes for each row, or for each of those given; a row may be given several times in succession."""
        if rows is None:
            self.lengths += part.shape[1]
        elif len(rows):
            np.add.at(self.lengths, rows, part.shape[1])
        else:
            return
        self._parts.append((rows, part))

    def field(self, before: bytes, values: NDArray[np.uint8], rows: NDArray[np.intp] | None = None) -> None:
        """A part with constant bytes before it."""
        head = np.broadcast_to(np.frombuffer(before, np.uint8), (len(values), len(before)))
        self.add(np.hstack([head, values]), rows)

    def within(self, number: int, other: Rows) -> None:
        """All of ``other``, a message a row, as a field of these."""
        self.field(tag(number, LENGTH), varints(other.lengths, 4))
        self.lengths += other.lengths
        self._parts += other._parts

    def tobytes(self) -> bytes:
        """The rows one after the other."""
        ends = np.cumsum(self.lengths)
        out = np.empty(int(ends[-1]) if self.count else 0, np.uint8)
        at = ends - self.lengths
        for rows, part in self._parts:
            width = np.arange(part.shape[1])
            if rows is None:
                out[at[:, None] + width] = part
                at += part.shape[1]
                continue
            # The n-th time that a row occurs it stands n parts further on.
            again = np.zeros(len(rows), np.int64)
            if len(rows) > 1 and (same := rows[1:] == rows[:-1]).any():
                first = np.r_[0, np.flatnonzero(~same) + 1]
                again = np.arange(len(rows)) - np.repeat(first, np.diff(np.r_[first, len(rows)]))
            out[(at[rows] + again * part.shape[1])[:, None] + width] = part
            np.add.at(at, rows, part.shape[1])
        return out.tobytes()
