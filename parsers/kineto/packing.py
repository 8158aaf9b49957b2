"""How columns of whole numbers are held in little memory while a file is read.

Numbers that follow each other in a trace are close: times within a block, ids that count up, the few process and
thread numbers. A column is therefore kept in stretches, each as its lowest value and the unsigned distances from it, in
one, two or four bytes a row, or none where all rows of the stretch hold the same. Nothing is lost by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STRETCH: Final = 4096
"""Rows that are packed together at least, so that a stretch costs little beside what it holds."""

_WIDTHS: Final = ((1 << 8, np.uint8), (1 << 16, np.uint16), (1 << 32, np.uint32))


class _Stretch(NamedTuple):
    """Where a stretch lies.

    ``distances`` says how its rows are held: ``None`` if all are ``base``, 64-bit numbers are as they were. With
    ``holes`` the distance 0 stands for a missing value.
    """

    rows: int
    base: int
    distances: type[np.unsignedinteger[Any] | np.int64] | None
    holes: bool


class PackedColumn:
    """A column of whole numbers that grows at its end.

    Args:
        dtype: What :meth:`take` returns, int64 or uint32.
        null: The value that stands for a missing one: the lowest of int64, or the highest of uint32.
    """

    __slots__ = ("_bytes", "_count", "_dtype", "_null", "_stretches", "_waiting", "_waiting_rows")

    def __init__(self, dtype: type[np.int64 | np.uint32], null: int) -> None:
        self._dtype = dtype
        self._null = null
        self._bytes = bytearray()
        self._stretches: list[_Stretch] = []
        self._waiting: list[NDArray[Any]] = []
        self._waiting_rows = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def dtype(self) -> type[np.int64 | np.uint32]:
        """Of the values."""
        return self._dtype

    def append(self, values: NDArray[Any]) -> None:
        """Add values; the array may be changed afterwards."""
        self._count += len(values)
        if self._waiting_rows + len(values) < _STRETCH:
            if len(values):
                self._waiting.append(values.astype(self._dtype))
                self._waiting_rows += len(values)
            return
        if self._waiting:
            values = np.concatenate((*self._waiting, values), dtype=self._dtype)
            self._waiting, self._waiting_rows = [], 0
        self._pack(values)

    def take(self) -> NDArray[Any]:
        """All values, in the order in which they came."""
        out = np.empty(self._count, self._dtype)
        begin, at = 0, 0
        for count, base, distances, holes in self._stretches:
            part = out[begin : begin + count]
            begin += count
            if distances is None:
                part.fill(base)
                continue
            held = np.frombuffer(self._bytes, distances, count, at)
            at += held.nbytes
            if distances is np.int64:
                part[:] = held
                continue
            np.add(held, np.int64(base), out=part, casting="unsafe")
            if holes:
                part[held == 0] = self._null
        for values in self._waiting:
            out[begin : begin + len(values)] = values
            begin += len(values)
        return out

    def _pack(self, values: NDArray[Any]) -> None:
        low, high = int(values.min()), int(values.max())
        holes = self._null in (low, high)
        if low == high:
            self._add(_Stretch(len(values), low, None, holes=False))
            return
        present = None
        if holes:
            present = values != self._null
            some = values[present]
            low, high = int(some.min()) - 1, int(some.max())
        distances = next((kind for room, kind in _WIDTHS if high - low < room), np.int64)
        self._add(_Stretch(len(values), low, distances, holes))
        if distances is np.int64:
            held = values.astype(np.int64)
        else:
            held = values - np.asarray(low, np.int64)
            held = (held if present is None else np.where(present, held, 0)).astype(distances)
        self._bytes += held.data.cast("B")

    def _add(self, stretch: _Stretch) -> None:
        last = self._stretches[-1] if self._stretches else None
        if last is not None and stretch.distances is None and last[1:] == stretch[1:]:
            self._stretches[-1] = last._replace(rows=last.rows + stretch.rows)
        else:
            self._stretches.append(stretch)


class PackedRows:
    """Ascending row numbers that grow at their end: the steps between them are small, and one where rows are dense."""

    __slots__ = ("_last", "_steps")

    def __init__(self) -> None:
        self._last = 0
        self._steps = PackedColumn(np.uint32, 0xFFFFFFFF)

    def append(self, rows: NDArray[Any]) -> None:
        """Add row numbers, at least one."""
        steps = np.empty(len(rows), np.uint32)
        steps[0] = int(rows[0]) - self._last
        np.subtract(rows[1:], rows[:-1], out=steps[1:], casting="unsafe")
        self._last = int(rows[-1])
        self._steps.append(steps)

    def take(self) -> NDArray[np.uint32]:
        """All row numbers."""
        steps: NDArray[np.uint32] = self._steps.take()
        return np.cumsum(steps, out=steps)
