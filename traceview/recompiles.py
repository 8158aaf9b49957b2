"""What was compiled in a trace, and what of it after the warm-up.

Compile spans nest: Dynamo's frame holds the backend's spans. A compilation is one outermost frame: of Dynamo, or JAX's
call of the XLA compiler, whose passes run on threads of their own; where no frame is recorded, one outermost span.
Autotuning is left out, it is a question of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.host_calls import named, outermost

if TYPE_CHECKING:
    from traceview.steady_state import SteadyState
    from traceview.timeline import Timeline

_FRAME: Final = r"compile_inner|entire_frame_compile|^backend_compile(_and_load)?$"
_AUTOTUNE: Final = r"(?i)autotun|benchmark"


@dataclass(frozen=True, slots=True)
class Compilations:
    """Some compilations of a trace.

    Attributes:
        count: How many.
        spans: Rows of the events that lie inside no other compile span, ``name`` as text.
        steps: Numbers of the steps they lie in, ascending.
    """

    count: int
    spans: pl.DataFrame
    steps: tuple[int, ...]


def compile_spans(timeline: Timeline) -> pl.DataFrame:
    """Every recorded span of compilation, nested ones too, ``name`` as text."""
    return named(timeline, ("compile",), ".").filter(~pl.col("name").str.contains(_AUTOTUNE))


def compilations(timeline: Timeline, spans: pl.DataFrame) -> Compilations:
    """The compilations that some of the :func:`compile_spans` stand for."""
    tops = outermost(timeline, spans)
    frames = outermost(timeline, spans.filter(pl.col("name").str.contains(_FRAME)))
    if frames.height:
        # What a compiler does on threads of its own meanwhile, the calling thread waits for: it is not more time.
        tops = tops.filter(pl.col("thread").is_in(frames["thread"].unique().implode()))
    return Compilations(frames.height or tops.height, tops, tuple(spans["step"].drop_nulls().unique().sort().to_list()))


def after_warm_up(timeline: Timeline, steady: SteadyState) -> Compilations:
    """The compilations in the recorded steps past the first of each process."""
    return compilations(timeline, steady.within(compile_spans(timeline)))


def unplaced(timeline: Timeline, steady: SteadyState) -> Compilations:
    """The compilations that may or may not belong to the warm-up.

    They are those of a process with fewer than two recorded steps, and those that lie in no step although the second
    one of their process had begun.
    """
    second = steady.steps.group_by("process").agg(second_ns=pl.col("start_ns").min())
    spans = compile_spans(timeline).join(second, on="process", how="left", maintain_order="left")
    in_no_step = pl.col("step").is_null() & (pl.col("start_ns") >= pl.col("second_ns"))
    return compilations(timeline, spans.filter(pl.col("second_ns").is_null() | in_no_step).drop("second_ns"))


def shows_compilation(timeline: Timeline) -> bool:
    """Whether a compilation would have left a span: ops or annotations of the host are recorded, as its spans are."""
    recorded = timeline.events.filter(pl.col("thread").is_not_null() & pl.col("kind").is_in(["op", "annotation"]))
    return bool(recorded.height)
