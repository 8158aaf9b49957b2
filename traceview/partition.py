"""The wall time of the steps, cut into pieces that each belong to one stage.

At every instant of a step a device either works, then the instant belongs to the stage that asked for the work, or is
idle, then it belongs to the stage that is open on the host. Of work that overlaps, computation comes before
communication before copies before waits, and within one of these what started first. So the pieces add up to the wall
time exactly, whatever overlaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals
from traceview.accounting import process_of_devices, stepping_processes
from traceview.busy import COMMUNICATION_KINDS, COMPUTATION_KINDS, COPY_KINDS, DeviceRows, rows_by_device
from traceview.stages import open_stages

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceview.intervals import IntervalSet
    from traceview.stages import Staging
    from traceview.timeline import Timeline

CLASSES: Final = (COMPUTATION_KINDS, COMMUNICATION_KINDS, COPY_KINDS, ("async_wait",))
"""Kinds of device rows, in order of precedence; the last are waits, not work."""

_WAITS: Final = len(CLASSES) - 1


@dataclass(frozen=True, slots=True)
class Partition:
    """Wall time by stage and step. Rows of the arrays are stages, the last row is what belongs to none.

    Attributes:
        stages: Paths, as the rows but the last.
        steps: For each column the index of its step in the frame of steps.
        devices: For each column the device, ``None`` where the process has none.
        walls: Wall time of each column, ns. ``busy + idle`` over all rows is this, exactly.
        busy: Time in which the device worked for the stage, ns.
        idle: Time in which the device was idle or waited, ns.
    """

    stages: tuple[str, ...]
    steps: NDArray[np.intp]
    devices: tuple[int | None, ...]
    walls: NDArray[np.int64]
    busy: NDArray[np.int64]
    idle: NDArray[np.int64]


def partition(staging: Staging, steps: pl.DataFrame) -> Partition:
    """Cut the steps by stage; each step counts once for every device that its process uses.

    Args:
        staging: A timeline with stages.
        steps: Frame of :data:`traceview.steps.STEPS`; those that count.
    """
    timeline = staging.timeline
    devices = process_of_devices(timeline)
    stepping = stepping_processes(steps, devices.values())
    used = set(stepping.values())
    without = [(None, process) for process in steps["process"].unique().to_list() if process not in used]
    # A helper process without device work of its own beside others with some is no part of the answer.
    lanes = [(device, stepping[process]) for device, process in sorted(devices.items())] or without
    rows = timeline.events.filter(pl.col("device").is_not_null()).select(
        "device", "kind", "start_ns", "dur_ns", stage=pl.col("stage").cast(pl.String)
    )
    stretches = {process: host_stretches(staging, process) for process in {process: None for _, process in lanes}}
    by_device = rows_by_device(rows)
    names = {*rows["stage"].drop_nulls().unique(), *staging.ranges["stage"].unique()}
    names |= {path for parts in stretches.values() for _, paths in parts for path in paths}
    paths = tuple(sorted(names))
    number = {path: at for at, path in enumerate(paths)}
    stage = rows["stage"].replace_strict(number, default=len(number), return_dtype=pl.Int64).to_numpy()
    opened = {
        process: [(open_, np.array([number[path] for path in names], np.intp)) for open_, names in parts]
        for process, parts in stretches.items()
    }
    counted = {process: _steps_of(steps, process) for process in stretches}
    parts = []
    for device, process in lanes:
        at, windows = counted[process]
        if len(at):
            work = by_device.get(device) if device is not None else None
            parts.append((device, at, windows, *_of_lane(work, stage, windows, opened[process], len(number))))
    return Partition(
        stages=paths,
        steps=np.concatenate([one[1] for one in parts]) if parts else np.empty(0, np.intp),
        devices=tuple(one[0] for one in parts for _ in one[1]),
        walls=np.concatenate([one[2][1] - one[2][0] for one in parts]) if parts else np.empty(0, np.int64),
        busy=np.hstack([one[3] for one in parts]) if parts else np.zeros((len(paths) + 1, 0), np.int64),
        idle=np.hstack([one[4] for one in parts]) if parts else np.zeros((len(paths) + 1, 0), np.int64),
    )


def host_stretches(staging: Staging, process: int | None) -> list[tuple[IntervalSet, list[str]]]:
    """When which stage is open on the host: per thread of a process, the one that stages fill most first."""
    ranges = staging.ranges.filter(pl.col("process").eq_missing(process))
    held = ranges.group_by("thread").agg(ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
    order = held.sort("ns", "thread", descending=[True, False])["thread"].to_list()
    found: list[tuple[IntervalSet, list[str]]] = []
    for thread in order:
        starts, ends, paths = open_stages(ranges.filter(pl.col("thread") == thread))
        found.append(((starts, ends), paths))
    # Threads of autograd have stages without ranges: the events at their top say when they are at work.
    events = staging.timeline.events
    tops = events.filter(
        pl.col("thread").is_not_null()
        & pl.col("stage").is_not_null()
        & pl.col("parent_id").is_null()
        & pl.col("process").eq_missing(process)
        & ~pl.col("thread").is_in(order)
    ).select("thread", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"), stage=pl.col("stage").cast(pl.String))
    for _, own in tops.group_by("thread", maintain_order=True):
        starts, ends = intervals.exclusive(own["start_ns"].to_numpy(), own["end_ns"].to_numpy())
        found.append(((starts, ends), own["stage"].to_list()))
    return found


def _steps_of(steps: pl.DataFrame, process: int | None) -> tuple[NDArray[np.intp], IntervalSet]:
    """The steps of a process by start: which rows they are, and when each begins and ends."""
    own = steps.with_row_index("at").filter(pl.col("process").eq_missing(process)).sort("start_ns")
    return own["at"].to_numpy(), (own["start_ns"].to_numpy(), own["end_ns"].to_numpy())


def _of_lane(
    work: DeviceRows | None,
    stage: NDArray[np.intp],
    windows: IntervalSet,
    stretches: list[tuple[IntervalSet, NDArray[np.intp]]],
    nobody: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Busy and idle time of each stage in each window; ``stage`` is that of all rows, ``nobody`` stands for none."""
    busy = np.zeros((nobody + 1, len(windows[0])), np.int64)
    idle = np.zeros_like(busy)
    taken: IntervalSet = (np.empty(0, np.int64), np.empty(0, np.int64))
    for at, kinds in enumerate(CLASSES if work is not None else ()):
        assert work is not None
        rows = work.where(work.of(kinds))
        pieces = intervals.exclusive(rows.starts, rows.ends)
        _add(idle if at == _WAITS else busy, pieces, stage[rows.at], windows, taken)
        taken = intervals.merge(*(np.concatenate(pair) for pair in zip(taken, pieces, strict=True)))
    left = intervals.subtract(intervals.merge(*windows), taken)
    for open_, codes in stretches:
        _add(idle, open_, codes, windows, _outside(left, windows))
        left = intervals.subtract(left, open_)
    _add(idle, left, np.full(len(left[0]), nobody, np.intp), windows, (np.empty(0, np.int64), np.empty(0, np.int64)))
    return busy, idle


def _outside(inside: IntervalSet, windows: IntervalSet) -> IntervalSet:
    """The part of the windows that is not ``inside``."""
    return intervals.subtract(intervals.merge(*windows), inside)


def _add(
    table: NDArray[np.int64],
    pieces: IntervalSet,
    codes: NDArray[np.intp],
    windows: IntervalSet,
    taken: IntervalSet,
) -> None:
    """Add the part of each piece that lies in a window and is not taken to its stage and window."""
    which, window, starts, ends = intervals.crossings(pieces, windows)
    lengths = (ends - starts) - intervals.covered(starts, ends, taken)
    np.add.at(table, (codes[which], window), lengths)


def used_devices(timeline: Timeline) -> tuple[int, ...]:
    """Keys of the devices that did work."""
    return tuple(sorted(process_of_devices(timeline)))
