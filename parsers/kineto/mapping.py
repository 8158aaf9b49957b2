"""From Kineto's own columns to the common timeline: kinds, processes, threads, devices, input signatures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import schema
from traceview.building import Lookups, build
from traceview.parsers.kineto import about
from traceview.parsers.kineto.categories import (
    COMPILE_NAME,
    DEVICE_CATEGORIES,
    HOST_CATEGORIES,
    MTIA_KINDS,
    OLD_ANNOTATION_NAME,
    SYNC_CALL,
)
from traceview.parsers.kineto.owners import Owners, find_owners
from traceview.timeline import Count, ImportReport, Note, Timeline, Trust

if TYPE_CHECKING:
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

_EPOCH_NS: Final = range(946_684_800 * 10**9, 4_102_444_800 * 10**9)
"""2000 to 2100: a timestamp in here is taken as Unix time when the file does not name its base."""

_STRAY_ZERO_NS: Final = 3_600 * 10**9
"""A row at time 0 is a profiler artefact when every other row is at least this far away."""


def to_timeline(raw: RawTrace, path: Path, *, run: int) -> Timeline:
    """Give a :class:`RawTrace` its meaning.

    Args:
        raw: As a reader returns it.
        path: The file, for :class:`~traceview.timeline.RunInfo`.
        run: Index of the file in this load.
    """
    events = raw.events
    counts = dict(raw.counts)
    kind = _kinds(events)
    keep, impossible = _possible_rows(events)
    counts.update(impossible)
    counts.update(_unsupported_phases(events))
    rows = np.flatnonzero(keep & (kind >= 0))
    on_device = _is_device(events)[rows]
    owners = find_owners(raw, rows, on_device, run=run)
    counts.update(owners.counts)

    start = events["ts_ns"].to_numpy()[rows]
    origin = int(start.min()) if len(start) else 0
    columns = {
        "start_ns": pl.Series(start - origin),
        "dur_ns": events["dur_ns"].gather(rows).fill_null(0),
        "kind": _kind_series(kind[rows]),
        "name": events["name"].gather(rows).fill_null(pl.lit("", pl.Categorical)),
        "process": owners.process,
        "thread": owners.thread,
        "device": owners.device,
        "stream": owners.stream,
        "correlation": owners.correlation,
        "bytes": _bytes(raw, rows),
        "flops": _sparse(raw, ("flops",), events.height).gather(rows),
    }
    columns["inputs"], inputs = _inputs(raw, rows)
    notes = [*about.notes(raw.head), *_own_notes(raw, rows, owners)]
    return build(
        columns,
        event_rows=rows,
        row_count=events.height,
        details=_details(raw),
        lookups=Lookups(
            processes=owners.processes,
            threads=owners.threads,
            devices=about.devices(raw.head, owners.ordinals, run=run),
            inputs=inputs,
        ),
        run=about.run_info(raw.head, path, origin_unix_ns=_origin_unix_ns(raw, origin, rows)),
        report=ImportReport(counts, tuple(notes), raw.truncated),
    )


def _details(raw: RawTrace) -> dict[str, pl.DataFrame]:
    """The arguments that did not become columns."""
    details = {key: frame for key, frame in raw.int_args.items() if key not in _COLUMN_ARGS}
    for key, frame in raw.text_args.items():
        if key not in _INPUT_ARGS.values():
            details[f"{key} (text)" if key in details else key] = frame
    return details


def _category_codes(events: pl.DataFrame, table: dict[str, str]) -> NDArray[np.int16]:
    """Kind number of each row by its lower-cased category, -1 for categories not in ``table``."""
    categories = events["cat"].drop_nulls().unique().cast(pl.String)
    codes = {name: schema.KINDS.index(table[name.lower()]) for name in categories if name.lower() in table}
    return (
        events.select(
            pl.col("cat").cast(pl.String).replace_strict(codes, default=-1, return_dtype=pl.Int16).fill_null(-1)
        )
        .to_series()
        .to_numpy()
    )


def _is_device(events: pl.DataFrame) -> NDArray[np.bool_]:
    return _category_codes(events, DEVICE_CATEGORIES) >= 0


def _kinds(events: pl.DataFrame) -> NDArray[np.int16]:
    """Kind number of each row that is an event; -1 for flows, metadata and anything else."""
    host = _category_codes(events, HOST_CATEGORIES)
    device = _category_codes(events, DEVICE_CATEGORIES)
    kind = np.where(device >= 0, device, host)
    phases = events["ph"].cast(pl.String)
    is_event = phases.is_in(["X", "i", "I", "C"]).to_numpy()
    other = schema.KINDS.index("other")
    kind = np.where(is_event & (kind < 0), other, kind)
    instant = is_event & (phases != "X").to_numpy()
    kind = np.where(instant, schema.KINDS.index("counter"), kind)
    kind = np.where(is_event, kind, np.int16(-1)).astype(np.int16)
    return _refine_by_name(events, kind)


def _refine_by_name(events: pl.DataFrame, kind: NDArray[np.int16]) -> NDArray[np.int16]:
    """Kinds that the category alone does not tell, looked up once per distinct name."""
    number = {name: index for index, name in enumerate(schema.KINDS)}
    table = (
        pl.DataFrame({"name": events["name"], "kind": kind})
        .with_row_index("row")
        .filter(pl.col("kind").is_in([number["api"], number["op"], number["annotation"], number["other"]]))
    )
    names = table["name"].drop_nulls().unique().cast(pl.String)
    api_to_sync = set(names.filter(names.str.contains(SYNC_CALL)))
    to_compile = set(names.filter(names.str.contains(COMPILE_NAME)))
    to_annotation = {name for name in names if OLD_ANNOTATION_NAME.match(name)}
    categories = events["cat"].cast(pl.String)
    mtia = (categories == "mtia_ccp_events").fill_null(value=False).to_numpy()
    for source, members, target in (
        ("api", api_to_sync, "sync"),
        ("op", to_compile, "compile"),
        ("annotation", to_compile, "compile"),
        ("op", to_annotation, "annotation"),
    ):
        if members:
            hit = table.filter(
                (pl.col("kind") == number[source]) & pl.col("name").cast(pl.String).is_in(list(members))
            )["row"].to_numpy()
            kind[hit] = number[target]
    if mtia.any():
        rows = np.flatnonzero(mtia)
        own = events["name"].gather(rows).cast(pl.String)
        kind[rows] = [number[MTIA_KINDS.get(name, "other")] for name in own]
    return kind


def _kind_series(numbers: NDArray[np.int16]) -> pl.Series:
    return pl.Series(numbers.astype(np.uint8)).cat.to(schema.Kind)


def _possible_rows(events: pl.DataFrame) -> tuple[NDArray[np.bool_], dict[str, Count]]:
    """Rows whose times can be true, and the count of those whose times cannot."""
    counts: dict[str, Count] = {}
    starts = events["ts_ns"].to_numpy()
    complete = (events["ph"].cast(pl.String) == "X").to_numpy()
    durations = events["dur_ns"].fill_null(0).to_numpy()
    negative = complete & (durations < 0)
    at_zero = complete & (starts == 0)
    elsewhere = starts[complete & ~at_zero & ~negative]
    if at_zero.any() and (not len(elsewhere) or elsewhere.min() < _STRAY_ZERO_NS):
        at_zero[:] = False
    missing = complete & events["dur_ns"].is_null().to_numpy()
    for key, mask in (
        ("lost-negative-duration", negative),
        ("lost-time-zero", at_zero & ~negative),
        ("duration-missing", missing),
    ):
        if mask.any():
            first = int(np.flatnonzero(mask)[0])
            counts[key] = Count(int(mask.sum()), str(events["name"][first])[:120])
    return ~negative & ~at_zero, counts


def _unsupported_phases(events: pl.DataFrame) -> dict[str, Count]:
    known = ["X", "i", "I", "C", "M", "s", "t", "f"]
    odd = events.filter(~pl.col("ph").cast(pl.String).is_in(known))
    if not odd.height:
        return {}
    return {"lost-unsupported-phase": Count(odd.height, f"ph {odd['ph'][0]!r}, name {odd['name'][0]!r}"[:120])}


def _sparse(raw: RawTrace, keys: tuple[str, ...], height: int) -> pl.Series:
    """An integer argument as a column over all rows of the file, null where absent; the first key wins."""
    values = np.zeros(height, np.int64)
    present = np.zeros(height, bool)
    for key in reversed(keys):
        if key in raw.int_args:
            rows = raw.int_args[key]["row"].to_numpy()
            values[rows] = raw.int_args[key]["value"].to_numpy()
            present[rows] = True
    if not present.any():
        return pl.Series([None], dtype=pl.Int64).new_from_index(0, height)
    frame = pl.DataFrame({"value": values, "present": present})
    return frame.select(pl.when("present").then("value")).to_series()


def _bytes(raw: RawTrace, rows: NDArray[np.intp]) -> pl.Series:
    values = _sparse(raw, ("bytes", "Bytes"), raw.events.height)
    return values.gather(rows)


def _inputs(raw: RawTrace, rows: NDArray[np.intp]) -> tuple[pl.Series, pl.DataFrame]:
    """Key of each event's input signature, and the distinct signatures."""
    height = raw.events.height
    parts: dict[str, pl.DataFrame] = {
        column: raw.text_args[arg] for column, arg in _INPUT_ARGS.items() if arg in raw.text_args
    }
    if not parts:
        return pl.Series([None], dtype=pl.UInt32).new_from_index(0, len(rows)), schema.INPUTS.empty()
    touched = np.unique(np.concatenate([part["row"].to_numpy() for part in parts.values()]))
    wide = pl.DataFrame({"row": touched.astype(np.uint32)})
    for column, part in parts.items():
        wide = wide.join(part.rename({"value": column}), on="row", how="left", maintain_order="left")
    for column in _INPUT_ARGS:
        if column not in parts:
            wide = wide.with_columns(pl.lit(None, pl.Categorical).alias(column))
    distinct = wide.select(list(_INPUT_ARGS)).unique(maintain_order=True).with_row_index("inputs")
    keyed = wide.join(distinct, on=list(_INPUT_ARGS), how="left", nulls_equal=True, maintain_order="left")
    key_of_row = np.full(height, -1, np.int64)
    key_of_row[keyed["row"].to_numpy()] = keyed["inputs"].to_numpy()
    keys = pl.Series(key_of_row[rows]).replace(-1, None).cast(pl.UInt32)
    return keys, distinct.select(
        pl.col("inputs").cast(pl.UInt32),
        *(_compact(distinct[column].cast(pl.String)).alias(column) for column in _INPUT_ARGS),
    )


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


def _origin_unix_ns(raw: RawTrace, origin: int, rows: NDArray[np.intp]) -> int | None:
    base = raw.head.get("baseTimeNanoseconds")
    if isinstance(base, int) and not isinstance(base, bool):
        return base + origin
    return origin if len(rows) and origin in _EPOCH_NS else None


def _own_notes(raw: RawTrace, rows: NDArray[np.intp], owners: Owners) -> list[Note]:
    notes = list(owners.notes)
    if raw.truncated:
        notes.append(
            Note("truncated", "The file ends before its own end: what follows the cut is missing.", Trust.LIMITED)
        )
    lost = sum(count.n for key, count in raw.counts.items() if key.startswith("lost-"))
    if lost:
        notes.append(
            Note("unreadable-events", f"{lost:,} stretches of the file could not be read as events.", Trust.LIMITED)
        )
    ranges = (raw.events["cat"].cast(pl.String) == "cuda_profiler_range").sum()
    if ranges:
        notes.append(
            Note(
                "cupti-range-profiler",
                f"Recorded with the CUPTI range profiler: {ranges:,} kernels are known by counters only, "
                "their durations include counter replay and are not used as timings.",
                Trust.LIMITED,
            )
        )
    if not len(rows):
        notes.append(Note("no-events", "The file holds metadata but no event."))
    return notes
