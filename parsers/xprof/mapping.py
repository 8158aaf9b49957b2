"""From a :class:`.space.Space` to the common timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from traceview import schema
from traceview.building import NO_KEY, Lookups, build, key_series
from traceview.capture_info import MARK_PREFIX
from traceview.timeline import Count, ImportReport, Note, Timeline, Trust

from . import about, device_rows, host_rows, launch_keys
from .details import NONE, StatDetails
from .lanes import METADATA_PLANE, Lane, Owner, lane_of, odd_device, place_of, thread_of
from .op_keys import find_origins
from .programs import Programs
from .rows import KIND, NULL, has, rows_of
from .stats import whole

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from .rows import PlaneRows
    from .source import SourceFile
    from .space import Losses, Plane, Space

_LONGEST_NS: Final = 24 * 3_600 * 10**9
"""No recording is longer than a day."""


class _Threads:
    """Keys of host threads, handed out as they are met."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._keys: dict[tuple[int | None, str], int] = {}

    def key(self, tid: int | None, name: str) -> int:
        """Key of a thread; lines with the same id and name are one thread."""
        if (tid, name) not in self._keys:
            self._keys[tid, name] = len(self.rows)
            self.rows.append({"thread": len(self.rows), "process": 0, "tid": tid, "name": name})
        return self._keys[tid, name]


def to_timeline(
    space: Space, path: Path, *, run: int, source: SourceFile, notes: tuple[Note, ...] = (), truncated: bool = False
) -> Timeline:
    """Give a space its meaning.

    Args:
        space: The planes. Their arrays are let go as they are used up.
        path: The file, for :class:`~traceview.timeline.RunInfo`.
        run: Index of the file in this load.
        source: The file, for what is read when asked for.
        notes: What its reader has to say already.
        truncated: Its reader knows that the end is missing.
    """
    programs = Programs(source)
    threads = _Threads()
    parts: list[PlaneRows] = []
    row_count = 0
    for plane in space.planes:
        place = place_of(plane.name)
        if plane.name == METADATA_PLANE:
            programs.add_plane(plane)
        if place.owner is not Owner.NONE:
            parts.append(rows_of(plane, place, row_count))
            row_count += len(plane)
    counts = {kind: Count(n, example) for kind, (n, example) in space.losses.counts.items()}
    beside = _beside_a_core(parts)
    device_list, tally = _fill(parts, beside, threads, run=run, source=source)
    hosts = [rows for rows in parts if rows.place.owner is Owner.HOST]
    launched = [
        rows for at, rows in enumerate(parts) if rows.place.owner in (Owner.TPU, Owner.GPU) and at not in beside
    ]
    tally |= launch_keys.link(hosts, launched)
    counts.update({kind: Count(n) for kind, n in tally.items() if n})
    impossible = _drop_impossible(parts, counts)
    lost = about.loss_notes(counts, *_device_rows_lost(parts, impossible, space.losses))
    origins, origin_of = find_origins(parts, programs, row_count)
    all_notes = (*notes, *about.message_notes(space), *lost, *_shape_notes(parts, programs, origins.program_ids()))
    origin_ns = min((int(rows.start_ns[rows.keep].min()) for rows in parts if rows.keep.any()), default=0)
    run_info = about.run_info(space, path, origin_ns=origin_ns)
    exact = [(rows.base, rows.start_ps, rows.plane.duration_ps) for rows in parts]
    details = StatDetails([(rows.base, rows.plane) for rows in parts], origins, origin_of, exact, source)
    lookups = Lookups(
        processes=_processes(space, run=run),
        threads=pl.DataFrame(threads.rows, schema=schema.THREADS.dtypes),
        devices=about.devices_frame(device_list),
        inputs=schema.INPUTS.empty(),
    )
    for rows in parts:
        rows.plane.offset_ps = np.empty(0, np.int64)
    columns, event_rows = _columns(parts, origin_ns)
    return build(
        columns,
        event_rows=event_rows,
        row_count=row_count,
        details=details,
        lookups=lookups,
        run=run_info,
        report=ImportReport(counts, all_notes, truncated or space.cut_at is not None),
    )


def _beside_a_core(parts: list[PlaneRows]) -> dict[int, int]:
    """Places of the planes of sparse cores to that of the plane of the core that they work for.

    They run what the core hands to them (lookups, collectives), and the core waits for it where it must. As devices of
    their own they would stand idle most of the time, which says nothing; XProf too counts the core alone.
    """
    cores = {
        rows.place.ordinal: at
        for at, rows in enumerate(parts)
        if rows.place.owner is Owner.TPU
        and rows.place.sparse_core is None
        and any(line.stop > line.first and lane_of(rows.place, line) is Lane.OPS for line in rows.plane.lines)
    }
    return {
        at: cores[rows.place.ordinal]
        for at, rows in enumerate(parts)
        if rows.place.sparse_core is not None and rows.place.ordinal in cores and len(rows)
    }


def _fill(
    parts: list[PlaneRows], beside: dict[int, int], threads: _Threads, *, run: int, source: SourceFile
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Meaning of every row; the devices, and counts of what was left out."""
    device_list: list[dict[str, Any]] = []
    tally: dict[str, int] = {}
    key_of: dict[int, int] = {}
    for at, rows in enumerate(parts):
        if rows.place.owner in (Owner.GPU, Owner.TPU) and at not in beside:
            key_of[at] = len(device_list)
            device_list.append(about.device_row(rows.plane, rows.place, key=len(device_list), run=run))
            _add(tally, device_rows.fill(rows, len(device_list) - 1, source))
    for at, core in beside.items():
        _add(tally, device_rows.fill_beside(parts[at], key_of[core], source))
    accelerated = any(rows.place.owner in (Owner.GPU, Owner.TPU) and len(rows) for rows in parts)
    first_cpu = len(device_list)
    used: set[int] = set()
    for rows in parts:
        if rows.place.owner is Owner.HOST:
            # Where a GPU or TPU is recorded, a host event with an HLO op is the launch of that op.
            _add(tally, host_rows.fill(rows, threads.key, first_cpu=None if accelerated else first_cpu))
            used.update(np.unique(rows.device[rows.device != NO_KEY]).tolist())
        elif rows.place.owner is Owner.OTHER:
            for line in rows.plane.lines:
                rows.thread[line.first : line.stop] = threads.key(*thread_of(rows.plane, line))
            _add(tally, {"unknown-plane-row": len(rows)})
    device_list += [
        about.cpu_row(key=key, run=run, ordinal=key - first_cpu) for key in range(first_cpu, max(used, default=-1) + 1)
    ]
    return device_list, tally


def _add(tally: dict[str, int], more: dict[str, int]) -> None:
    for kind, n in more.items():
        tally[kind] = tally.get(kind, 0) + n


def _drop_impossible(parts: list[PlaneRows], counts: dict[str, Count]) -> list[NDArray[np.bool_]]:
    """Leave out rows whose times cannot be true: negative, or more than a day from the middle of the recording.

    Returns:
        For each part a flag per row, set for those that it leaves out.
    """
    middle = _middle_ns(parts)
    dropped = []
    for rows in parts:
        negative = rows.dur_ns < 0
        far = (rows.start_ns < middle - _LONGEST_NS) | (rows.start_ns > middle + _LONGEST_NS)
        far |= rows.dur_ns > _LONGEST_NS
        far &= ~negative
        for kind, mask in (("lost-negative-duration", negative & rows.keep), ("lost-time-far-off", far & rows.keep)):
            if mask.any():
                example = rows.plane.names[rows.plane.name_of[int(np.flatnonzero(mask)[0])]].name[:120]
                before = counts.get(kind, Count(0, example))
                counts[kind] = Count(int(mask.sum()) + before.n, before.example)
        dropped.append((negative | far) & rows.keep)
        if dropped[-1].any():
            rows.keep &= ~dropped[-1]
    return dropped


_BUSY: Final = [KIND[kind] for kind in schema.BUSY_KINDS]


def _device_rows_lost(parts: list[PlaneRows], dropped: list[NDArray[np.bool_]], losses: Losses) -> tuple[int, int]:
    """How many rows of device work were lost, and how many there are with them; unread events of a device count."""
    lost = whole = 0
    for rows, mask in zip(parts, dropped, strict=True):
        work = (rows.device != NO_KEY) & np.isin(rows.kind, _BUSY)
        lost += int((work & mask).sum())
        whole += int((work & (mask | rows.keep)).sum())
        if rows.place.owner in (Owner.GPU, Owner.TPU):
            unread = losses.events_of.pop(rows.plane.name, 0)
            lost += unread
            whole += unread
    return lost, whole


_SAMPLE: Final = 1 << 20
"""So many starts tell where the middle of a recording is."""


def _middle_ns(parts: list[PlaneRows]) -> int:
    """A start in the middle of the day in which most of the rows start."""
    every = 1 + sum(len(rows) for rows in parts) // _SAMPLE
    starts = [rows.start_ns[::every][(rows.keep & (rows.dur_ns >= 0))[::every]] for rows in parts]
    together = np.sort(np.concatenate(starts)) if starts else np.empty(0, np.int64)
    if not len(together):
        return 0
    until = np.minimum(together, np.iinfo(np.int64).max - _LONGEST_NS) + _LONGEST_NS
    held = np.searchsorted(together, until, side="right") - np.arange(len(together))
    first = int(held.argmax())
    return int(together[first + (int(held[first]) - 1) // 2])


def _shape_notes(parts: list[PlaneRows], programs: Programs, used: set[int]) -> list[Note]:
    """What the recording as a whole cannot tell."""
    odd = {rows.plane.name: len(rows) for rows in parts if len(rows) and odd_device(rows.plane.name)}
    notes = about.odd_device_notes(odd)
    devices = [rows for rows in parts if rows.place.owner in (Owner.GPU, Owner.TPU)]
    has_cpu_ops = any((rows.device != NO_KEY).any() for rows in parts if rows.place.owner is Owner.HOST)
    if not any(len(rows) for rows in devices) and not has_cpu_ops:
        strange = sorted(
            rows.plane.name
            for rows in parts
            if rows.place.owner is Owner.OTHER and len(rows) and rows.plane.name.startswith("/device:")
        )
        text = (
            "The profile has no device plane and no XLA op: only the host is recorded, so nothing is known of devices."
            if not strange
            else f"The device plane {strange[0][:80]} is of a sort that is not known: its events are kept as other "
            "events, and nothing is known of the work of devices."
        )
        notes.append(Note("host-only", text, Trust.LIMITED))
    missing = used - set(programs.places)
    if missing:
        text = (
            f"The compiled programs of {len(missing)} of {len(used)} program ids are not in the file: where their ops "
            "came from is known only as far as the events say."
        )
        notes.append(Note("programs-missing", text))
    kernels = hidden = 0
    for rows in devices:
        if rows.place.owner is Owner.GPU:
            mask = rows.keep & (rows.kind == KIND["kernel"])
            kernels += int(mask.sum())
            hidden += int((mask & ~has(rows.plane, "hlo_op")).sum())
    if programs.places and hidden:
        text = (
            f"{hidden:,} of {kernels:,} kernels name no XLA op (command buffers hide it): record with "
            "XLA_FLAGS=--xla_gpu_enable_command_buffer= to see it."
        )
        notes.append(Note("kernels-without-op", text))
    return notes


def _processes(space: Space, *, run: int) -> pl.DataFrame:
    pids = (whole(plane.stats, "process_id") for plane in space.planes)
    pid = next((found for found in pids if found is not None and 0 <= found < 1 << 63), None)
    return pl.DataFrame([{"process": 0, "run": run, "pid": pid}], schema=schema.PROCESSES.dtypes)


def _columns(parts: list[PlaneRows], origin_ns: int) -> tuple[dict[str, pl.Series], NDArray[np.uint32]]:
    """Event columns of all kept rows, and the row of each in the file.

    One column at a time, and each part lets go of its own: a large file is never in memory twice.
    """
    chosen = [None if rows.keep.all() else np.flatnonzero(rows.keep) for rows in parts]
    counts = [len(rows) if some is None else len(some) for rows, some in zip(parts, chosen, strict=True)]

    def taken(column: str, missing: Any, dtype: type) -> NDArray[Any]:
        pieces = []
        for rows, some, count in zip(parts, chosen, counts, strict=True):
            values = getattr(rows, column)
            if values is None:
                values = np.full(count, missing, dtype)
            elif some is not None:
                values = values[some]
            pieces.append(values)
            setattr(rows, column, None)
        return _together(pieces, dtype)

    event_rows = [
        np.arange(rows.base, rows.base + len(rows), dtype=np.uint32)
        if some is None
        else (some + rows.base).astype(np.uint32)
        for rows, some in zip(parts, chosen, strict=True)
    ]
    together = _together(event_rows, np.uint32)
    del event_rows
    names = [
        pl.Series([_shown(rows.plane, index) for index in range(len(rows.plane.names))], dtype=pl.Categorical).gather(
            rows.plane.name_of if some is None else rows.plane.name_of[some]
        )
        for rows, some in zip(parts, chosen, strict=True)
        if len(rows)
    ]
    columns = {"name": pl.concat(names, rechunk=True) if names else pl.Series([], dtype=pl.Categorical)}
    del names
    start_ns = taken("start_ns", 0, np.int64)
    start_ns -= origin_ns
    columns["start_ns"] = pl.Series(start_ns)
    del start_ns
    columns["dur_ns"] = pl.Series(taken("dur_ns", 0, np.int64))
    columns["kind"] = pl.Series(taken("kind", 0, np.uint8)).cat.to(schema.Kind)
    columns["process"] = pl.Series(np.zeros(len(together), np.uint32))
    for column in ("thread", "device"):
        columns[column] = key_series(taken(column, NO_KEY, np.uint32))
    for column in ("stream", "correlation", "bytes", "flops"):
        if any(getattr(rows, column) is not None for rows in parts):
            columns[column] = _nullable(taken(column, NULL, np.int64))
    return columns, together


def _together(pieces: list[NDArray[Any]], dtype: type) -> NDArray[Any]:
    """The pieces as one array that may be changed."""
    if len(pieces) == 1:
        return pieces[0].copy() if not pieces[0].flags.owndata else pieces[0]
    return np.concatenate(pieces) if pieces else np.empty(0, dtype)


def _shown(plane: Plane, index: int) -> str:
    entry = plane.names[index]
    if entry.name.startswith(MARK_PREFIX):
        # The profiler takes what stands before a colon for the path of a TensorFlow op and leaves it out.
        return entry.name
    return entry.display_name or entry.name


def _nullable(values: NDArray[np.int64]) -> pl.Series:
    return pl.Series(values).set(pl.Series(values == NULL), None)


__all__ = ["NONE", "to_timeline"]
