"""What marks the steps of a program in a trace: the first of several kinds of marks that it has."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals
from traceview.host_calls import outermost
from traceview.knowledge.idle_causes import PROFILER_FRAMES
from traceview.knowledge.range_names import RangeKind, RangeName, read_range_name
from traceview.step_cycles import find_cycles
from traceview.step_overlaps import one_thread, overlapping, repeated_inside

if TYPE_CHECKING:
    from traceview.timeline import Timeline

STEP_NUMBER_KEYS: Final = ("step_num",)
"""Argument of a ``StepTraceAnnotation`` that holds the number of the step."""

WHOLE_NAME: Final = "trace"
"""Name of the only step of a process where nothing marks one."""

_LEAST_ANCHORS: Final = 2


class StepSource(StrEnum):
    """What marks a step, best first."""

    ENGINE = "engine iterations"
    """Labels of a serving engine, e.g. ``execute_context_2(14721)_generation_0(0)``."""
    PROFILER = "profiler steps"
    """``ProfilerStep#N``."""
    NUMBERED = "numbered annotations"
    """``StepTraceAnnotation``, or ranges named ``iteration_3``, ``step 4``."""
    REQUEST = "requests"
    """Ranges around one call of a whole pipeline."""
    OPTIMIZER = "optimizer steps"
    """From one start of the optimizer to the next."""
    DATA = "batches"
    """From one fetch of data to the next."""
    CYCLE = "repeating stages"
    """Rounds of annotated stages in the same order."""
    XLA_MODULE = "runs of the main XLA module"
    """On the device; no host range."""
    XLA_LAUNCHES = "launches of the main XLA module"
    """In a recording of Nsight Systems the ranges that XLA sets around the launches of a module."""
    WHOLE = "the whole trace"
    """Nothing marks a step: from the first to the last device work, or of the host without any."""


_COLUMNS: Final = {
    "id": pl.UInt32, "process": pl.UInt32, "name": pl.String, "number": pl.Int64, "phase": pl.String,
    "requests": pl.Int64, "prefill_tokens": pl.Int64, "decode_tokens": pl.Int64,
    "host_start_ns": pl.Int64, "host_end_ns": pl.Int64,
}  # fmt: skip


def find(timeline: Timeline) -> tuple[StepSource, pl.DataFrame, list[str]]:
    """The ranges that open steps, by process and start, and what they are.

    Returns:
        The source; columns ``id``, ``process``, ``name``, ``number``, ``phase``, ``requests``,
        ``prefill_tokens``, ``decode_tokens``, ``host_start_ns``, ``host_end_ns``; and what was left out, in words.
    """
    events = timeline.events
    ranges = events.filter(pl.col("thread").is_not_null() & (pl.col("kind") == "annotation")).with_columns(
        pl.col("name").cast(pl.String)
    )
    read = {name: read_range_name(name) for name in ranges["name"].unique().to_list()}

    def of(kind: RangeKind, family: str | None = None) -> pl.DataFrame:
        names = [name for name, one in read.items() if one.kind is kind and family in {None, one.family}]
        rows = ranges.filter(pl.col("name").is_in(names))
        return outermost(timeline, rows) if rows.height else rows

    numbered = _numbered(timeline, of(RangeKind.STEP))
    candidates = (
        (StepSource.ENGINE, of(RangeKind.PHASE)),
        (StepSource.PROFILER, of(RangeKind.STEP, "kineto.step")),
        (StepSource.NUMBERED, numbered),
        (StepSource.REQUEST, of(RangeKind.REQUEST)),
    )
    for source, rows in candidates:
        if rows.height:
            notes = repeated_inside(timeline, rows, ranges)
            rows, left_out = one_thread(rows)
            return source, _described(rows, read), [*notes, *left_out, *overlapping(rows)]
    for source, family in ((StepSource.OPTIMIZER, "torch.opt"), (StepSource.DATA, "torch.data")):
        rows = _between_starts(of(RangeKind.STAGE, family))
        if rows.height:
            return source, _described(rows, read), []
    rounds = _rounds(timeline, ranges, read)
    if rounds.height:
        return StepSource.CYCLE, _described(rounds, read), []
    modules = _main_modules(timeline)
    if modules.height:
        return StepSource.XLA_MODULE, _described(modules, read), []
    launched = _main_launches(of(RangeKind.STEP, "xla.module"))
    if launched.height:
        return StepSource.XLA_LAUNCHES, _described(launched, read), []
    return StepSource.WHOLE, _whole(timeline), []


def several_iterations(timeline: Timeline, source: StepSource, ranges: pl.DataFrame) -> list[str]:
    """A remark if the profiler steps hold several iterations each, as their optimizers or data loaders tell."""
    if source is not StepSource.PROFILER:
        return []
    marks = timeline.events.filter((pl.col("kind") == "annotation") & pl.col("thread").is_not_null())
    marks = marks.select("process", "start_ns", name=pl.col("name").cast(pl.String))
    for pattern, what in ((r"^Optimizer\.step#", "optimizer steps"), (r"^enumerate\(Data", "fetches of data")):
        counts = np.zeros(ranges.height, np.int64)
        # Several optimizers step once each: the calls of one name count.
        for (process, _), own in marks.filter(pl.col("name").str.contains(pattern)).group_by("process", "name"):
            starts = own["start_ns"].sort().to_numpy()
            first = np.searchsorted(starts, ranges["host_start_ns"].to_numpy())
            stop = np.searchsorted(starts, ranges["host_end_ns"].to_numpy())
            mine = ranges["process"].eq_missing(pl.Series([process], dtype=pl.UInt32)).to_numpy()
            counts = np.maximum(counts, np.where(mine, stop - first, 0))
        if len(counts) and counts.min() > 1:
            return [f"each profiler step holds several iterations: at least {counts.min()} {what}"]
        if counts.any():
            return []
    return []


def _numbered(timeline: Timeline, counters: pl.DataFrame) -> pl.DataFrame:
    """Ranges with a step number: those that carry one as argument, else names that count."""
    key = next((key for key in STEP_NUMBER_KEYS if key in timeline.details), None)
    if key is not None and timeline.details[key].schema["value"] == pl.Int64:
        numbered = timeline.events.filter(pl.col("thread").is_not_null()).join(timeline.details[key], on="id")
        if numbered["value"].n_unique() >= _LEAST_ANCHORS:
            return outermost(
                timeline, numbered.with_columns(pl.col("name").cast(pl.String)).rename({"value": "number"})
            )
    return counters if counters["name"].n_unique() >= _LEAST_ANCHORS else counters.clear()


def _rounds(timeline: Timeline, ranges: pl.DataFrame, read: dict[str, RangeName]) -> pl.DataFrame:
    """Rounds of the outermost stages of one thread per process."""
    # Scopes of XLA follow each other as its compiler orders them.
    stages = {
        name: one.stage
        for name, one in read.items()
        if one.kind is RangeKind.STAGE and one.stage and one.family != "xla.scope"
    }
    rows = ranges.filter(pl.col("name").is_in(list(stages)))
    if not rows.height:
        return rows
    rows = outermost(timeline, rows)
    rows = rows.with_columns(pl.col("name").replace_strict(stages).alias("stage"))
    return pl.concat([find_cycles(own) for _, own in rows.group_by("process", maintain_order=True)])


def _between_starts(anchors: pl.DataFrame) -> pl.DataFrame:
    """From each anchor to the next one of its thread; the time after the last is no whole step."""
    if not anchors.height:
        return anchors
    # Several optimizers make several calls per step: the first name counts.
    first = anchors.group_by("process").agg(pl.col("name").first(), pl.col("thread").first())
    anchors = anchors.join(first, on=["process", "name", "thread"], how="semi", maintain_order="left")
    following = pl.col("start_ns").shift(-1).over("process")
    return anchors.with_columns(dur_ns=following - pl.col("start_ns")).filter(pl.col("dur_ns").is_not_null())


def _main_modules(timeline: Timeline) -> pl.DataFrame:
    """Runs of the XLA module that takes the most time of the devices."""
    runs = timeline.events.filter(pl.col("kind") == "xla_module").with_columns(
        pl.col("name").cast(pl.String).str.replace(r"\(\d+\)$", "")
    )
    if not runs.height:
        return runs
    main = runs.group_by("name").agg(pl.col("dur_ns").sum()).sort("dur_ns", "name", descending=[True, False])["name"][0]
    runs = runs.filter(pl.col("name") == main)
    # Devices of one process run the module together: its first device stands for all.
    return runs.filter(pl.col("device") == pl.col("device").min().over("process"))


def _main_launches(ranges: pl.DataFrame) -> pl.DataFrame:
    """Of the ranges in which XLA launches its modules those of the module that takes the most of the host's time."""
    named = ranges.with_columns(name=pl.coalesce(pl.col("name").str.extract(r"hlo_module=([^,#]+)"), "name"))
    if not named.height:
        return named
    times = named.group_by("name").agg(pl.col("dur_ns").sum(), runs=pl.len()).filter(pl.col("runs") >= _LEAST_ANCHORS)
    main = times.sort("dur_ns", "name", descending=[True, False])["name"].head(1)
    return named.filter(pl.col("name").is_in(main.implode()))


def _whole(timeline: Timeline) -> pl.DataFrame:
    """One row per process: from its first to its last op, call, annotation or device work.

    Starting and stopping the profiler is no part of it, nor is what encloses that.
    """
    kinds = ["op", "annotation", "api", "kernel", "memcpy", "memset", "collective", "xla_op", "graph", "python"]
    events = timeline.events.filter(pl.col("kind").is_in(kinds))
    if not timeline.device_work.height and not events.height:
        return pl.DataFrame(schema=_COLUMNS)
    events = _without_profiler(events)
    return (
        events.group_by("process", maintain_order=True)
        .agg(
            pl.col("id").first(),
            host_start_ns=pl.col("start_ns").min(),
            host_end_ns=(pl.col("start_ns") + pl.col("dur_ns")).max(),
        )
        .with_columns(name=pl.lit(WHOLE_NAME), number=pl.lit(0, pl.Int64))
        .with_columns(*(pl.lit(None, dtype).alias(name) for name, dtype in _COLUMNS.items() if name in _TOLD))
        .select(list(_COLUMNS))
        .cast(_COLUMNS)  # type: ignore[arg-type]
        .sort("process", "host_start_ns")
    )


def _without_profiler(events: pl.DataFrame) -> pl.DataFrame:
    """The events that neither lie in a call that starts or stops the profiler nor enclose one."""
    names = events.filter(pl.col("kind") == "python")["name"].unique()
    names = names.filter(names.cast(pl.String).str.contains(PROFILER_FRAMES).fill_null(value=False))
    frames = events.filter((pl.col("kind") == "python") & pl.col("name").is_in(names.implode()))
    if not frames.height:
        return events
    kept = [events.filter(pl.col("thread").is_null() | ~pl.col("thread").is_in(frames["thread"].unique().implode()))]
    for (thread,), own in frames.group_by("thread", maintain_order=True):
        calls = intervals.merge(own["start_ns"].to_numpy(), (own["start_ns"] + own["dur_ns"]).to_numpy())
        rows = events.filter(pl.col("thread") == thread)
        inside = intervals.covered(rows["start_ns"].to_numpy(), (rows["start_ns"] + rows["dur_ns"]).to_numpy(), calls)
        kept.append(rows.filter(pl.Series(inside == 0, dtype=pl.Boolean)))
    left = pl.concat(kept).sort("id")
    # Of a process that did nothing else, that is what there is to tell.
    alone = events.join(left.select("process").unique(), on="process", how="anti", nulls_equal=True)
    return pl.concat([left, alone]).sort("id")


_TOLD: Final = ("phase", "requests", "prefill_tokens", "decode_tokens")


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _described(rows: pl.DataFrame, read: dict[str, RangeName]) -> pl.DataFrame:
    rows = rows.sort("process", "start_ns")
    counts = [dict(read[name].counts or {}) if name in read else {} for name in rows["name"]]
    phases = [
        read[name].stage or None if name in read and read[name].kind is RangeKind.PHASE else None
        for name in rows["name"]
    ]
    requests = [one.get("requests", _sum(one.get("prefill_requests"), one.get("decode_requests"))) for one in counts]
    numbers = rows["number"].to_list() if "number" in rows.columns else [one.get("index") for one in counts]
    counted = rows.with_columns(at=pl.int_range(pl.len()).over("process"))["at"].to_list()
    return pl.DataFrame(
        {
            "id": rows["id"],
            "process": rows["process"],
            "name": rows["name"],
            "number": [at if number is None else number for number, at in zip(numbers, counted, strict=True)],
            "phase": phases,
            "requests": requests,
            "prefill_tokens": [one.get("prefill_tokens") for one in counts],
            "decode_tokens": [one.get("decode_tokens") for one in counts],
            "host_start_ns": rows["start_ns"],
            "host_end_ns": rows["start_ns"] + rows["dur_ns"],
        },
        schema=_COLUMNS,
    )
