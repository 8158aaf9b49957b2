"""The steps that the profiler itself marks, and which of them an event belongs to.

``torch.profiler`` marks each step with a range ``ProfilerStep#N`` on the thread that calls ``step()``. JAX's
``StepTraceAnnotation`` sets a range of any name with the number of the step as an argument.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from traceview.timeline import Timeline

STEP_NAME: Final = r"^ProfilerStep\s*#([0-9]+)$"

STEP_DETAIL: Final = "step_num"
"""Detail of a range of any name that JAX's ``StepTraceAnnotation`` set: the number of the step."""

_FEWEST_NUMBERS: Final = 2
"""A range that always has the same number (``step_num=0``) marks something else than steps."""


def profiler_steps(timeline: Timeline) -> pl.DataFrame:
    """The marked steps: ``process``, ``start_ns``, ``end_ns``, ``number``, by start."""
    # Names become text among annotations only: they are few.
    annotations = timeline.events.filter(pl.col("thread").is_not_null() & (pl.col("kind") == "annotation")).select(
        "id", "process", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"), name=pl.col("name").cast(pl.String)
    )
    columns = ("process", "start_ns", "end_ns", "number")
    marks = annotations.filter(pl.col("name").str.contains(STEP_NAME))
    if marks.height:
        number = pl.col("name").str.extract(STEP_NAME).cast(pl.Int32, strict=False)
        # A number that no program counts to marks no step that an event could be said to belong to.
        return marks.with_columns(number=number).drop_nulls("number").select(columns)
    numbered = timeline.details.get(STEP_DETAIL)
    if numbered is None or numbered.schema["value"] != pl.Int64:
        return marks.with_columns(number=pl.lit(None, pl.Int32)).select(columns)
    fits = numbered.filter(pl.col("value").is_between(0, (1 << 31) - 1))
    marks = annotations.join(fits.select("id", number=pl.col("value").cast(pl.Int32)), on="id", maintain_order="left")
    return marks.filter(pl.col("number").n_unique().over("process", "name") >= _FEWEST_NUMBERS).select(columns)


def numbered(timeline: Timeline) -> pl.DataFrame:
    """The ranges that carry the number of a step, ``id``: those that count, and a single one, the only step recorded.

    A name that comes back with the same number marks something else.
    """
    told = timeline.details.get(STEP_DETAIL)
    if told is None or told.schema["value"] != pl.Int64:
        return pl.DataFrame(schema={"id": pl.UInt32})
    ranges = timeline.events.select("id", "process", "name").join(told, on="id", maintain_order="left")
    counts = pl.col("value").n_unique().over("process", "name") >= _FEWEST_NUMBERS
    return ranges.filter(counts | (pl.len().over("process", "name") == 1)).select("id")


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
