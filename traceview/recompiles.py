"""What was compiled in a trace, what it cost, why, and what of it came after the warm-up.

Compile spans nest: Dynamo's frame holds the backend's spans. A compilation is one outermost frame: of Dynamo, or JAX's
call of the XLA compiler, whose passes run on threads of their own; where no frame is recorded, one outermost span.
Autotuning is left out, it is a question of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.host_calls import named, outermost
from traceview.other_compilations import other_compilations
from traceview.schema import Column, FrameSchema
from traceview.torch_compilations import AUTOTUNE, FRAME, torch_compilations
from traceview.xla_compilations import XLA_FRAME, xla_compilations

if TYPE_CHECKING:
    from traceview.compile_log import CompileLog, LoggedCompilation
    from traceview.steady_state import SteadyState
    from traceview.timeline import Timeline

WHAT: Final = pl.Enum(["torch-compile", "eager-fallback", "graph-capture", "autotune", "xla", "cudnn-plan"])

RECOMPILES: Final = FrameSchema(
    "recompiles",
    "One row per compilation, or other preparation at first use, in the order of time.",
    (
        Column(
            "what",
            WHAT,
            "",
            "`torch-compile`, `xla`, `graph-capture`, `autotune`, `cudnn-plan` (inferred from a slow call), or "
            "`eager-fallback`: compiled in vain, the frame runs uncompiled",
        ),
        Column("function", pl.String, "", "function, frame or module that was compiled", nullable=True),
        Column("compile_id", pl.String, "", "torch: `frame/version`; XLA: id of the program", nullable=True),
        Column("recompiled", pl.Boolean, "", "another version existed before; null: not known", nullable=True),
        Column("reason", pl.String, "", "why, as far as recorded", nullable=True),
        Column("shapes", pl.String, "", "op and dims before -> after, where shapes were recorded", nullable=True),
        Column("start_ns", pl.Int64, "ns", "start"),
        Column("dur_ns", pl.Int64, "ns", "what it cost the host; null: its compilation is not recorded", nullable=True),
        Column("step", pl.Int32, "", "step it lies in", nullable=True),
        Column("warmup", pl.Boolean, "", "in the first recorded step of its process; null: not known", nullable=True),
        Column("process", pl.UInt32, "", "key into `processes`", nullable=True),
        Column("event_id", pl.UInt32, "", "the span, or the first run of the program"),
    ),
)


_WITHOUT_COMPILERS: Final = ("nsys",)
"""Formats in which a compiler leaves no spans unless the program marks it."""


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
    return named(timeline, ("compile",), ".").filter(~pl.col("name").str.contains(AUTOTUNE))


def compilations(timeline: Timeline, spans: pl.DataFrame) -> Compilations:
    """The compilations that some of the :func:`compile_spans` stand for."""
    tops = outermost(timeline, spans)
    frames = outermost(timeline, spans.filter(pl.col("name").str.contains(f"{FRAME}|{XLA_FRAME}")))
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
    """Whether a compilation would have left a span: ops or annotations of the host are recorded, as its spans are.

    Not so in a recording of Nsight Systems: NVTX ranges are what a program or its framework marks, and a compiler need
    not be among it.
    """
    if any(run.format in _WITHOUT_COMPILERS for run in timeline.runs):
        return False
    return bool(len(timeline.host_names(("op", "annotation"))))


def why_compilation_hidden(timeline: Timeline) -> str:
    """Why a compilation would have left no trace, without a full stop."""
    if any(run.format in _WITHOUT_COMPILERS for run in timeline.runs):
        return "Nsight Systems records no compilers of its own, and no range marks one: a compilation may not be seen"
    return "neither ops nor annotations of the host are recorded, so no compilation could be seen"


def recompiles(timeline: Timeline, steady: SteadyState | None, log: CompileLog | None = None) -> pl.DataFrame:
    """Every compilation in a trace: the :data:`RECOMPILES`.

    Args:
        timeline: With launches linked and steps marked.
        steady: The steps past the warm-up; ``None``: what is warm-up is not known.
        log: Structured compile log of the same run, for names and reasons that a trace does not hold.
    """
    rows = [*torch_compilations(timeline), *xla_compilations(timeline), *other_compilations(timeline)]
    if not rows:
        return RECOMPILES.empty()
    later = ("step", "warmup")
    table = pl.DataFrame(rows, schema={name: dtype for name, dtype in RECOMPILES.dtypes.items() if name not in later})
    table = table.with_columns(step=timeline.events["step"].gather(table["event_id"]))
    late = steady.within(table)["event_id"] if steady else table["event_id"].clear()
    first = pl.col("step").is_not_null() | _before_steps(steady)
    table = table.with_columns(
        warmup=pl.when(pl.col("event_id").is_in(late.implode())).then(pl.lit(False)).when(first).then(pl.lit(True))
        if steady
        else pl.lit(None, pl.Boolean)
    )
    if log is not None:
        table = _joined(timeline, table, log)
    return table.select(list(RECOMPILES.dtypes)).sort("start_ns", "event_id")


def _before_steps(steady: SteadyState | None) -> pl.Expr:
    """Before the first steady step of its process: still the warm-up."""
    if steady is None:
        return pl.lit(False)
    begins = steady.steps.group_by("process").agg(pl.col("start_ns").min())
    begin = pl.col("process").replace_strict(begins["process"], begins["start_ns"], default=None, return_dtype=pl.Int64)
    return (pl.col("start_ns") < begin).fill_null(value=False)


def outside_window(table: pl.DataFrame, log: CompileLog) -> tuple[LoggedCompilation, ...]:
    """Compilations of a log that the trace does not show: they lie outside of the recorded window."""
    shown = set(table["compile_id"].drop_nulls())
    return tuple(one for one in log.compilations if one.compile_id not in shown)


def _joined(timeline: Timeline, table: pl.DataFrame, log: CompileLog) -> pl.DataFrame:
    """Names, reasons and shapes of the log where it knows better than the trace."""
    ranks = dict(timeline.processes.select("process", "rank").iter_rows())
    rows = []
    for row in table.iter_rows(named=True):
        known = log.find(row["compile_id"], ranks.get(row["process"])) if row["compile_id"] else None
        if known is not None and row["what"] in ("torch-compile", "eager-fallback"):
            row["function"] = known.function or log.function_of(row["compile_id"]) or row["function"]
            row["reason"] = known.failure or "; ".join(known.reasons) or row["reason"]
            shapes = ", ".join(f"{name} {list(size)}" for name, size in known.shapes.items())
            row["shapes"] = row["shapes"] or shapes or None
            if known.failure and row["what"] == "torch-compile":
                row["what"] = "eager-fallback"
        rows.append(row)
    return pl.DataFrame(rows, schema=table.schema)
