"""From rows in file order to a finished :class:`~traceview.timeline.Timeline`: sort, number, re-key.

Parsers fill columns in whatever order the file has and call :func:`build`; nobody else sorts events. One that holds its
columns packed asks for the :func:`event_order` first and calls :func:`finished`, so that no column exists twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import polars as pl

from traceview import schema
from traceview.timeline import ImportReport, RunInfo, Timeline

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from polars.datatypes import DataTypeClass

_Item = TypeVar("_Item", bound=np.generic)

NOT_AN_EVENT: Final = 0xFFFFFFFF
"""In a row-to-id array: this row of the file did not become an event."""

_AT_A_TIME: Final = 1 << 16

NO_KEY: Final = 0xFFFFFFFF
"""Stands for a missing key while columns are arrays."""

# At equal start and duration the outer one comes first: a profiler step holds an op holds a launch.
_OUTER_FIRST: Final = np.array(
    [{"annotation": 0, "python": 1, "compile": 2, "op": 3, "api": 4, "sync": 4}.get(kind, 5) for kind in schema.KINDS],
    np.int8,
)


def key_series(keys: NDArray[np.uint32]) -> pl.Series:
    """Keys as a column, :data:`NO_KEY` as null."""
    column = pl.Series(keys)
    return column.set(column == NO_KEY, None) if (keys == NO_KEY).any() else column


class Details(Mapping[str, pl.DataFrame]):
    """Rare arguments by name, brought to event ids on first use.

    Most analyses look at a few of some twenty arguments, so sorting all of them while loading would be waste.

    Args:
        by_row: Argument name to ``(row, value)``, rows of the file.
        event_of_row: Event id of each row of the file, or :data:`NOT_AN_EVENT`.
    """

    def __init__(self, by_row: Mapping[str, pl.DataFrame], event_of_row: NDArray[np.uint32]) -> None:
        self._by_row = by_row
        self._event_of_row = event_of_row
        self._asked: set[str] = set()
        self._ready: dict[str, pl.DataFrame] = {}

    def __getitem__(self, key: str) -> pl.DataFrame:
        if key in self._ready:
            return self._ready[key]
        frame = self.read(key)
        # What is asked for once, as by the loader, is not kept: it can be as large as the column of a timeline.
        if key in self._asked:
            self._ready[key] = frame
        self._asked.add(key)
        return frame

    def read(self, key: str) -> pl.DataFrame:
        """The same without keeping it, for those who go through all of them once."""
        frame = self.in_any_order(key)
        ids = frame["id"].to_numpy()
        return frame[np.argsort(ids, kind="stable")] if (ids[1:] < ids[:-1]).any() else frame

    def in_any_order(self, key: str) -> pl.DataFrame:
        """The same without the order, in less memory."""
        if key in self._ready:
            return self._ready[key]
        frame = self._by_row[key]
        ids = taken(self._event_of_row, frame["row"].to_numpy())
        values = frame["value"]
        is_event = ids != NOT_AN_EVENT
        if not is_event.all():
            ids, values = ids[is_event], values.filter(pl.Series(is_event))
        return pl.DataFrame([pl.Series("id", ids), _as_detail(values).alias("value")])

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_row)

    def __len__(self) -> int:
        return len(self._by_row)


def in_any_order(details: Mapping[str, pl.DataFrame], key: str) -> pl.DataFrame:
    """``details[key]`` in whatever order costs least."""
    return details.in_any_order(key) if isinstance(details, Details) else details[key]


def _as_detail(values: pl.Series) -> pl.Series:
    """Values in the dtype of the contract; parsers may hand on narrower integers."""
    return values if values.dtype == pl.Categorical else values.cast(pl.Int64)


@dataclass(frozen=True, slots=True)
class Lookups:
    """The frames that events point into, each as :mod:`traceview.schema` describes it."""

    processes: pl.DataFrame
    threads: pl.DataFrame
    devices: pl.DataFrame
    inputs: pl.DataFrame


def build(
    columns: dict[str, pl.Series],
    *,
    event_rows: NDArray[np.uint32],
    row_count: int,
    details: Mapping[str, pl.DataFrame],
    lookups: Lookups,
    run: RunInfo,
    report: ImportReport,
) -> Timeline:
    """Sort rows by start (ties: longer first, then outer kind first) and number them.

    Args:
        columns: Event columns by name, one value per event, file order. ``start_ns``, ``dur_ns``, ``kind`` and
            ``name`` must be there; any other column of :data:`traceview.schema.EVENTS` that is not becomes null.
            The dict is emptied on the way, so that each unsorted column is freed as soon as its sorted twin exists.
        event_rows: For each event, its row in the file, as ``details`` counts rows.
        row_count: Number of rows in the file.
        details: Argument name to ``(row, value)``.
        lookups: The frames that events point into.
        run: The file.
        report: What the parser skipped or repaired.
    """
    order = event_order(
        columns["start_ns"].to_numpy(), columns["dur_ns"].to_numpy(), columns["kind"].to_physical().to_numpy()
    )
    gather = pl.Series(order)
    for name in list(columns):
        columns[name] = columns.pop(name).gather(gather)
    return finished(
        columns,
        event_of_row=events_of_rows(taken(event_rows, order), row_count),
        details=details,
        lookups=lookups,
        run=run,
        report=report,
    )


def finished(
    columns: dict[str, pl.Series],
    *,
    event_of_row: NDArray[np.uint32],
    details: Mapping[str, pl.DataFrame],
    lookups: Lookups,
    run: RunInfo,
    report: ImportReport,
) -> Timeline:
    """A timeline of columns that are in the order of :func:`event_order`; see :func:`build`.

    Args:
        columns: Event columns by name, one value per event. The dict is emptied.
        event_of_row: As :func:`events_of_rows` returns it.
        details: Argument name to ``(row, value)``.
        lookups: The frames that events point into.
        run: The file.
        report: What the parser skipped or repaired.
    """
    count = len(columns["start_ns"])
    ready = [pl.Series("id", np.arange(count, dtype=np.uint32))]
    absent = []
    for column in schema.EVENTS.columns[1:]:
        values = columns.pop(column.name, None)
        if values is None:
            absent.append(pl.lit(None, column.dtype).alias(column.name))
        else:
            ready.append(values.cast(column.dtype).alias(column.name))
        del values
    # A literal takes no memory however many rows there are.
    events = pl.DataFrame(ready).with_columns(*absent).select(list(schema.EVENTS.dtypes))
    return Timeline(
        events=events,
        processes=lookups.processes,
        threads=lookups.threads,
        devices=lookups.devices,
        inputs=lookups.inputs,
        details=Details(details, event_of_row),
        runs=(run,),
        report=report,
    )


def sparse_column(count: int, ids: NDArray[Any], values: NDArray[Any], dtype: pl.DataType | DataTypeClass) -> pl.Series:
    """A column in which most events hold null.

    Such a column takes memory only where it holds values: the system gives pages to what is written to, and the rest of
    a column of nulls is not.

    Args:
        count: Number of events.
        ids: The events that hold a value.
        values: Their values.
        dtype: Of the column.
    """
    column = pl.repeat(None, count, dtype=dtype, eager=True)
    if len(ids):
        column.scatter(pl.Series(ids.astype(np.uint32, copy=False)), pl.Series(values).cast(dtype))
    return column


def taken(values: NDArray[_Item], index: NDArray[np.integer[Any]]) -> NDArray[_Item]:
    """``values[index]``. NumPy makes an index of eight bytes a row of any, so it is given little at a time."""
    out = np.empty(len(index), values.dtype)
    for begin in range(0, len(index), _AT_A_TIME):
        out[begin : begin + _AT_A_TIME] = values[index[begin : begin + _AT_A_TIME]]
    return out


def events_of_rows(rows: NDArray[np.uint32], row_count: int) -> NDArray[np.uint32]:
    """The event of each row of a file, :data:`NOT_AN_EVENT` for none.

    Args:
        rows: The row of each event.
        row_count: Number of rows in the file.
    """
    event_of_row = np.full(row_count, NOT_AN_EVENT, np.uint32)
    for begin in range(0, len(rows), _AT_A_TIME):
        part = rows[begin : begin + _AT_A_TIME]
        event_of_row[part] = np.arange(begin, begin + len(part), dtype=np.uint32)
    return event_of_row


def event_order(
    starts: NDArray[np.int64], durations: NDArray[np.int64], kinds: NDArray[np.integer[Any]]
) -> NDArray[np.uint32]:
    """The order of events: by start, ties the longer first, then the outer kind first.

    Args:
        starts: Start of each event, ns.
        durations: Duration of each, ns.
        kinds: Its kind, as an index into :data:`traceview.schema.KINDS`.
    """
    order = np.argsort(starts, kind="stable")
    sorted_starts = starts[order]
    tied = np.zeros(len(order), bool)
    if len(order):
        same = sorted_starts[1:] == sorted_starts[:-1]
        del sorted_starts
        tied[1:] |= same
        tied[:-1] |= same
    # Few rows tie in a nanosecond trace, so only those pay for a sort by three keys.
    rows = order[tied]
    order[tied] = rows[np.lexsort((_OUTER_FIRST[kinds[rows]], -durations[rows], starts[rows]))]
    return order.astype(np.uint32)
