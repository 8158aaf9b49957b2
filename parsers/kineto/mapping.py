"""From Kineto's own columns to the common timeline: kinds, processes, threads, devices, input signatures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import schema
from traceview.building import (
    NO_KEY,
    NOT_AN_EVENT,
    Lookups,
    event_order,
    events_of_rows,
    finished,
    sparse_column,
    taken,
)
from traceview.count_words import losses
from traceview.losses import could_be_events
from traceview.parsers.kineto import about
from traceview.parsers.kineto.kinds import TextColumn, kinds, possible_rows, unsupported_phases
from traceview.parsers.kineto.owners import Owners, Rows, find_owners, int_arg
from traceview.parsers.kineto.raw import NULL, NULL_CODE
from traceview.timeline import Count, DeviceLoss, ImportReport, Note, Timeline, Trust

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from traceview.parsers.kineto.raw import RawTrace

_INPUT_ARGS: Final = {
    "dims": "Input Dims",
    "dtypes": "Input type",
    "strides": "Input Strides",
    "concrete": "Concrete Inputs",
}
_COLUMN_ARGS: Final = frozenset({"correlation", "device", "stream", "bytes", "Bytes", "flops"})
"""Integer arguments that are columns of the timeline, so not repeated as details."""

_BUSY: Final = [schema.KINDS.index(kind) for kind in schema.BUSY_KINDS]

_VALUE_ARGS: Final = {"bytes": ("bytes", "Bytes"), "flops": ("flops",)}
"""Columns of the timeline that are one integer argument under one of these names."""

_EPOCH_NS: Final = range(946_684_800 * 10**9, 4_102_444_800 * 10**9)
"""2000 to 2100: a timestamp in here is taken as Unix time when the file does not name its base."""


def to_timeline(raw: RawTrace, path: Path, *, run: int) -> Timeline:
    """Give a :class:`RawTrace` its meaning.

    Args:
        raw: As a reader returns it. Its event columns are let go if the caller keeps no reference.
        path: The file, for :class:`~traceview.timeline.RunInfo`.
        run: Index of the file in this load.
    """
    counts = dict(raw.counts)
    row_count = raw.events.height
    cat, ph = TextColumn(raw.events.array("cat")), TextColumn(raw.events.array("ph"))
    kind, on_device = kinds(raw.events, cat, ph)
    keep, impossible = possible_rows(raw.events, ph)
    counts.update(impossible)
    counts.update(unsupported_phases(raw.events, ph))
    lost_work = int((~keep & on_device & np.isin(kind, _BUSY)).sum())
    # What could not be read as an event at all says nothing of what it was.
    unread = could_be_events(ImportReport(raw.counts))
    keep &= kind >= 0
    rows, start, duration = _in_order(raw, np.flatnonzero(keep).astype(np.uint32), kind)
    del keep
    kind, on_device = taken(kind, rows), taken(on_device, rows)
    event_of_row = events_of_rows(rows, row_count)
    owners = find_owners(raw, Rows(rows, event_of_row, on_device), cat, ph, run=run)
    counts.update(owners.counts)
    notes = [*about.notes(raw.head), *_own_notes(raw, cat, rows, owners, counts)]
    origin = int(start[0]) if len(start) else 0
    start -= origin
    columns: dict[str, pl.Series] = {
        "kind": pl.Series(kind).cat.to(schema.Kind),
        "process": owners.process,
        "thread": owners.thread,
        "device": owners.device,
        "stream": owners.stream,
        "correlation": owners.correlation,
        "start_ns": pl.Series(start),
        "dur_ns": pl.Series(duration),
        "name": _names(raw, rows),
    }
    del kind, on_device, start, duration, cat, ph
    for column, keys in _VALUE_ARGS.items():
        if any(key in raw.int_args for key in keys):
            columns[column] = _value_column(raw, keys, event_of_row, len(rows))
    columns["inputs"], inputs = _inputs(raw.text_args, event_of_row, len(rows))
    return finished(
        columns,
        event_of_row=event_of_row,
        details=_Details(raw),
        lookups=Lookups(
            processes=owners.processes,
            threads=owners.threads,
            devices=about.devices(raw.head, owners.ordinals, run=run),
            inputs=inputs,
        ),
        run=about.run_info(
            raw.head,
            path,
            origin_unix_ns=_origin_unix_ns(_whole(raw.head.get("baseTimeNanoseconds")), origin, empty=not len(rows)),
        ),
        report=ImportReport(counts, tuple(notes), raw.truncated, DeviceLoss(lost_work, lost_work + unread)),
    )


def _in_order(
    raw: RawTrace, rows: NDArray[np.uint32], kind: NDArray[np.int8]
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]:
    """The rows that become events in the order of events, with start and duration of each."""
    start = taken(raw.events.array("ts_ns"), rows)
    duration = taken(raw.events.array("dur_ns"), rows)
    duration[duration == NULL] = 0
    order = event_order(start, duration, taken(kind, rows))
    return taken(rows, order), taken(start, order), taken(duration, order)


def _names(raw: RawTrace, rows: NDArray[np.uint32]) -> pl.Series:
    codes = pl.Series(taken(raw.events.array("name"), rows))
    names = codes.cat.to(pl.Categorical)
    if not (nameless := codes == NULL_CODE).any():
        return names
    return pl.select(pl.when(~nameless).then(names).otherwise(pl.lit("", pl.Categorical))).to_series()


class _Details(Mapping[str, pl.DataFrame]):
    """The arguments that did not become columns, by row of the file; each is made a frame when it is asked for."""

    def __init__(self, raw: RawTrace) -> None:
        self._ints = raw.int_args
        self._texts = raw.text_args
        self._sources = {key: (self._ints, key) for key in raw.int_args if key not in _COLUMN_ARGS}
        for key in raw.text_args:
            if key not in _INPUT_ARGS.values():
                self._sources[f"{key} (text)" if key in self._sources else key] = (self._texts, key)

    def __getitem__(self, key: str) -> pl.DataFrame:
        source, name = self._sources[key]
        return source[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


def _value_column(raw: RawTrace, keys: tuple[str, ...], event_of_row: NDArray[np.uint32], count: int) -> pl.Series:
    """An integer argument as a column, null where absent; the first key wins."""
    found = [int_arg(raw, key, event_of_row) for key in reversed(keys)]
    return sparse_column(
        count, np.concatenate([one.ids for one in found]), np.concatenate([one.values for one in found]), pl.Int64
    )


def _inputs(
    args: Mapping[str, pl.DataFrame], event_of_row: NDArray[np.uint32], count: int
) -> tuple[pl.Series, pl.DataFrame]:
    """Key of each event's input signature, and the distinct signatures."""
    parts = {column: args[arg] for column, arg in _INPUT_ARGS.items() if arg in args}
    if not parts:
        return sparse_column(count, np.zeros(0), np.zeros(0), pl.UInt32), schema.INPUTS.empty()
    touched = np.zeros(len(event_of_row), np.bool_)
    for part in parts.values():
        touched[part["row"].to_numpy()] = True
    rows = np.flatnonzero(touched).astype(np.uint32)
    del touched
    # Codes of Categorical texts are compared, never the texts: equal text has an equal code.
    codes: dict[str, NDArray[np.uint32]] = {}
    for column, part in parts.items():
        codes[column] = np.full(len(rows), NO_KEY, np.uint32)
        codes[column][np.searchsorted(rows, part["row"].to_numpy())] = part["value"].to_physical().to_numpy()
    first, signature = _distinct_rows(list(codes.values()))
    distinct = {column: pl.Series(of_row[first]) for column, of_row in codes.items()}
    texts = [
        (
            _compact(_texts_of(distinct[column], parts[column]["value"]))
            if column in parts
            else pl.lit(None, pl.String)
        ).alias(column)
        for column in _INPUT_ARGS
    ]
    del codes, parts
    ids = taken(event_of_row, rows)
    is_event = ids != NOT_AN_EVENT
    frame = pl.DataFrame({"inputs": np.arange(len(first), dtype=np.uint32)}).select("inputs", *texts)
    return sparse_column(count, ids[is_event], signature[is_event], pl.UInt32), frame


def _distinct_rows(columns: list[NDArray[np.uint32]]) -> tuple[NDArray[np.intp], NDArray[np.uint32]]:
    """First row of each distinct combination, in the order of the rows, and the combination of each row."""
    key = columns[0].astype(np.int64)
    for column in columns[1:]:
        # Distinct combinations are few, so their numbers leave room for the next column beside them.
        key = np.unique(key, return_inverse=True)[1] << 32 | column
    _, first, index = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), np.uint32)
    place[order] = np.arange(len(order), dtype=np.uint32)
    return first[order], place[index]


def _texts_of(codes: pl.Series, source: pl.Series) -> pl.Series:
    """The texts of Categorical codes that occur in ``source``; :data:`NO_KEY` is null."""
    known = source.unique()
    table = pl.DataFrame({"code": known.to_physical(), "text": known.cast(pl.String)})
    return codes.alias("code").to_frame().join(table, on="code", how="left", maintain_order="left")["text"]


def _compact(texts: pl.Series) -> pl.Series:
    """JSON texts without their white space: some writers indent every number of a shape onto a line of its own."""
    spaced = texts.drop_nulls().unique()
    compact: dict[str, str] = {}
    for text in spaced.filter(spaced.str.contains(r"\s")):
        try:
            compact[text] = json.dumps(json.loads(text), separators=(",", ":"))
        except (ValueError, RecursionError):
            continue
    return texts.replace(compact) if compact else texts


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _origin_unix_ns(base: int | None, origin: int, *, empty: bool) -> int | None:
    if base is not None:
        return base + origin
    return None if empty or origin not in _EPOCH_NS else origin


def _own_notes(
    raw: RawTrace, cat: TextColumn, rows: NDArray[np.uint32], owners: Owners, counts: dict[str, Count]
) -> list[Note]:
    notes = list(owners.notes)
    if raw.damage:
        notes.append(Note("damaged", f"The file is damaged: {raw.damage}.", Trust.LIMITED))
    elif raw.truncated:
        notes.append(
            Note("truncated", "The file ends before its own end: what follows the cut is missing.", Trust.LIMITED)
        )
    lost = sum(count.n for key, count in counts.items() if key.startswith("lost-"))
    if lost:
        notes.append(
            Note(
                "unreadable-events",
                f"{lost:,} piece{'s' if lost != 1 else ''} of the file could not be used ({losses(counts)}).",
                Trust.LIMITED,
            )
        )
    if "duration-missing" in counts:
        missing = counts["duration-missing"].n
        notes.append(
            Note(
                "duration-missing",
                f"{missing:,} event{'s' if missing != 1 else ''} without a duration count as instants: "
                "busy time is a lower bound.",
                Trust.LIMITED,
            )
        )
    if "cuda_profiler_range" in cat.texts:
        ranges = cat.count("cuda_profiler_range")
        notes.append(
            Note(
                "cupti-range-profiler",
                f"Recorded with the CUPTI range profiler: {ranges:,} kernels are known by counters only, "
                "their durations include counter replay and are not used as timings.",
                Trust.LIMITED,
            )
        )
    if not len(rows):
        notes.append(Note("no-events", "The file holds metadata but no event.", Trust.LIMITED))
    return notes
