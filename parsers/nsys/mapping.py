"""From the tables of an export to the common timeline."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import schema
from traceview.building import Lookups, build
from traceview.count_words import losses
from traceview.parsers.nsys import device_work, host_calls, nvtx
from traceview.parsers.nsys import tables as t
from traceview.parsers.nsys.about import About, missing_notes, read_about, unread_note
from traceview.parsers.nsys.details import LazyDetails
from traceview.parsers.nsys.identity import Owners, read_gpus
from traceview.parsers.nsys.names import Names
from traceview.parsers.nsys.part import Part, drop_far_off
from traceview.timeline import Count, DeviceLoss, ImportReport, Note, RunInfo, Timeline, Trust

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from traceview.parsers.nsys.tables import Tables

    Progress = Callable[[float], None]

_COLUMNS: Final = {**device_work.COLUMNS, **host_calls.COLUMNS, t.NVTX: nvtx.INTS}
_TEXTS: Final = {t.NVTX: nvtx.TEXTS}

_COLUMN_DEFAULTS: Final = ("process", "thread", "device", "stream", "correlation", "bytes", "inputs")


def to_timeline(reopen: Callable[[], Tables], path: Path, *, run: int, progress: Progress | None) -> Timeline:
    """Read an export.

    Args:
        reopen: Opens the tables; called again when details are asked for.
        path: The file or folder as given.
        run: Index of the file in this load.
        progress: Called with the share that was read.
    """
    tables = reopen()
    try:
        return _read(tables, reopen, path, run=run, progress=progress)
    finally:
        tables.close()


def _read(tables: Tables, reopen: Callable[[], Tables], path: Path, *, run: int, progress: Progress | None) -> Timeline:
    about = read_about(tables)
    frames = _frames(tables, progress)
    available = {table: set(tables.columns(table)) for table in frames}
    names = Names(tables, [frame[name] for frame in frames.values() for name in t.NAME_IDS if name in frame.columns])
    if t.KERNEL in frames:
        frames[t.KERNEL] = device_work.with_known_names(frames[t.KERNEL], tables, names)
    owners = Owners(read_gpus(tables, device_work.device_of_kernel_pairs(frames)))
    domains = nvtx.domains(frames[t.NVTX], names) if t.NVTX in frames else {}
    parts, inputs, thread_names = _parts(frames, names, owners, tables)
    counts = _counts(tables, names, about, parts)
    lost = sum(_lost_work(tables, table, parts) for table in t.WORK_TABLES)
    owners.add_idle_devices()
    lookups = Lookups(**owners.frames(tables, names, thread_names, run), inputs=inputs)
    notes = _notes(tables, about, parts, owners, counts, lookups.devices.height)
    offsets, rows = {}, 0
    for table, part in parts.items():
        offsets[table], rows = rows, rows + part.rows
    origin = _close_open_ranges(parts)
    event_rows = [part.row + np.uint32(offsets[table]) for table, part in parts.items()]
    return build(
        _joined(list(parts.values()), origin),
        event_rows=np.concatenate(event_rows) if event_rows else np.zeros(0, np.uint32),
        row_count=rows,
        details=LazyDetails(reopen, tables.path, offsets, available, domains),
        lookups=lookups,
        run=_run_info(about, path, origin, lookups.processes, empty=not any(part.height for part in parts.values())),
        report=ImportReport(counts, tuple(notes), device_loss=DeviceLoss(lost, lost)),
    )


def _frames(tables: Tables, progress: Progress | None) -> dict[str, pl.DataFrame]:
    """The columns that are needed of each table that has rows."""
    rows = {table: count for table in t.EVENT_TABLES if (count := tables.rows(table))}
    whole = sum(rows.values()) or 1
    done = 0
    frames: dict[str, pl.DataFrame] = {}

    def read(table: str) -> pl.DataFrame:
        return tables.read(table, _COLUMNS[table], _TEXTS.get(table, ()))

    with ThreadPoolExecutor(2) as pool:  # the Arrow driver lets go of the interpreter, so two tables read at once
        for table, frame in zip(rows, pool.map(read, rows), strict=True):
            done += rows[table]
            if frame.height:
                frames[table] = frame
            if progress:
                progress(0.9 * done / whole)
    return frames


def _parts(
    frames: dict[str, pl.DataFrame], names: Names, owners: Owners, tables: Tables
) -> tuple[dict[str, Part], pl.DataFrame, dict[int, str]]:
    """Each table as a part. A frame is let go as soon as its part exists."""
    parts: dict[str, Part] = {}
    inputs, thread_names = schema.INPUTS.empty(), {}
    for table in list(frames):
        frame = _with_process(frames.pop(table), tables)
        if table == t.KERNEL:
            part = device_work.kernels(frame, names, owners)
        elif table == t.MEMCPY:
            part = device_work.copies(frame, owners)
        elif table == t.MEMSET:
            part = device_work.fills(frame, owners)
        elif table == t.SYNCHRONIZATION:
            part = device_work.waits(frame, owners)
        elif table == t.GRAPH_TRACE:
            part = device_work.graphs(frame, owners)
        elif table == t.CUDA_EVENT:
            part = device_work.cuda_events(frame, owners)
        elif table == t.RUNTIME:
            part = host_calls.calls(frame, names, owners)
        elif table == t.NVTX:
            seen = nvtx.events(frame, names, owners, ends_recorded="end" in tables.columns(t.NVTX))
            part, inputs, thread_names = seen.part, seen.inputs, seen.thread_names
        else:
            part = host_calls.ranges(table, frame, names, owners)
        parts[table] = part
        del frame
    host_calls.drop_repeated(parts)
    return parts, inputs, thread_names


def _with_process(frame: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Device rows of exports without ``globalPid``: with one process in the export they are its."""
    if "globalPid" not in frame.columns or frame["globalPid"].null_count() < frame.height:
        return frame
    tids = tables.read(t.RUNTIME, ("globalTid",))["globalTid"].drop_nulls()
    pids = pl.Series(tids.to_numpy() & ~np.int64(0xFFFFFF)).unique()
    if len(pids) != 1:
        return frame
    return frame.with_columns(globalPid=pl.lit(int(pids[0]), pl.Int64))


def _counts(tables: Tables, names: Names, about: About, parts: dict[str, Part]) -> dict[str, Count]:
    report = ImportReport(dict(tables.counts))
    more = [names.missing, about.counts, *(part.counts for part in parts.values())]
    more += [device_work.opaque_twice(parts), drop_far_off(list(parts.values()))]
    for counts in more:
        report = report + ImportReport(counts)
    return dict(report.counts)


def _unread_table(table: str, why: str) -> Note:
    """A table that is there and cannot be read; how many rows it has is not known."""
    if table in t.WORK_TABLES:
        text = f"The table {table} cannot be read ({why}): device work is missing, and times are lower bounds."
        return Note("device-work-lost", text, Trust.POOR)
    return Note("table-unread", f"The table {table} cannot be read ({why}): what it holds is missing.", Trust.LIMITED)


def _lost_work(tables: Tables, table: str, parts: dict[str, Part]) -> int:
    """Rows of a table of device work that are in no device's work: unread, without a time, or without a device."""
    part = parts.get(table)
    placed = part.height - part.columns["device"].null_count() if part is not None else 0
    return max(tables.rows(table) - placed, 0)


def _notes(
    tables: Tables, about: About, parts: dict[str, Part], owners: Owners, counts: dict[str, Count], devices: int
) -> list[Note]:
    notes = [*about.notes, *owners.gpus.notes(devices)]
    lost = sum(count.n for kind, count in counts.items() if kind.startswith("lost-"))
    if lost:
        text = f"{lost:,} rows, fields or tables of the export could not be used ({losses(counts)})."
        notes.append(Note("unreadable-events", text, Trust.LIMITED))
    notes += [_unread_table(table, why) for table, why in sorted(tables.unread.items())]
    if "duration-missing" in counts:
        number = counts["duration-missing"].n
        text = f"{number:,} device rows without an end count as instants: busy time is a lower bound."
        notes.append(Note("duration-missing", text, Trust.LIMITED))
    if "call-without-end" in counts:
        number = counts["call-without-end"].n
        text = f"{number:,} host calls and ranges without an end count as instants: what they enclose is not known."
        notes.append(Note("call-without-end", text, Trust.LIMITED))
    if "range-without-thread" in counts:
        number = counts["range-without-thread"].n
        text = f"{number:,} ranges do not say on which thread they are: what they enclose is not known."
        notes.append(Note("range-without-thread", text, Trust.LIMITED))
    if "open-range" in counts:
        text = f"{counts['open-range'].n:,} ranges were open when the recording ended; they last until its end."
        notes.append(Note("open-ranges", text))
    if "unknown-value" in counts:
        seen = counts["unknown-value"]
        text = f"{seen.n:,} fields hold values that are newer than this reader ({seen.example}, …)."
        notes.append(Note("unknown-values", text))
    notes += missing_notes(about, {table: part.height for table, part in parts.items()})
    unread = unread_note(tables)
    return [*notes, unread] if unread else notes


def _close_open_ranges(parts: dict[str, Part]) -> int:
    """Let open ranges end with the recording; return the first start, ns of the session."""
    filled = [part for part in parts.values() if part.height]
    if not filled:
        return 0
    ends = [part.columns["start_ns"] + part.columns["dur_ns"] for part in filled]
    last = max(int(end.max()) for end in ends)  # type: ignore[arg-type]  # Int64, not empty
    for part in filled:
        if part.open_end is not None:
            start, duration = part.columns["start_ns"], part.columns["dur_ns"]
            part.columns["dur_ns"] = duration.zip_with(pl.Series(~part.open_end), last - start)
    return min(int(part.columns["start_ns"].min()) for part in filled)  # type: ignore[arg-type]


def _joined(parts: list[Part], origin: int) -> dict[str, pl.Series]:
    """The columns of all parts one after another; parts are emptied on the way."""
    kinds = np.concatenate([part.kind for part in parts]) if parts else np.zeros(0, np.int8)
    columns = {"kind": pl.Series(kinds).cat.to(schema.Kind)}
    for name in ("start_ns", "dur_ns", "name", *_COLUMN_DEFAULTS):
        pieces = [part.columns.pop(name, None) for part in parts]
        dtype = schema.EVENTS.dtypes[name]
        if all(piece is None for piece in pieces):
            if name in ("start_ns", "dur_ns", "name"):
                columns[name] = pl.Series(name, [], dtype=dtype)
            continue
        ready = [
            pl.Series([None], dtype=dtype).new_from_index(0, part.height)
            if piece is None
            else piece.cast(dtype).alias("")
            for piece, part in zip(pieces, parts, strict=True)
        ]
        columns[name] = pl.concat([piece.alias("") for piece in ready], rechunk=True)
    if parts:
        columns["start_ns"] = columns["start_ns"] - origin
    return columns


def _run_info(about: About, path: Path, origin: int, processes: pl.DataFrame, *, empty: bool) -> RunInfo:
    return RunInfo(
        path=path,
        format="nsys",
        producer="Nsight Systems",
        producer_version=about.version,
        origin_unix_ns=None if empty or about.unix_zero_ns is None else about.unix_zero_ns + origin,
        rank=processes["rank"][0] if processes.height == 1 else None,
        metadata=about.metadata,
    )
