"""Stats: the named values of planes, of event names and of events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .columns import BYTES, COMPRESSED, DOUBLE, INT64, REF, STR, UINT64
from .distinct import distinct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    StatValue = int | float | str | None


@dataclass(frozen=True, slots=True)
class Stat:
    """One value.

    Attributes:
        kind: Field number of the value.
        value: Number or text; ``None`` for bytes.
        position: Where bytes lie in the file.
        length: How many.
    """

    kind: int
    value: StatValue
    position: int = 0
    length: int = 0


def whole(stats: Mapping[str, Stat], name: str) -> int | None:
    """A stat as a whole number, also where it is written as text; ``None`` if there is none."""
    stat = stats.get(name)
    return None if stat is None else as_whole(stat.value)


def as_whole(value: StatValue) -> int | None:
    """A value as a whole number; ``None`` if it is none."""
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and len(value) < 32:
        digits = value.strip()
        if digits.removeprefix("-").isascii() and digits.removeprefix("-").isdigit():
            return int(digits)
    return None


def number(stats: Mapping[str, Stat], name: str) -> float | None:
    """A stat as a number; ``None`` if there is none."""
    stat = stats.get(name)
    if stat is None:
        return None
    try:
        return None if stat.value is None else float(stat.value)
    except ValueError:
        return None


def words(stats: Mapping[str, Stat], name: str) -> str | None:
    """A stat as text; ``None`` if there is none or it is empty."""
    stat = stats.get(name)
    return None if stat is None or stat.value in (None, "") else str(stat.value)


@dataclass(frozen=True, slots=True)
class StatColumns:
    """All values of one name on the events of one plane, at most one for each event.

    Attributes:
        row: Index of the event in its plane, ascending.
        kind: Field number of the value, uint8.
        value: Bits of the number; position of texts and bytes.
        length: Length of texts and bytes.
        interned: Text of each number that a ``ref_value`` may hold.
    """

    row: NDArray[np.uint32]
    kind: NDArray[np.uint8]
    value: NDArray[np.uint64]
    length: NDArray[np.uint32]
    interned: Mapping[int, str]

    def first_of_each(self) -> StatColumns:
        """Without the second value of an event: some writers repeat a stat (``_src``)."""
        if len(self.row) < 2:
            return self
        fresh = np.concatenate(([True], self.row[1:] != self.row[:-1]))
        return self if fresh.all() else self.where(fresh)

    def where(self, mask: NDArray[np.bool_]) -> StatColumns:
        """Some of the values."""
        return StatColumns(self.row[mask], self.kind[mask], self.value[mask], self.length[mask], self.interned)

    def joined(self, other: StatColumns) -> StatColumns:
        """Together with those of another number that has the same name."""
        order = np.argsort(np.concatenate([self.row, other.row]), kind="stable")
        return StatColumns(
            np.concatenate([self.row, other.row])[order],
            np.concatenate([self.kind, other.kind])[order],
            np.concatenate([self.value, other.value])[order],
            np.concatenate([self.length, other.length])[order],
            {**other.interned, **self.interned},
        ).first_of_each()

    def integers(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The values as int64 bits (a uint64 beyond int64 turns negative), and which of them are whole numbers."""
        values = self.value.view(np.int64).copy()
        good = (self.kind == UINT64) | (self.kind == INT64)
        refs = self.kind == REF
        if refs.any():
            keys, inverse = distinct(values[refs])
            read = [as_whole(self.interned.get(key)) for key in keys.tolist()]
            fits = [one is not None and -(1 << 63) <= one < 1 << 63 for one in read]
            table = np.array([one if fine else 0 for one, fine in zip(read, fits, strict=True)], np.int64)
            values[refs] = table[inverse]
            good[refs] = np.array(fits, np.bool_)[inverse]
        doubles = self.kind == DOUBLE
        if doubles.any():
            floats = self.value[doubles].view(np.float64)
            plain = np.isfinite(floats) & (np.abs(floats) < 1 << 53)
            integral = plain & (np.where(plain, floats, 0.0) % 1 == 0)
            values[doubles] = np.where(integral, np.where(plain, floats, 0.0), 0).astype(np.int64)
            good[doubles] = integral
        return values, good

    def is_text(self) -> NDArray[np.bool_]:
        """Which of the values are texts."""
        return np.isin(self.kind, (STR, REF, COMPRESSED))

    def is_bytes(self) -> NDArray[np.bool_]:
        """Which of the values are bytes that only their writer understands."""
        return np.isin(self.kind, (BYTES, 0))
