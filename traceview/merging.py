"""Several files of one run on one timeline: new keys, one clock, nothing mixed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview import schema
from traceview.errors import UsageError
from traceview.timeline import ImportReport, Note, Timeline, Trust

if TYPE_CHECKING:
    from collections.abc import Sequence

EVENT_LINKS: Final = ("launch_id", "op_id", "parent_id")
"""Columns of the events that hold ids of other events."""


def merge(timelines: Sequence[Timeline]) -> Timeline:
    """One timeline of several, each of one file.

    Keys of processes, threads, devices, inputs and events are counted on, so that equal numbers in two files
    stay two things. If all files know their origin in Unix time the clocks are aligned by it; if not, each
    file starts at zero and a note says so.

    Args:
        timelines: At least one; the ``run`` of each becomes its position.

    Raises:
        UsageError: the files cannot be of one run.
    """
    _require_one_run(timelines)
    if len(timelines) == 1:
        return timelines[0]
    shifts, clock_notes = _clocks(timelines)
    origin = min((run.origin_unix_ns for one in timelines for run in one.runs if run.origin_unix_ns), default=None)
    aligned = any(shifts) or all(one.runs[0].origin_unix_ns is not None for one in timelines)

    base = {"process": 0, "thread": 0, "device": 0, "id": 0}
    events, processes, threads, devices, details = [], [], [], [], []
    inputs, input_keys = _merged_inputs([one.inputs for one in timelines])
    for index, (one, shift, keys) in enumerate(zip(timelines, shifts, input_keys, strict=True)):
        run = pl.lit(index, pl.UInt32).alias("run")
        key = {name: (pl.col(name) + pl.lit(base[name], pl.UInt32)).alias(name) for name in base}
        processes.append(one.processes.with_columns(key["process"], run))
        threads.append(one.threads.with_columns(key["thread"], key["process"]))
        devices.append(one.devices.with_columns(key["device"], run))
        links = [(pl.col(name) + pl.lit(base["id"], pl.UInt32)).alias(name) for name in EVENT_LINKS]
        shifted = (pl.col("start_ns") + shift).alias("start_ns")
        mapped = pl.col("inputs").replace_strict(keys["old"], keys["new"], return_dtype=pl.UInt32, default=None)
        events.append(one.events.with_columns(shifted, mapped, *key.values(), *links))
        details.append({name: frame.with_columns(key["id"]) for name, frame in one.details.items()})
        for name, frame in (("process", one.processes), ("thread", one.threads), ("device", one.devices)):
            base[name] += _next_key(frame[name])
        base["id"] += one.events.height

    together = pl.concat(events).sort("start_ns", "dur_ns", descending=[False, True], maintain_order=True)
    # Where each concatenated id went: the ids of links and details follow the sort.
    new_id = pl.DataFrame({"id": together["id"], "new": pl.int_range(together.height, dtype=pl.UInt32, eager=True)})
    position = new_id.sort("id")["new"]
    together = together.with_columns(
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("id"),
        *(position.gather(together[name]).alias(name) for name in EVENT_LINKS),
    )
    report = sum((one.report for one in timelines), ImportReport())
    runs = tuple(replace(run, origin_unix_ns=origin) if aligned else run for one in timelines for run in one.runs)
    return Timeline(
        events=together.select(list(schema.EVENTS.dtypes)),
        processes=pl.concat(processes),
        threads=pl.concat(threads),
        devices=pl.concat(devices),
        inputs=inputs,
        details=_merged_details(details, position),
        runs=runs,
        report=report.with_notes(*clock_notes, *_rank_notes(timelines)),
    )


def _require_one_run(timelines: Sequence[Timeline]) -> None:
    """Refuse files that cannot be the ranks of one run: shares and verdicts over them would mean nothing."""
    worlds = {run.world_size for one in timelines for run in one.runs if run.world_size is not None}
    vendors = {vendor for one in timelines for vendor in one.devices["vendor"].drop_nulls()}
    reasons = []
    if len(worlds) > 1:
        reasons.append(f"they speak of {_some([str(size) for size in sorted(worlds)])} ranks")
    if len(vendors) > 1:
        reasons.append(f"their devices are of {_some(sorted(vendors))}")
    if reasons:
        raise UsageError(
            "not-one-run",
            why=f"the {len(timelines)} traces do not belong to one run: {', and '.join(reasons)}.",
            next_step="Give the ranks of one run, or one trace at a time.",
        )


def recording_key(one: Timeline) -> tuple[object, ...] | None:
    """What two files have in common that hold the same recording, e.g. a trace and its gzip copy.

    ``None`` for a file without events: such files are alike in everything that could tell them apart.
    """
    events = one.events
    if not events.height:
        return None
    first = tuple(events["name"].head(8).to_list())
    return (
        one.runs[0].rank,
        one.runs[0].origin_unix_ns,
        events.height,
        events["start_ns"].sum(),
        events["dur_ns"].sum(),
        first,
    )


def _clocks(timelines: Sequence[Timeline]) -> tuple[list[int], list[Note]]:
    """How far each timeline moves, ns, and what must be said about it."""
    origins = [one.runs[0].origin_unix_ns for one in timelines]
    known = [origin for origin in origins if origin is not None]
    if len(known) < len(origins):
        missing = [one.runs[0].path.name for one in timelines if one.runs[0].origin_unix_ns is None]
        text = (
            f"{len(missing)} of {len(origins)} files do not say when they were recorded ({_some(missing)}): each file "
            "starts at its own zero, so times must not be compared between files."
        )
        return [0] * len(origins), [Note("clocks-not-aligned", text, Trust.LIMITED)]
    zero = min(known)
    shifts = [origin - zero for origin in known]
    spans = [
        (shift, shift + int((one.events["start_ns"] + one.events["dur_ns"]).max() or 0))  # type: ignore[arg-type]
        for one, shift in zip(timelines, shifts, strict=True)
    ]
    if max(start for start, _ in spans) > min(end for _, end in spans):
        text = "The files were not all recorded at the same time: they may not belong to one run."
        return shifts, [Note("recordings-apart", text, Trust.LIMITED)]
    text = "The files are aligned by their recorded Unix times; clocks of different hosts may still be apart."
    return shifts, [Note("clocks-aligned", text)]


def _rank_notes(timelines: Sequence[Timeline]) -> list[Note]:
    by_rank: dict[int, list[str]] = {}
    unknown = []
    for one in timelines:
        run = one.runs[0]
        if run.rank is None:
            unknown.append(run.path.name)
        else:
            by_rank.setdefault(run.rank, []).append(run.path.name)
    notes = [
        Note(
            "rank-twice",
            f"Rank {rank} has {len(names)} different recordings ({_some(names)}): all are counted.",
            Trust.LIMITED,
        )
        for rank, names in sorted(by_rank.items())
        if len(names) > 1
    ]
    world = {run.world_size for one in timelines for run in one.runs if run.world_size is not None}
    if len(world) == 1 and by_rank and not unknown and len(by_rank) < (size := world.pop()):
        notes.append(Note("ranks-missing", f"{len(by_rank)} of {size} ranks were given."))
    return notes


def _some(names: list[str], show: int = 3) -> str:
    rest = len(names) - show
    return ", ".join(names[:show]) + (f" and {rest} more" if rest > 0 else "")


def _next_key(keys: pl.Series) -> int:
    highest = keys.max()
    return int(highest) + 1 if isinstance(highest, int) else 0


def _merged_inputs(tables: list[pl.DataFrame]) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """One table of distinct signatures, and per file which old key became which new one."""
    content = ["dims", "dtypes", "strides", "concrete"]
    tagged = pl.concat([table.with_columns(pl.lit(index).alias("file")) for index, table in enumerate(tables)])
    distinct = tagged.select(content).unique(maintain_order=True).with_row_index("new")
    joined = tagged.join(distinct, on=content, how="left", nulls_equal=True, maintain_order="left")
    keys = [
        joined.filter(pl.col("file") == index).select(pl.col("inputs").alias("old"), "new")
        for index in range(len(tables))
    ]
    return distinct.rename({"new": "inputs"}).select(list(schema.INPUTS.dtypes)), keys


def _merged_details(files: list[dict[str, pl.DataFrame]], position: pl.Series) -> dict[str, pl.DataFrame]:
    parts: dict[str, list[pl.DataFrame]] = {}
    text_keys = {
        name: {frame.schema["value"] == pl.Categorical for file in files for key, frame in file.items() if key == name}
        for file in files
        for name in file
    }
    for file in files:
        for name, frame in file.items():
            both = len(text_keys[name]) == 2 and frame.schema["value"] == pl.Categorical
            parts.setdefault(f"{name} (text)" if both else name, []).append(frame)
    return {
        name: pl.concat(frames).with_columns(position.gather(pl.concat(frames)["id"]).alias("id")).sort("id")
        for name, frames in parts.items()
    }
