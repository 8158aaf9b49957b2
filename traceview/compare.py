"""Did a change do what it claims: two traces of one program, before and after, under one contract.

First whether they can be compared (:mod:`traceview.comparability`), then whether a step got shorter by more than the
spread of the steps (:mod:`traceview.step_change`), then by what: parts of the time, stages, dispatches, kernels,
compilations. All figures are per step: of the steady steps, so that recordings of different length compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import gaps, intervals
from traceview.comparability import Comparable, Condition, conditions, overall
from traceview.compared_setting import Setting, setting
from traceview.dispatch import dispatch_table
from traceview.dispatch_change import DispatchChange, dispatch_changes, ran
from traceview.idle_split import IdleSplit
from traceview.recompile_report import recompile_report
from traceview.report import kernel_uses
from traceview.report_parts import describe, summarise_import
from traceview.stage_table import stage_table
from traceview.stages import assign_stages
from traceview.step_change import StepChange, Verdict, step_change
from traceview.step_marks import StepSource
from traceview.time_report import step_timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceview.dispatch_change import Ran
    from traceview.recompile_report import RecompileReport
    from traceview.report import KernelUse
    from traceview.report_parts import ImportSummary, TraceInfo
    from traceview.stage_table import StageTable
    from traceview.stages import StagePattern
    from traceview.time_report import StepTimeline
    from traceview.timeline import Timeline

UNATTRIBUTED: Final = "Unattributed"


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two traces, analysed.

    Attributes:
        setting: What it is, and under what it was recorded.
        import_report: How the import went.
        steps: Its steps.
        stages: Its stages.
        kernels: What each kernel took in the steady steps.
        families: What each family of device work took in them.
        ran: What ran for what was asked, over all of it.
        recompiles: What was compiled.
    """

    setting: Setting
    import_report: ImportSummary
    steps: StepTimeline
    stages: StageTable
    kernels: tuple[KernelUse, ...]
    families: tuple[KernelUse, ...]
    ran: tuple[Ran, ...]
    recompiles: RecompileReport

    @property
    def trace(self) -> TraceInfo:
        """Which trace."""
        return self.setting.trace

    @property
    def count(self) -> int:
        """Number of steady steps, those of each process counted."""
        return self.steps.table.steady.height


@dataclass(frozen=True, slots=True)
class Delta:
    """Something per step, before and after.

    Attributes:
        name: What.
        before_ns: Before, ns; ``None``: it is not there.
        after_ns: After, ns.
        before_count: How often per step, before; ``None`` where that is not counted.
        after_count: After.
        family: For a kernel, what it computes.
    """

    name: str
    before_ns: float | None
    after_ns: float | None
    before_count: float | None = None
    after_count: float | None = None
    family: str | None = None

    @property
    def difference_ns(self) -> float:
        """After less before, ns."""
        return (self.after_ns or 0.0) - (self.before_ns or 0.0)

    @property
    def change(self) -> float | None:
        """The same over before; ``None`` where there was nothing before."""
        return self.difference_ns / self.before_ns if self.before_ns else None


@dataclass(frozen=True, slots=True)
class Compilations:
    """Compilations after the warm-up of one trace; ``None`` where the trace would not show them."""

    count: int | None
    total_ns: int | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Answer of ``traceview compare``.

    Attributes:
        before: The first trace.
        after: The second.
        comparable: How far they can be compared.
        conditions: What must be alike, the worst first.
        step: The steps, all phases together.
        phases: The steps by phase of a serving engine, where both traces have several.
        parts: What the time of a step goes to on a device (mean over devices), in order of precedence; both columns
            add up to the mean step. ``None`` if a trace has no device work.
        stages: Wall time of each stage per step and device, longest first; ``None`` if a trace has none.
        unattributed: Time in no stage.
        families: Device time per step by family, summed over the devices of a process.
        kernels: The same by kernel, by falling difference.
        dispatches: Where something else ran than before.
        recompiles: Compilations after the warm-up, before and after.
        verdict: What became of the steps, comparability considered.
        why: The verdict in words, without its figures.
    """

    before: Side
    after: Side
    comparable: Comparable
    conditions: tuple[Condition, ...]
    step: StepChange
    phases: tuple[StepChange, ...]
    parts: tuple[Delta, ...] | None
    stages: tuple[Delta, ...] | None
    unattributed: Delta | None
    families: tuple[Delta, ...]
    kernels: tuple[Delta, ...]
    dispatches: tuple[DispatchChange, ...]
    recompiles: tuple[Compilations, Compilations]
    verdict: Verdict
    why: str


def side(timeline: Timeline, given: Sequence[StagePattern] = ()) -> Side:
    """Analyse one of the two traces.

    Args:
        timeline: With launches linked.
        given: Stages of the user.
    """
    staging = assign_stages(timeline, given)
    works = gaps.works(timeline)
    steps = step_timeline(timeline, split_idle=IdleSplit(timeline, works))
    stages = stage_table(timeline, staging=staging, steps=steps.table)
    table = dispatch_table(staging.timeline)
    work = _in_steady(timeline.device_work, steps.table.steady)
    kernels, families = kernel_uses(timeline, work) if work.height else ((), ())
    names = frozenset(stages.stages["stage"]) if stages.stages is not None else frozenset()
    trace = describe(timeline)
    totals = {one.name: one.total_ns for one in kernels}
    return Side(
        setting=setting(timeline, trace, steps.table, table, totals, names),
        import_report=summarise_import(timeline),
        steps=steps,
        stages=stages,
        kernels=kernels,
        families=families,
        ran=ran(table, max(steps.table.steps.height, 1)),
        recompiles=recompile_report(timeline),
    )


def compare(before: Timeline, after: Timeline, given: Sequence[StagePattern] = ()) -> Comparison:
    """Compare two traces.

    Args:
        before: The first, with launches linked.
        after: The second.
        given: Stages of the user, the same for both.
    """
    return compare_sides(side(before, given), side(after, given))


def compare_sides(before: Side, after: Side) -> Comparison:
    """Compare two traces that are analysed already."""
    told = conditions(before.setting, after.setting)
    comparable = overall(told)
    step, phases = _steps(before, after)
    verdict, why = _verdict(comparable, told, step, phases)
    return Comparison(
        before=before,
        after=after,
        comparable=comparable,
        conditions=told,
        step=step,
        phases=phases,
        parts=_parts(before, after),
        stages=_stages(before, after),
        unattributed=_unattributed(before, after),
        families=_uses(before.families, after.families, before, after),
        kernels=_uses(before.kernels, after.kernels, before, after),
        dispatches=dispatch_changes(before.ran, after.ran),
        recompiles=(_compilations(before), _compilations(after)),
        verdict=verdict,
        why=why,
    )


def _in_steady(work: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Device work that runs, wholly or partly, while steady steps last."""
    starts = work["start_ns"].to_numpy()
    windows = intervals.merge(steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy())
    ends = starts + np.maximum(work["dur_ns"].to_numpy(), 1)
    return work.filter(pl.Series(intervals.covered(starts, ends, windows) > 0))


def _steps(before: Side, after: Side) -> tuple[StepChange, tuple[StepChange, ...]]:
    walls = []
    for one in (before, after):
        steady = one.steps.table.steady
        lengths = steady.select("phase", ns=pl.col("end_ns") - pl.col("start_ns"))
        walls.append(lengths)
    marked = all(one.steps.table.source is not StepSource.WHOLE for one in (before, after))
    whole = step_change(walls[0]["ns"].to_numpy(), walls[1]["ns"].to_numpy(), marked=marked)
    names = [set(one["phase"].drop_nulls().unique()) for one in walls]
    phases: tuple[StepChange, ...] = ()
    if any(len(one) > 1 for one in names):
        phases = tuple(
            step_change(_of_phase(walls[0], phase), _of_phase(walls[1], phase), phase)
            for phase in sorted(names[0] & names[1])
        )
    return whole, phases


def _of_phase(lengths: pl.DataFrame, phase: str) -> NDArray[np.int64]:
    return lengths.filter(pl.col("phase") == phase)["ns"].to_numpy()


def _verdict(
    comparable: Comparable, told: Sequence[Condition], step: StepChange, phases: Sequence[StepChange]
) -> tuple[Verdict, str]:
    if comparable is Comparable.NO:
        return Verdict.INCONCLUSIVE, f"not comparable: {told[0].what}: {told[0].consequence}"
    if phases:
        verdicts = {one.verdict for one in phases}
        if len(verdicts) == 1:
            return phases[0].verdict, phases[0].why
        differ = ", ".join(f"{one.phase} {one.verdict.value}" for one in phases)
        return Verdict.INCONCLUSIVE, f"the phases differ: {differ}"
    return step.verdict, step.why


def _parts(before: Side, after: Side) -> tuple[Delta, ...] | None:
    """What the time of a step goes to: mean over devices and steps."""
    tables: list[dict[str, float]] = []
    for one in (before, after):
        if not one.steps.devices:
            return None
        count = sum(device.steps for device in one.steps.devices)
        parts: dict[str, float] = {}
        for device in one.steps.devices:
            for name, ns in device.parts:
                parts[name] = parts.get(name, 0.0) + ns / count
        tables.append(parts)
    return tuple(
        Delta(name, tables[0].get(name, 0.0), tables[1].get(name, 0.0))
        for name in dict.fromkeys([*tables[0], *tables[1]])
        if tables[0].get(name) or tables[1].get(name)
    )


def _stage_times(one: Side) -> dict[str, tuple[float, float | None]] | None:
    """Wall time and calls per step of each stage."""
    lanes = one.stages.lanes
    if one.stages.stages is None or not lanes:
        return None
    return {
        stage: (ns / lanes, None if count is None else count / max(one.count, 1))
        for stage, ns, count in one.stages.stages.select("stage", "wall_ns", "count").iter_rows()
    }


def _stages(before: Side, after: Side) -> tuple[Delta, ...] | None:
    first, second = _stage_times(before), _stage_times(after)
    if first is None or second is None:
        return None
    nothing: tuple[float | None, float | None] = (None, None)
    rows = [
        Delta(stage, one[0], two[0], one[1], two[1])
        for stage in dict.fromkeys([*first, *second])
        for one, two in [(first.get(stage, nothing), second.get(stage, nothing))]
    ]
    longest = {row.name: max(row.before_ns or 0.0, row.after_ns or 0.0) for row in rows}

    def key(path: str) -> tuple[tuple[float, str], ...]:
        # Parts stand after what they are parts of.
        parts = path.split("/")
        outer = ["/".join(parts[: at + 1]) for at in range(len(parts))]
        return tuple((-longest.get(one, 0.0), one) for one in outer)

    return tuple(sorted(rows, key=lambda row: key(row.name)))


def _unattributed(before: Side, after: Side) -> Delta | None:
    first, second = before.stages, after.stages
    if first.stages is None or second.stages is None or not first.lanes or not second.lanes:
        return None
    return Delta(UNATTRIBUTED, first.unattributed_ns / first.lanes, second.unattributed_ns / second.lanes)


def _uses(first: Sequence[KernelUse], second: Sequence[KernelUse], before: Side, after: Side) -> tuple[Delta, ...]:
    """Kernels or families, per step, by falling difference; two rows of one name count together."""

    def per_step(uses: Sequence[KernelUse], steps: int) -> dict[str, tuple[float, float, str]]:
        found: dict[str, tuple[float, float, str]] = {}
        for one in uses:
            ns, count, _ = found.get(one.name, (0.0, 0.0, ""))
            found[one.name] = (ns + one.total_ns / steps, count + one.count / steps, one.family)
        return found

    one, two = per_step(first, max(before.count, 1)), per_step(second, max(after.count, 1))
    rows = []
    for name in dict.fromkeys([*one, *two]):
        left, right = one.get(name), two.get(name)
        family = (left or right or (0.0, 0.0, None))[2]
        rows.append(
            Delta(
                name,
                left[0] if left else None,
                right[0] if right else None,
                left[1] if left else None,
                right[1] if right else None,
                family,
            )
        )
    return tuple(sorted(rows, key=lambda row: (-abs(row.difference_ns), row.name)))


def _compilations(one: Side) -> Compilations:
    late = one.recompiles.late
    if late is None:
        return Compilations(None, None)
    return Compilations(late.height, int(late["dur_ns"].sum()))
