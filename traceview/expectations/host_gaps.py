"""How long the devices stood idle once the program was warm.

Idle time is taken whole: whether the host was late, read data or waited is not told apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals
from traceview.launches import graph_replays
from traceview.timeline import Trust

if TYPE_CHECKING:
    from traceview.steady_state import SteadyState
    from traceview.timeline import Timeline

_LOSSES: Final = ("launch-without-work", "graph-without-work", "profiler-stopped-early", "profiler-dropped-records")
"""Notes of the import that say that device work is missing."""


@dataclass(frozen=True, slots=True)
class SteadyIdle:
    """Idle time of one device in the steady part of a trace.

    Attributes:
        device: Key into ``Timeline.devices``.
        span_ns: From the first start to the last end of the work that the steady steps launched, ns.
        idle_ns: Time in it in which the device ran nothing at all, ns.
    """

    device: int
    span_ns: int
    idle_ns: int


def steady_idle(timeline: Timeline, steady: SteadyState | None) -> list[SteadyIdle]:
    """Each device that the steady steps gave work to, in order of its key.

    Work of other steps that runs in that time keeps the device busy like any other.

    Args:
        timeline: With launches linked and steps marked.
        steady: The steps past the first; ``None``: all work counts.
    """
    found = []
    work = timeline.device_work.with_columns(end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    for (device,), rows in sorted(work.group_by("device"), key=lambda pair: pair[0]):
        asked = rows if steady is None else _launched_in(timeline, rows, steady)
        if not asked.height:
            continue
        first, last = asked.select(first=pl.col("start_ns").min(), last=pl.col("end_ns").max()).row(0)
        window = (np.array([first], np.int64), np.array([last], np.int64))
        busy = intervals.intersect(window, (rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()))
        if last > first:
            found.append(SteadyIdle(int(device), last - first, last - first - intervals.total(*busy)))
    return found


def why_unreliable(timeline: Timeline) -> str | None:
    """Why a device that looks idle may have worked, or the other way round; ``None`` if nothing speaks for that."""
    replays = graph_replays(timeline.events)
    if replays.under_recorded:
        return f"{replays.words}, so their time looks idle"
    if timeline.device_work.filter(pl.col("kind") == "graph").height:
        return "graphs are recorded as opaque blocks, so idle time inside them cannot be seen"
    notes = [note.text for note in timeline.report.notes if note.kind in _LOSSES and note.trust is not Trust.GOOD]
    return f"device work is missing: {notes[0]}" if notes else None


def _launched_in(timeline: Timeline, work: pl.DataFrame, steady: SteadyState) -> pl.DataFrame:
    """The work whose launch lies in a steady step; the process that counts is the one that launched it."""
    linked = work.filter(pl.col("launch_id").is_not_null())
    return steady.within(linked.with_columns(process=timeline.events["process"].gather(linked["launch_id"])))
