"""The steps that ``torch.profiler`` marks, and which of them an event belongs to.

Each step is a range ``ProfilerStep#N`` on the thread that calls ``step()``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from traceview.timeline import Timeline

STEP_NAME: Final = r"^ProfilerStep\s*#(\d+)$"


def profiler_steps(timeline: Timeline) -> pl.DataFrame:
    """The marked steps: ``process``, ``start_ns``, ``end_ns``, ``number``, by start."""
    # Names become text among annotations only: they are few.
    annotations = timeline.events.filter(pl.col("thread").is_not_null() & (pl.col("kind") == "annotation"))
    name = pl.col("name").cast(pl.String)
    return annotations.filter(name.str.contains(STEP_NAME)).select(
        "process",
        "start_ns",
        end_ns=pl.col("start_ns") + pl.col("dur_ns"),
        number=name.str.extract(STEP_NAME).cast(pl.Int32, strict=False),
    )


def mark_steps(timeline: Timeline) -> Timeline:
    """Set ``step``: host rows by the step of their process they start in, device rows by the step of their launch.

    Device work is launched in one step and may run in the next; it belongs to the step that asked for it. Device work
    without a recorded launch gets no step.
    """
    events = timeline.events
    marks = profiler_steps(timeline)
    if not marks.height:
        return timeline
    step = np.full(events.height, -1, np.int32)
    starts = events["start_ns"].to_numpy()
    for mark in marks.iter_rows(named=True):
        # Events are sorted by start, so a step is a stretch of rows.
        first, stop = np.searchsorted(starts, [mark["start_ns"], mark["end_ns"]]).tolist()
        inside = events[first:stop].select(
            (pl.col("process") == mark["process"]).fill_null(value=False) & pl.col("thread").is_not_null()
        )
        step[first:stop][inside.to_series().to_numpy()] = mark["number"]
    launched = events.select("id", "launch_id").drop_nulls()
    step[launched["id"].to_numpy()] = step[launched["launch_id"].to_numpy()]
    return replace(timeline, events=events.with_columns(pl.Series("step", step).set(pl.Series(step < 0), None)))
