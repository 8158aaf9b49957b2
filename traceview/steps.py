"""Which profiler step an event belongs to.

``torch.profiler`` marks each step with a range ``ProfilerStep#N`` on the thread that calls ``step()``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from traceview.timeline import Timeline

STEP_NAME: Final = r"^ProfilerStep\s*#(\d+)$"


def mark_steps(timeline: Timeline) -> Timeline:
    """Set ``step``: host rows by the step of their process they start in, device rows by the step of their launch.

    Device work is launched in one step and may run in the next; it belongs to the step that asked for it. Device work
    without a recorded launch gets no step.
    """
    events = timeline.events
    marks = events.filter(
        pl.col("thread").is_not_null()
        & (pl.col("kind") == "annotation")
        & pl.col("name").cast(pl.String).str.contains(STEP_NAME)
    ).select(
        "process",
        "start_ns",
        end_ns=pl.col("start_ns") + pl.col("dur_ns"),
        number=pl.col("name").cast(pl.String).str.extract(STEP_NAME).cast(pl.Int32, strict=False),
    )
    if not marks.height:
        return timeline
    step = np.full(events.height, -1, np.int32)
    on_host = events["thread"].is_not_null().to_numpy()
    process = events["process"].fill_null(0xFFFFFFFF).to_numpy()
    starts = events["start_ns"].to_numpy()
    for (key,), own in marks.sort("start_ns").group_by("process", maintain_order=True):
        rows = np.flatnonzero(on_host & (process == key))
        index = np.searchsorted(own["start_ns"].to_numpy(), starts[rows], side="right") - 1
        inside = (index >= 0) & (starts[rows] < own["end_ns"].to_numpy()[np.maximum(index, 0)])
        step[rows[inside]] = own["number"].to_numpy()[index[inside]]
    launch = events["launch_id"].fill_null(0xFFFFFFFF).to_numpy()
    launched = np.flatnonzero(launch != 0xFFFFFFFF)
    step[launched] = step[launch[launched]]
    return replace(timeline, events=events.with_columns(pl.Series("step", step).replace(-1, None)))
