"""What ``traceview steps`` and ``traceview stages`` answer, as data, and what ``report`` takes from both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.accounting import device_times, process_times, why_idle_unreliable
from traceview.device_labels import process_labels
from traceview.dispatch import dispatch_table
from traceview.idle_split import idle_split
from traceview.report_parts import ImportSummary, PartNote, TraceInfo, describe, rank_of_process, summarise_import
from traceview.stage_table import StageTable, stage_table
from traceview.stages import assign_stages
from traceview.steps import StepTable, StepTimes, find_steps, step_times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.accounting import DeviceTime, IdleSplit, ProcessTime
    from traceview.stages import StagePattern, Staging
    from traceview.timeline import Timeline

_MOST_DISPATCHES: Final = 5


@dataclass(frozen=True, slots=True)
class StepTimeline:
    """The steps, how long they took, and what their time went to.

    Attributes:
        table: The steps, warm-up included.
        ranks: Rank of each process that has steps, where it is recorded.
        owners: Label of each process that has steps, if there are several.
        times: How long the steady steps took; with several phases of a serving engine one entry for each, after the
            one for all.
        devices: What the steady steps took on each device, in parts; ``None`` without device work.
        processes: The same of each process with its host.
        idle_doubt: Why idle time may be none; ``None`` if nothing speaks for that.
    """

    table: StepTable
    ranks: dict[int | None, int | None]
    times: tuple[StepTimes, ...]
    devices: tuple[DeviceTime, ...] | None
    processes: tuple[ProcessTime, ...]
    idle_doubt: str | None
    owners: dict[int | None, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StageDispatch:
    """One row of the dispatch table inside a stage: what was asked, what ran."""

    op: str | None
    family: str
    implementation: str | None
    provider: str | None
    count: int
    device_ns: int


@dataclass(frozen=True, slots=True)
class StepReport:
    """Answer of ``traceview steps``."""

    trace: TraceInfo
    steps: StepTimeline
    import_report: ImportSummary
    notes: tuple[PartNote, ...]


@dataclass(frozen=True, slots=True)
class StageReport:
    """Answer of ``traceview stages``.

    Attributes:
        trace: Which trace.
        steps: Its steps.
        stages: Its stages.
        dispatches: For each stage the rows of the dispatch table that take most of its time, its own work only.
        import_report: How the import went.
        notes: Why a part is missing or limited.
    """

    trace: TraceInfo
    steps: StepTimeline
    stages: StageTable
    dispatches: dict[str, tuple[StageDispatch, ...]]
    import_report: ImportSummary
    notes: tuple[PartNote, ...]


def step_timeline(
    timeline: Timeline, *, steps: StepTable | None = None, split_idle: IdleSplit | None = None
) -> StepTimeline:
    """Find the steps and account for their time.

    Args:
        timeline: With launches linked.
        steps: The steps, if they are known already.
        split_idle: Says what idle time is due to, see :data:`traceview.accounting.IdleSplit`.
    """
    steps = steps or find_steps(timeline)
    phases = steps.steady["phase"].drop_nulls().unique().sort().to_list()
    every = step_times(steps.steady)
    by_phase = [step_times(steps.steady, phase) for phase in phases] if len(phases) > 1 else []
    return StepTimeline(
        table=steps,
        ranks=rank_of_process(timeline),
        times=tuple(one for one in (every, *by_phase) if one is not None),
        devices=device_times(timeline, steps.steady, split_idle=split_idle) or None,
        processes=process_times(timeline, steps.steady),
        idle_doubt=why_idle_unreliable(timeline),
        owners=process_labels(timeline, own) if len(own := steps.steps["process"].unique().to_list()) > 1 else {},
    )


def step_report(timeline: Timeline) -> StepReport:
    """Which steps there are, how long each took, and what the time went to."""
    steps = step_timeline(timeline, split_idle=idle_split(timeline))
    return StepReport(describe(timeline), steps, summarise_import(timeline), tuple(step_notes(steps)))


def stage_report(timeline: Timeline, given: Sequence[StagePattern] = ()) -> StageReport:
    """Which stages there are, what each takes, and what a change of it can win.

    Args:
        timeline: With launches linked.
        given: Stages of the user.
    """
    staging = assign_stages(timeline, given)
    steps = step_timeline(timeline)
    stages = stage_table(timeline, staging=staging, steps=steps.table)
    return StageReport(
        trace=describe(timeline),
        steps=steps,
        stages=stages,
        dispatches=_dispatches(staging) if stages.stages is not None else {},
        import_report=summarise_import(timeline),
        notes=(*stage_notes(stages), *step_notes(steps)),
    )


def step_notes(steps: StepTimeline) -> list[PartNote]:
    """What limits the steps and their accounting."""
    notes = [PartNote("steps", _sentence(text)) for text in steps.table.notes]
    if steps.devices is None:
        notes.append(PartNote("time", "No device work is recorded in the steps: only what the host did can be told."))
    if steps.idle_doubt:
        notes.append(PartNote("time", f"Idle time is not reliable: {steps.idle_doubt}."))
    warm = steps.table.steps.filter(pl.col("warmup").fill_null(value=False)).height
    if warm:
        are = "is" if warm == 1 else "are"
        notes.append(PartNote("steps", f"{warm} of {steps.table.steps.height} steps {are} warm-up and not counted."))
    return notes


def stage_notes(stages: StageTable) -> list[PartNote]:
    """What limits the stages."""
    own = [text for text in stages.notes if text not in stages.steps.notes]
    return [PartNote("stages", _sentence(text)) for text in own]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _dispatches(staging: Staging) -> dict[str, tuple[StageDispatch, ...]]:
    """For each stage what takes most of its own time; inputs are not told apart."""
    found: dict[str, dict[tuple[str | None, str, str | None, str | None], tuple[int, int]]] = {}
    for row in dispatch_table(staging.timeline).dispatches:
        if row.stage is not None:
            what = (row.op, row.family, row.implementation, row.provider)
            count, device_ns = found.setdefault(row.stage, {}).get(what, (0, 0))
            found[row.stage][what] = (count + row.count, device_ns + row.device_ns)
    return {
        stage: tuple(
            StageDispatch(*what, *took)
            for what, took in sorted(rows.items(), key=lambda item: (-item[1][1], str(item[0])))[:_MOST_DISPATCHES]
        )
        for stage, rows in found.items()
    }
