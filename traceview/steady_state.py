"""Which part of a trace is past its warm-up.

Compilation, autotuning, lazy loading and allocation belong into the first iterations; later they are a fault. Only
recorded steps (:func:`traceview.profiler_steps.profiler_steps`) tell the two apart. What is warm-up is decided in one
place, :mod:`traceview.warm_up`. Besides, the first recorded step of each process is never judged, even where its time
is like that of the others: the recording may have begun with the program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.profiler_steps import profiler_steps
from traceview.step_marks import StepSource
from traceview.steps import find_steps

if TYPE_CHECKING:
    from traceview.steps import StepTable
    from traceview.timeline import Timeline


WHICH_STEPS: Final = "ProfilerStep, StepTraceAnnotation; steps that are found in other ways do not count here"
"""Which steps are looked at. Runs of a compiled program are no sure steps of a loop: none is known to warm up."""


_SAME_STEPS: Final = (StepSource.PROFILER, StepSource.NUMBERED)
"""Sources whose steps are the recorded ones."""


@dataclass(frozen=True, slots=True)
class SteadyState:
    """The recorded steps of each process past its first and past the warm-up.

    Attributes:
        steps: Columns ``process``, ``step``, ``start_ns``, ``end_ns``; one row per steady step.
        span_ns: Sum of their durations, ns.
    """

    steps: pl.DataFrame
    span_ns: int

    def within(self, events: pl.DataFrame) -> pl.DataFrame:
        """The events (with columns ``process`` and ``step``) of the steady steps."""
        return events.join(self.steps.select("process", "step"), on=["process", "step"], how="semi")


def find_steady_state(timeline: Timeline, steps: StepTable | None = None) -> SteadyState | None:
    """The steps past the first of each process and past the warm-up; ``None`` if no process has one.

    Args:
        timeline: With launches linked and steps marked.
        steps: Its :func:`traceview.steps.find_steps`, if they are at hand.
    """
    marks = (
        profiler_steps(timeline)
        .rename({"number": "step"})
        .drop_nulls()
        .unique(["process", "step"], keep="first", maintain_order=True)
        .sort("process", "start_ns")
    )
    steady = marks.filter(pl.col("start_ns") > pl.col("start_ns").min().over("process"))
    if steady.height:
        steps = find_steps(timeline) if steps is None else steps
        if steps.source in _SAME_STEPS:
            warm = steps.steps.filter(pl.col("warmup").fill_null(value=False))
            numbers = warm.select("process", step=pl.col("number").cast(pl.Int32, strict=False))
            steady = steady.join(numbers, on=["process", "step"], how="anti", maintain_order="left")
    if not steady.height:
        return None
    return SteadyState(steady, int((steady["end_ns"] - steady["start_ns"]).sum()))
