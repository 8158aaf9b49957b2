"""From Kineto's own columns to the common timeline: kinds, processes, threads, devices, input signatures."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import schema
from traceview.building import NO_KEY, Lookups, build, key_series
from traceview.count_words import losses
from traceview.losses import could_be_events
from traceview.parsers.kineto import about
from traceview.parsers.kineto.categories import (
    COMPILE_NAME,
    DEVICE_CATEGORIES,
    HOST_CATEGORIES,
    MTIA_KINDS,
    OLD_ANNOTATION_NAME,
    SYNC_CALL,
)
from traceview.parsers.kineto.owners import NULL, Owners, find_owners, int_arg, nullable
from traceview.timeline import Count, DeviceLoss, ImportReport, Note, Timeline, Trust

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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

_LONGEST_NS: Final = 24 * 3_600 * 10**9
"""No recording is longer than a day: profilers run out of memory within minutes."""

_TIMED_PHASES: Final = frozenset("XiIC")

_BUSY: Final = [schema.KINDS.index(kind) for kind in schema.BUSY_KINDS]

_VALUE_ARGS: Final = {"bytes": ("bytes", "Bytes"), "flops": ("flops",)}
"""Columns of the timeline that are one integer argument under one of these names."""

_PHASES: Final = frozenset("XiICMstf")

_EPOCH_NS: Final = range(946_684_800 * 10**9, 4_102_444_800 * 10**9)
"""2000 to 2100: a timestamp in here is taken as Unix time when the file does not name its base."""

_STRAY_ZERO_NS: Final = 3_600 * 10**9
"""A row at time 0 is a profiler artefact when every other row is at least this far away."""


def to_timeline(raw: RawTrace, path: Path, *, run: int) -> Timeline:
    """Give a :class:`RawTrace` its meaning.

    Args:
        raw: As a reader returns it. Its event columns are let go one by one if the caller keeps no reference, so that
            a large trace is never in memory twice.
        path: The file, for :class:`~traceview.timeline.RunInfo`.
        run: Index of the file in this load.
    """
    counts = dict(raw.counts)
    row_count = raw.events.height
    kind, on_device = _kinds(raw.events)
    keep, impossible = _possible_rows(raw.events)
    counts.update(impossible)
    counts.update(_unsupported_phases(raw.events))
    lost_work = int((~keep & on_device & np.isin(kind, _BUSY)).sum())
    # What could not be read as an event at all says nothing of what it was.
    unread = could_be_events(ImportReport(raw.counts))
    keep &= kind >= 0
    rows = np.flatnonzero(keep).astype(np.uint32)
    kind, on_device = kind[keep], on_device[keep]
    del keep
    owners = find_owners(raw, rows, on_device, run=run)
    counts.update(owners.counts)
    notes = [*about.notes(raw.head), *_own_notes(raw, rows, owners, counts)]
    head, truncated, details = raw.head, raw.truncated, _Details(raw)
    columns: dict[str, pl.Series] = {
        "kind": pl.Series(kind).cat.to(schema.Kind),
        "process": owners.process,
        "thread": owners.thread,
        "device": owners.device,
        "stream": owners.stream,
        "correlation": owners.correlation,
    }
    processes, threads, ordinals = owners.processes, owners.threads, owners.ordinals
    del owners  # or its columns would be held while their sorted twins are made
    for column, keys in _VALUE_ARGS.items():
        if any(key in raw.int_args for key in keys):
            columns[column] = _sparse(raw, keys, rows)
    source = {name: raw.events[name] for name in ("ts_ns", "dur_ns", "name")}
    texts = raw.text_args
    has_base = _whole(head.get("baseTimeNanoseconds"))
    del raw, kind, on_device
    columns["inputs"], inputs = _inputs(texts, row_count, rows)
    del texts
    chosen = pl.Series(rows)
    columns["name"] = source.pop("name").gather(chosen).fill_null(pl.lit("", pl.Categorical))
    columns["dur_ns"] = source.pop("dur_ns").gather(chosen).fill_null(0)
    start = source.pop("ts_ns").gather(chosen)
    origin = int(start.min() or 0)  # type: ignore[arg-type]  # Int64, so an int
    columns["start_ns"] = start - origin
    del start, chosen
    return build(
        columns,
        event_rows=rows,
        row_count=row_count,
        details=details,
        lookups=Lookups(
            processes=processes,
            threads=threads,
            devices=about.devices(head, ordinals, run=run),
            inputs=inputs,
        ),
        run=about.run_info(head, path, origin_unix_ns=_origin_unix_ns(has_base, origin, empty=not len(rows))),
        report=ImportReport(counts, tuple(notes), truncated, DeviceLoss(lost_work, lost_work + unread)),
    )


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


def _per_text(column: pl.Series, value_of: Callable[[str], int]) -> NDArray[np.int8]:
    """A small number for each row, worked out once per distinct text of a Categorical column; -1 for null."""
    distinct = column.drop_nulls().unique()
    codes = distinct.to_physical().to_numpy()
    absent = int(codes.max()) + 1 if len(codes) else 0
    table = np.full(absent + 1, -1, np.int8)
    table[codes] = [value_of(text) for text in distinct.cast(pl.String)]
    values: NDArray[np.int8] = table[column.to_physical().fill_null(absent).to_numpy()]
    return values


def _categories(events: pl.DataFrame) -> set[str]:
    return set(events["cat"].drop_nulls().unique().cast(pl.String))


def _kinds(events: pl.DataFrame) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
    """Kind number of each row, -1 for flows, metadata and anything else that is no event; and whether on a device."""
    number = {name: index for index, name in enumerate(schema.KINDS)}
    device = _per_text(events["cat"], lambda cat: number.get(DEVICE_CATEGORIES.get(cat.lower(), ""), -1))
    kind = _per_text(events["cat"], lambda cat: number.get(HOST_CATEGORIES.get(cat.lower(), ""), -1))
    on_device = device >= 0
    kind[on_device] = device[on_device]
    phase = _per_text(events["ph"], lambda ph: {"X": 0, "i": 1, "I": 1, "C": 1}.get(ph, -1))
    kind[(phase == 0) & (kind < 0)] = number["other"]
    kind[phase == 1] = number["counter"]
    kind[phase < 0] = -1
    _refine_by_name(events, kind, number)
    return kind, on_device


def _refine_by_name(events: pl.DataFrame, kind: NDArray[np.int8], number: dict[str, int]) -> None:
    """Set the kinds that the category alone does not tell."""
    sync_call, compile_name = re.compile(SYNC_CALL), re.compile(COMPILE_NAME)

    def meaning(name: str) -> int:
        if sync_call.search(name):
            return number["sync"]
        if compile_name.search(name):
            return number["compile"]
        return number["annotation"] if OLD_ANNOTATION_NAME.match(name) else -1

    told = _per_text(events["name"], meaning)
    for source, target in (
        ("api", "sync"),
        ("op", "compile"),
        ("annotation", "compile"),
        ("op", "annotation"),
    ):
        kind[(kind == number[source]) & (told == number[target])] = number[target]
    if "mtia_ccp_events" in _categories(events):
        mtia = _per_text(events["cat"], lambda cat: int(cat == "mtia_ccp_events")) == 1
        kind[mtia] = _per_text(events["name"], lambda name: number[MTIA_KINDS.get(name, "other")])[mtia]


def _possible_rows(events: pl.DataFrame) -> tuple[NDArray[np.bool_], dict[str, Count]]:
    """Rows whose times can be true, and the count of those whose times cannot."""
    counts: dict[str, Count] = {}
    starts = events["ts_ns"].fill_null(0).to_numpy()
    complete = _per_text(events["ph"], lambda ph: int(ph == "X")) == 1
    durations = events["dur_ns"].fill_null(0).to_numpy()
    negative = complete & (durations < 0)
    at_zero = complete & (starts == 0) & ~negative
    elsewhere = starts[complete & ~at_zero & ~negative]
    if at_zero.any() and (not len(elsewhere) or elsewhere.min() < _STRAY_ZERO_NS):
        at_zero[:] = False
    # Far from the middle of the recording: a clock that was never set, or digits that were damaged.
    middle = int(np.median(elsewhere)) if len(elsewhere) else 0
    far = (starts < middle - _LONGEST_NS) | (starts > middle + _LONGEST_NS) | (durations > _LONGEST_NS)
    far &= (_per_text(events["ph"], lambda ph: int(ph in _TIMED_PHASES)) == 1) & ~negative & ~at_zero
    missing = complete & events["dur_ns"].is_null().to_numpy()
    for key, mask in (
        ("lost-negative-duration", negative),
        ("lost-time-zero", at_zero),
        ("lost-time-far-off", far),
        ("duration-missing", missing),
    ):
        if mask.any():
            first = int(np.flatnonzero(mask)[0])
            counts[key] = Count(int(mask.sum()), str(events["name"][first])[:120])
    return ~negative & ~at_zero & ~far, counts


def _unsupported_phases(events: pl.DataFrame) -> dict[str, Count]:
    odd = np.flatnonzero(_per_text(events["ph"], lambda ph: int(ph in _PHASES)) == 0)
    if not len(odd):
        return {}
    first = events.row(int(odd[0]), named=True)
    return {"lost-unsupported-phase": Count(len(odd), f"ph {first['ph']!r}, name {first['name']!r}"[:120])}


def _sparse(raw: RawTrace, keys: tuple[str, ...], rows: NDArray[np.uint32]) -> pl.Series:
    """An integer argument as a column of the kept rows, null where absent; the first key wins."""
    values = int_arg(raw, keys[0], rows)
    for key in keys[1:]:
        values = np.where(values == NULL, int_arg(raw, key, rows), values)
    return nullable(values)


def _inputs(
    args: Mapping[str, pl.DataFrame], row_count: int, rows: NDArray[np.uint32]
) -> tuple[pl.Series, pl.DataFrame]:
    """Key of each event's input signature, and the distinct signatures."""
    parts = {column: args[arg] for column, arg in _INPUT_ARGS.items() if arg in args}
    if not parts:
        return pl.Series([None], dtype=pl.UInt32).new_from_index(0, len(rows)), schema.INPUTS.empty()
    touched = np.zeros(row_count, np.bool_)
    for part in parts.values():
        touched[part["row"].to_numpy()] = True
    position = np.cumsum(touched, dtype=np.uint32) - 1
    # Codes of Categorical texts are compared, never the texts: equal text has an equal code.
    codes: dict[str, NDArray[np.uint32]] = {}
    for column, part in parts.items():
        codes[column] = np.full(int(touched.sum()), NO_KEY, np.uint32)
        codes[column][position[part["row"].to_numpy()]] = part["value"].to_physical().to_numpy()
    del position
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
    del codes
    key_of_row = np.full(row_count, NO_KEY, np.uint32)
    key_of_row[touched] = signature
    return key_series(key_of_row[rows]), pl.DataFrame({"inputs": np.arange(len(first), dtype=np.uint32)}).select(
        "inputs", *texts
    )


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


def _own_notes(raw: RawTrace, rows: NDArray[np.uint32], owners: Owners, counts: dict[str, Count]) -> list[Note]:
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
    if "cuda_profiler_range" in _categories(raw.events):
        ranges = int((_per_text(raw.events["cat"], lambda cat: int(cat == "cuda_profiler_range")) == 1).sum())
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
