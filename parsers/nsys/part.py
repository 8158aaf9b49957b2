"""The rows of one table on their way to the timeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import schema
from traceview.timeline import Count

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUMBER: Final = {name: index for index, name in enumerate(schema.KINDS)}
"""Kind to its number."""

LONGEST_NS: Final = 24 * 3_600 * 10**9
"""Times further than a day from the middle of the recording are damage."""

NO_STREAM: Final = 0xFFFFFFFF
"""Written where a row belongs to no stream (or event). Seen in exports of 2026."""


@dataclass(slots=True)
class Part:
    """Rows of one table that become events.

    Attributes:
        table: The table.
        rows: Number of rows that it has; its details are counted by them.
        row: Of each kept row, its place in the table.
        kind: Number of the kind of each kept row.
        columns: Columns of :data:`traceview.schema.EVENTS` by name; ``start_ns`` still counts from the session's start.
        open_end: Rows that were still open when the recording ended; their ``dur_ns`` is set at the end.
        counts: What was skipped, repaired or doubted.
    """

    table: str
    rows: int
    row: NDArray[np.uint32]
    kind: NDArray[np.int8]
    columns: dict[str, pl.Series]
    open_end: NDArray[np.bool_] | None = None
    counts: dict[str, Count] = field(default_factory=dict)

    @property
    def height(self) -> int:
        """Number of kept rows."""
        return len(self.row)

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Drop the rows where ``mask`` is false."""
        if mask.all():
            return
        chosen = pl.Series(np.flatnonzero(mask).astype(np.uint32))
        self.row, self.kind = self.row[mask], self.kind[mask]
        self.columns = {name: column.gather(chosen) for name, column in self.columns.items()}
        if self.open_end is not None:
            self.open_end = self.open_end[mask]


def timed(table: str, frame: pl.DataFrame, kind: str) -> tuple[Part, pl.DataFrame]:
    """A part with the times of a frame that has ``start`` and ``end``, and the frame without the rows that have none.

    A row without an end is kept as open. A row without a start, or one that ends before it starts, is lost and counted.
    """
    rows = frame.height
    start, end = frame["start"], frame["end"]
    counts: dict[str, Count] = {}
    row = np.arange(rows, dtype=np.uint32)
    bad = (start.is_null() | (end < start).fill_null(value=False)).to_numpy()
    if bad.any():
        unset = int(start.null_count())
        if unset:
            counts["lost-without-start"] = Count(unset, table)
        if int(bad.sum()) > unset:
            counts["lost-negative-duration"] = Count(int(bad.sum()) - unset, table)
        frame, row = frame.filter(pl.Series(~bad)), row[~bad]
        start, end = frame["start"], frame["end"]
    open_end = end.is_null().to_numpy() if end.null_count() else None
    duration = (end - start).fill_null(0) if open_end is not None else end - start
    # Wrapped around: start and end lie further apart than a number can say.
    part = Part(
        table=table,
        rows=rows,
        row=row,
        kind=np.full(len(row), NUMBER[kind], np.int8),
        columns={"start_ns": start, "dur_ns": duration},
        open_end=open_end,
        counts=counts,
    )
    return part, frame


def correlations(ids: pl.Series) -> pl.Series:
    """Correlation ids; CUPTI writes 0 for none."""
    return ids.set(ids == 0, None) if (ids == 0).any() else ids


def drop_far_off(parts: list[Part]) -> dict[str, Count]:
    """Drop rows whose times cannot be true, and count them."""
    filled = [part for part in parts if part.height]
    if not filled:
        return {}
    low = min(int(part.columns["start_ns"].min()) for part in filled)  # type: ignore[arg-type]  # Int64, not empty
    high = max(int(part.columns["start_ns"].max()) for part in filled)  # type: ignore[arg-type]
    longest = max(int(part.columns["dur_ns"].max()) for part in filled)  # type: ignore[arg-type]
    shortest = min(int(part.columns["dur_ns"].min()) for part in filled)  # type: ignore[arg-type]
    if high - low <= LONGEST_NS and longest <= LONGEST_NS and shortest >= 0:
        return {}
    middle = int(np.median(np.concatenate([part.columns["start_ns"].to_numpy() for part in filled])))
    lost, example = 0, ""
    for part in filled:
        start, duration = part.columns["start_ns"].to_numpy(), part.columns["dur_ns"].to_numpy()
        good = (start >= middle - LONGEST_NS) & (start <= middle + LONGEST_NS)
        good &= (duration <= LONGEST_NS) & (duration >= 0)
        if not good.all():
            lost += int((~good).sum())
            example = example or part.table
            part.keep(good)
    return {"lost-time-far-off": Count(lost, example)} if lost else {}
