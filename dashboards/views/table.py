"""A table as data: the frame, and how each column is to be shown."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

NS_PER_MS: Final = 1e6


class Show(StrEnum):
    """How the numbers of a column read; text needs nothing."""

    MS = "ms"
    """A duration in milliseconds; the heading names the unit."""
    US = "us"
    """A duration in microseconds."""
    SHARE = "share"
    """A share of one, as per cent."""
    COUNT = "count"
    """A whole number."""
    FEW = "few"
    """A mean of numbers, with one digit after the point."""
    NUMBER = "number"
    """A number that counts nothing, such as that of a step; what no column says."""
    FACTOR = "factor"
    """How many times."""
    MEDIUM = "medium"
    """Text that needs some room."""
    LONG = "long"
    """Text that needs much room."""


_DIGITS: Final = {Show.MS: 3, Show.US: 1, Show.SHARE: 1, Show.COUNT: 0, Show.FEW: 1, Show.FACTOR: 2}
_UNITS: Final = {Show.SHARE: " %", Show.FACTOR: " x"}


def cell(how: Show, value: float | None) -> str:
    """A number of a table as the reader sees it; what rounds to nothing is not shown as nothing.

    Args:
        how: One of those for numbers.
        value: The number; a share is given as per cent. ``None`` or NaN for what is not known.
    """
    if value is None or math.isnan(value):
        return "-"
    if how is Show.NUMBER:
        return f"{value:.15g}"
    digits, unit = _DIGITS[how], _UNITS.get(how, "")
    least = 10.0**-digits
    if 0 < abs(value) < least / 2:
        return f"{'-' if value < 0 else ''}<{least:.{digits}f}{unit}"
    if how is Show.SHARE and 100 - least / 2 <= value < 100:
        value = 100 - least
    return f"{value:,.{digits}f}{unit}"


@dataclass(frozen=True, slots=True)
class Table:
    """What one table of a page shows.

    Attributes:
        frame: Headings as column names, numbers as numbers, so that the reader can sort.
        shows: How columns are to be shown, by heading.
        remarks: What the reader needs to know to read it.
    """

    frame: pl.DataFrame
    shows: dict[str, Show] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def in_ms(values_ns: Iterable[float | None]) -> list[float | None]:
    """Nanoseconds as milliseconds."""
    return [None if value is None else value / NS_PER_MS for value in values_ns]


def yes_no(value: bool | None) -> str:  # noqa: FBT001 - a cell, not an option
    """A cell for what is so, is not, or is not known."""
    return {True: "yes", False: "no", None: "not known"}[value]
