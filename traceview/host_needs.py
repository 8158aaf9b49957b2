"""How long the host works for each stage itself, whatever the device does meanwhile.

A device that gets faster waits for its host at last: the calls of a stage take their time, and work that they launch
cannot be done before they are made. So this bounds from below what is left of a stage whose device work gets faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from traceview import intervals
from traceview.accounting import process_of_devices, stepping_processes
from traceview.stages import open_stages
from traceview.step_marks import StepSource
from traceview.waits import waits

if TYPE_CHECKING:
    from traceview.stages import Staging
    from traceview.steps import StepTable


def host_needs(staging: Staging, steps: StepTable) -> dict[str, int]:
    """Host time of each stage, parts included, in the steady steps, without waits for the device, ns.

    Of several threads that launch for a stage the one that works longest counts: they work side by side. As in a
    :class:`traceview.stage_table.StageTable`, a step counts once for each device that its process uses. A call that
    waits because the queue of launches is full counts as work, so the figure may be too high.

    Args:
        staging: A timeline with stages.
        steps: Its steps.

    Returns:
        Nothing where steps are no host ranges, and no entry for a stage that no range on a launching thread opens.
    """
    timeline = staging.timeline
    if steps.source in {StepSource.XLA_MODULE, StepSource.WHOLE} or not staging.ranges.height:
        return {}
    launching = timeline.events["thread"].gather(timeline.device_work["launch_id"].drop_nulls().unique()).unique()
    held = waits(timeline).filter(pl.col("thread").is_in(launching.implode())).partition_by("thread", as_dict=True)
    stepping = stepping_processes(steps.steady, (owners := process_of_devices(timeline)).values())
    ranges = staging.ranges.filter(pl.col("thread").is_in(launching.implode()))
    found: dict[str, int] = {}
    for process in steps.steady["process"].unique().to_list():
        own = steps.steady.filter(pl.col("process").eq_missing(pl.lit(process, pl.UInt32)))
        windows = intervals.merge(own["host_start_ns"].to_numpy(), own["host_end_ns"].to_numpy())
        lanes = sum(stepping[owner] == process for owner in owners.values())
        longest: dict[str, int] = {}
        mine = ranges.filter(pl.col("process").eq_missing(pl.lit(process, pl.UInt32)))
        for (thread,), opened in mine.partition_by("thread", as_dict=True).items():
            starts, ends, paths = open_stages(opened)
            busy = intervals.covered(starts, ends, windows)
            waited = held.get((thread,))
            if waited is not None:
                inside = intervals.intersect(windows, (waited["start_ns"].to_numpy(), waited["end_ns"].to_numpy()))
                busy -= intervals.covered(starts, ends, inside)
            for path, ns in _with_parts(paths, busy.tolist()).items():
                longest[path] = max(longest.get(path, 0), ns)
        for path, ns in longest.items():
            found[path] = found.get(path, 0) + ns * lanes
    return found


def _with_parts(paths: list[str], lengths: list[int]) -> dict[str, int]:
    """Time of each stage with all its parts."""
    own: dict[str, int] = {}
    for path, ns in zip(paths, lengths, strict=True):
        own[path] = own.get(path, 0) + ns
    found: dict[str, int] = {}
    for path, ns in own.items():
        parts = path.split("/")
        for depth in range(len(parts)):
            outer = "/".join(parts[: depth + 1])
            found[outer] = found.get(outer, 0) + ns
    return found
