"""A table as data: the frame, and how each column is to be shown."""

from __future__ import annotations

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
    FACTOR = "factor"
    """How many times."""
    MEDIUM = "medium"
    """Text that needs some room."""
    LONG = "long"
    """Text that needs much room."""


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
