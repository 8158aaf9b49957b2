"""The steps of a program: which there are, how long each took, and which are warm-up.

A step is opened by a host range; its device work may run much later. So a step lasts from the start of its range, or
from the end of the step before if that is later, to the end of its range or of the last device work it launched,
whichever comes last. That is also how TensorBoard's PyTorch plugin cuts a trace, whose published figures the tests
reproduce. Steps of one process never overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from traceview import intervals, schema, step_marks
from traceview.accounting import process_of_devices, stepping_process
from traceview.quantities import milliseconds, percent
from traceview.schema import Column, FrameSchema
from traceview.step_marks import StepSource
from traceview.warm_up import mark_warm_up

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from traceview.timeline import Timeline

STEPS: Final = FrameSchema(
    "steps",
    "One row per step, by process and time.",
    (
        Column("process", pl.UInt32, "", "key into `processes`", nullable=True),
        Column("number", pl.Int64, "", "number of the step as the program counts, else counted from 0"),
        Column("name", pl.String, "", "name of the range, as recorded"),
        Column("phase", pl.String, "", "phase of a serving engine: prefill, decode, mixed", nullable=True),
        Column("requests", pl.Int64, "", "requests in the batch, when the name tells", nullable=True),
        Column("prefill_tokens", pl.Int64, "", "new tokens of prompts, when the name tells", nullable=True),
        Column("decode_tokens", pl.Int64, "", "tokens decoded, when the name tells", nullable=True),
        Column("start_ns", pl.Int64, "ns", "start of the step"),
        Column("end_ns", pl.Int64, "ns", "end of the step, its device work included"),
        Column("host_start_ns", pl.Int64, "ns", "start of its host range"),
        Column("host_end_ns", pl.Int64, "ns", "end of its host range"),
        Column("warmup", pl.Boolean, "", "it belongs to the warm-up; null: not to be told", nullable=True),
        Column("why", pl.String, "", "why it is warm-up", nullable=True),
    ),
)
"""What :func:`find_steps` returns."""

_NOTICEABLE: Final = 0.01
"""Device work in no step is said if it is at least this part of the device time."""

_MOST_NAME: Final = 60

LEAST_STEPS: Final = 3
"""Fewer steady steps than this have no percentiles."""


@dataclass(frozen=True, slots=True)
class StepTable:
    """The steps of a trace.

    Attributes:
        steps: Frame of :data:`STEPS`.
        source: What marks a step.
        notes: What limits the answer, in words.
    """

    steps: pl.DataFrame
    source: StepSource
    notes: tuple[str, ...]
    outside_share: float = 0.0
    """Part of the device time that runs in no step, 0 to 1."""

    @property
    def steady(self) -> pl.DataFrame:
        """The steps that are no warm-up; all of them if warm-up cannot be told."""
        return self.steps.filter(~pl.col("warmup").fill_null(value=False))


@dataclass(frozen=True, slots=True)
class StepTimes:
    """How long some steps took.

    Attributes:
        phase: Phase of a serving engine, ``None`` for all steps.
        count: Number of steps.
        total_ns: Sum, ns.
        mean_ns: Mean, ns.
        p50_ns: Median, ns; percentiles are interpolated linearly, ``None`` for fewer than three steps.
        p90_ns: 90th percentile, ns.
        p99_ns: 99th percentile, ns.
        least_ns: Shortest, ns.
        most_ns: Longest, ns.
    """

    phase: str | None
    count: int
    total_ns: int
    mean_ns: float
    p50_ns: float | None
    p90_ns: float | None
    p99_ns: float | None
    least_ns: int
    most_ns: int


def find_steps(timeline: Timeline) -> StepTable:
    """Find the steps of a linked timeline.

    Without any mark there is one per process: from its first to its last device work, waits of the device included, as
    in the account of the devices; of a process without device work, what its host did.
    """
    source, ranges, notes = step_marks.find(timeline)
    if source is StepSource.WHOLE:
        notes.append(_one_step(timeline, ranges))
    device = _device_windows(timeline, ranges, source)
    steps = _windows(timeline, ranges.join(device, on="id", how="left", maintain_order="left"), source, notes)
    if source is StepSource.WHOLE:
        # A whole recording is no warm-up for anything in it.
        steps = steps.with_columns(warmup=pl.lit(None, pl.Boolean), why=pl.lit(None, pl.String))
    else:
        steps = mark_warm_up(timeline, steps)
    notes += step_marks.several_iterations(timeline, source, ranges)
    outside, share = _outside(timeline, steps)
    notes += outside
    frame = steps.select(
        *("process", "number", "name", "phase", "requests", "prefill_tokens", "decode_tokens"),
        *("start_ns", "end_ns", "host_start_ns", "host_end_ns", "warmup", "why"),
    )
    return StepTable(frame, source, tuple(notes), share)


def step_times(steps: pl.DataFrame, phase: str | None = None) -> StepTimes | None:
    """How long steps took; ``None`` for no steps.

    Args:
        steps: Frame of :data:`STEPS`.
        phase: Only these.
    """
    chosen = steps if phase is None else steps.filter(pl.col("phase") == phase)
    walls = (chosen["end_ns"] - chosen["start_ns"]).to_numpy()
    if not len(walls):
        return None
    p50, p90, p99 = percentiles(walls, (50, 90, 99))
    return StepTimes(
        phase, len(walls), int(walls.sum()), float(walls.mean()), p50, p90, p99, int(walls.min()), int(walls.max())
    )


def percentiles(values: NDArray[np.int64], which: Iterable[float]) -> list[float | None]:
    """Percentiles with linear interpolation, as numpy has them; ``None`` each for fewer than three values."""
    if len(values) < LEAST_STEPS:
        return [None for _ in which]
    return [float(np.percentile(values, one)) for one in which]


def _device_windows(timeline: Timeline, ranges: pl.DataFrame, source: StepSource) -> pl.DataFrame:
    """For each range that launched device work: the start of the first and the end of the last of it."""
    columns = {"id": pl.UInt32, "first_ns": pl.Int64, "last_ns": pl.Int64}
    events = timeline.events
    work = timeline.device_work.filter(pl.col("launch_id").is_not_null())
    if source is StepSource.WHOLE:
        return _first_to_last(timeline, ranges).cast(columns)  # type: ignore[arg-type]
    if not work.height or source is StepSource.XLA_MODULE:
        return pl.DataFrame(schema=columns)
    # Every launch that lies wholly in the range counts, also those of other threads of the process.
    calls = events[work["launch_id"].unique()].select(
        "process", launch_id="id", call_ns="start_ns", call_end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    placed = calls.sort("call_ns").join_asof(
        ranges.select("id", "process", "host_start_ns", "host_end_ns").sort("host_start_ns"),
        left_on="call_ns",
        right_on="host_start_ns",
        by="process",
        strategy="backward",
        check_sortedness=False,
    )
    inside = placed.filter(pl.col("call_end_ns") <= pl.col("host_end_ns"))
    return (
        work.select("launch_id", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
        .join(inside.select("launch_id", "id"), on="launch_id")
        .group_by("id")
        .agg(first_ns=pl.col("start_ns").min(), last_ns=pl.col("end_ns").max())
        .cast(columns)  # type: ignore[arg-type]
    )


def _one_step(timeline: Timeline, ranges: pl.DataFrame) -> str:
    """What is taken as the only step."""
    if not ranges.height:
        return "the trace holds no op, call, annotation or device work, so there is no step"
    if timeline.device_work.height:
        return (
            "the trace has no step marks, so the time from the first to the last device work of a process is taken as "
            "one step"
        )
    return "the trace has no step marks, so all of it is taken as one step"


def _first_to_last(timeline: Timeline, ranges: pl.DataFrame) -> pl.DataFrame:
    """For each process with devices: the start of the first and the end of the last work or wait of these."""
    owners = process_of_devices(timeline)
    rows = timeline.events.filter(
        pl.col("device").is_in(list(owners)) & pl.col("kind").is_in([*schema.BUSY_KINDS, "async_wait"])
    )
    bounds = rows.group_by("device").agg(
        first_ns=pl.col("start_ns").min(), last_ns=(pl.col("start_ns") + pl.col("dur_ns")).max()
    )
    stepping = pl.Series([stepping_process(ranges, owners[one]) for one in bounds["device"]], dtype=pl.UInt32)
    return (
        bounds.with_columns(process=stepping)
        .group_by("process")
        .agg(pl.col("first_ns").min(), pl.col("last_ns").max())
        .join(ranges.select("id", "process"), on="process", nulls_equal=True)
        .select("id", "first_ns", "last_ns")
    )


def _begins_late(first: dict[str, Any], before: int) -> list[str]:
    """A remark on a first step whose range opens while work of before the recording still runs."""
    late = min(before, first["host_end_ns"]) - first["host_start_ns"]
    if late < _NOTICEABLE * (first["host_end_ns"] - first["host_start_ns"]) or late <= 0:
        return []
    begins = f"{first['name'][:_MOST_NAME]} begins {milliseconds(late)} after its host range opens"
    return [f"{begins}: until then the device runs work whose launch is not in the file, which is no part of this step"]


def _outside(timeline: Timeline, steps: pl.DataFrame) -> tuple[list[str], float]:
    """A remark on device work that runs in no step, if it is more than a little; and its part of the device time."""
    work = timeline.device_work
    starts, lengths = work["start_ns"].to_numpy(), work["dur_ns"].to_numpy()
    windows = intervals.merge(steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy())
    outside = intervals.covered(starts, starts + np.maximum(lengths, 1), windows) == 0
    left, whole = int(lengths[outside].sum()), int(lengths.sum())
    if not whole or left < _NOTICEABLE * whole:
        return [], left / whole if whole else 0.0
    pieces = int(outside.sum())
    runs = "piece of device work runs" if pieces == 1 else "pieces of device work run"
    share = left / whole
    return [f"{pieces:,} {runs} in no step: {percent(share)} of the device time is not looked at here"], share


def _windows(timeline: Timeline, ranges: pl.DataFrame, source: StepSource, notes: list[str]) -> pl.DataFrame:
    """Ranges with ``start_ns`` and ``end_ns`` of their steps."""
    orphans = timeline.device_work.filter(pl.col("launch_id").is_null()).select(
        "process", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    late: list[int] = []
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    for (process,), own in ranges.group_by("process", maintain_order=True):
        before = -1
        first = own["first_ns"].drop_nulls()
        if len(first) and source not in {StepSource.WHOLE, StepSource.XLA_MODULE}:
            # Work of an earlier step that still runs is not this step's time.
            earlier = orphans.filter((pl.col("process") == process) & (pl.col("end_ns") <= first[0]))["end_ns"]
            before = max(before, int(earlier.max() or -1))  # type: ignore[arg-type]
            notes += _begins_late(own.row(0, named=True), before)
        for row in own.iter_rows(named=True):
            start, end = max(row["host_start_ns"], before), max(row["host_end_ns"], before)
            if source is StepSource.WHOLE and row["first_ns"] is not None:
                start, end = row["first_ns"], row["last_ns"]
            elif row["last_ns"] is not None:
                end = max(end, row["last_ns"])
                if row["first_ns"] > row["host_end_ns"] and start < row["first_ns"]:
                    late.append(row["first_ns"] - row["host_start_ns"])
                    start = row["first_ns"]
            starts[row["id"]], ends[row["id"]] = start, end
            before = max(before, end)
    if late:
        notes.append(
            f"the first kernel of {len(late)} of {ranges.height} steps starts only after their host range has closed "
            f"(up to {milliseconds(max(late))} after it opened): such a step is the time of its device work"
        )
    ids = ranges["id"].to_list()
    return ranges.with_columns(
        start_ns=pl.Series([starts[one] for one in ids], dtype=pl.Int64),
        end_ns=pl.Series([ends[one] for one in ids], dtype=pl.Int64),
    )
