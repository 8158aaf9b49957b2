"""``traceview steps`` and ``traceview stages`` as text and Markdown, and the sentence that leads both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TextIO

from traceview.accounting import Part
from traceview.render.conditions import conditions, write_conditions, write_remarks
from traceview.render.grids import Grid, print_markdown, write_grid
from traceview.render.markdown import MOST_CELL
from traceview.render.names import stage_name
from traceview.render.notes import notes_grid
from traceview.render.page import Column, Page
from traceview.render.time_tables import (
    accounting_grid,
    host_grid,
    idle_grid,
    stages_grid,
    steps_grid,
    times,
    times_grid,
)
from traceview.render.units import counted, duration, percent, together
from traceview.step_marks import StepSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.report import Step
    from traceview.stage_table import StageTable
    from traceview.steps import StepTimes
    from traceview.time_report import StageReport, StepReport, StepTimeline

_LEAST_SHOWN: Final = 0.01
_MOSTLY_OUTSIDE: Final = 0.5
"""Where more of the device time is in no step, the steps say little about the recording."""
_MUCH_IDLE: Final = 0.2
_NEARLY_ALL: Final = 0.9
_LEAST_PART: Final = 0.05
"""Of a stage that is nearly everything, parts smaller than this say nothing about where its time goes."""
_WORDS: Final = {
    Part.COMPUTE.value: "compute",
    Part.COLLECTIVE.value: "communication that nothing hides",
    Part.COPY.value: "copies that nothing hides",
    Part.ASYNC_WAIT.value: "waits for asynchronous work",
}


def step_sentence(steps: StepTimeline, *, without_device: str = "; no device work is recorded") -> str:
    """How long a step takes and what it goes to, largest first.

    Args:
        steps: The steps.
        without_device: What is added where no device work is recorded.
    """
    every = steps.times[0] if steps.times else None
    if every is None:
        return (
            "No step is left to look at."
            if steps.table.steps.height
            else "No step: nothing that takes time is recorded."
        )
    on = f" on {counted(len(steps.devices), 'device')}" if steps.devices and len(steps.devices) > 1 else ""
    whole = steps.table.source is StepSource.WHOLE
    if whole:
        what = "from the first to the last device work" if steps.devices else "recorded"
        several = f" of a process ({_average(every)} of {every.count:,})" if every.count > 1 else ""
        text = f"{duration(round(every.mean_ns if every.p50_ns is None else every.p50_ns))} {what}{several}{on}"
        text += ", no step marks"
        on = ""
    elif every.p50_ns is not None:
        text = f"A step takes {_typical(every, every.p50_ns)}"
    else:
        text = f"A step takes {duration(round(every.mean_ns))}"
        text += f" (mean of {every.count:,})" if every.count > 1 else " (one step, no statistics)"
    if not steps.devices:
        return f"{text}{without_device}."
    wall = sum(one.wall_ns for one in steps.devices)
    parts: dict[str, int] = {}
    for one in steps.devices:
        for name, ns in one.parts:
            parts[name] = parts.get(name, 0) + ns
    order = sorted(parts.items(), key=lambda item: -item[1])
    shown = [
        f"{_WORDS.get(name, name)} {percent(ns / wall)}" for name, ns in order if wall and ns / wall >= _LEAST_SHOWN
    ]
    doubt = " Idle time is not reliable here." if steps.idle_doubt else ""
    outside = steps.table.outside_share
    if outside > _MOSTLY_OUTSIDE:
        doubt += f" But {percent(outside)} of the device time is in none of the steps."
    return f"{text}{on}: {', '.join(shown)}.{doubt}" if shown else f"{text}.{doubt}"


_APART: Final = 1.5
"""Where the mean is so many times the median, or the other way round, one of the two alone misleads."""


def _typical(every: StepTimes, median_ns: float) -> str:
    """The median; where the mean is far from it, the mean first, because the shares are shares of all steps."""
    if max(every.mean_ns, median_ns) > _APART * min(every.mean_ns, median_ns):
        mean, median = duration(round(every.mean_ns)), duration(round(median_ns))
        return f"{mean} (mean of {every.count:,}, median {median})"
    return f"{duration(round(median_ns))} (median of {every.count:,})"


def _average(every: StepTimes) -> str:
    """What one figure for several processes is; they run side by side, so their times do not add."""
    return "mean" if every.p50_ns is None else "median"


_MOST_UNKNOWN: Final = 0.5
"""Where more of the time is in no stage, shares of the rest are not told."""


def stage_sentence(table: StageTable) -> str:
    """Which stage takes most, and what a change of it can win at most."""
    if table.stages is None or not table.stages.height or not table.wall_ns:
        return "No stage is known."
    top = table.stages.filter(table.stages["depth"] == 0).head(1).row(0, named=True)
    lead = "Longest stage"
    # Where one stage is nearly everything, its parts are what can be told apart.
    if top["share"] > _NEARLY_ALL:
        parts = table.stages.filter(
            (table.stages["depth"] == 1) & table.stages["stage"].str.starts_with(f"{top['stage']}/")
        )
        if parts.height and parts["share"][0] >= _LEAST_PART:
            lead = f"{stage_name(top['stage'])} takes {percent(top['share'])} of the time; its longest part"
            top = parts.row(0, named=True)
    part = top["stage"] if lead == "Longest stage" else top["stage"].split("/", 1)[1]
    text = f"{lead}: {stage_name(part)}, {percent(top['share'])} of the time"
    text += _split(table, top) if table.devices else ""
    faster = top["speedup_if_removed"]
    if top["share"] <= _NEARLY_ALL and faster is not None and times(faster) != times(1.0):
        text += f"; without it the whole is at most {times(top['speedup_if_removed'])} as fast"
    unknown = table.unattributed_ns / table.wall_ns
    text += f". In no stage: {percent(unknown)}"
    among = top["share_of_attributed"]
    # What a host-only recording leaves unmarked is often no part of the program at all; of little that is marked,
    # though, a share says nothing about the program.
    if 0 < unknown <= _MOST_UNKNOWN and not table.devices and lead == "Longest stage" and 0 < among < 1:
        text += f"; of the rest it takes {percent(among)}, and that is at most {times(1 / (1 - among))} as fast without"
    return f"{text}."


def _split(table: StageTable, stage: dict[str, Any]) -> str:
    """Busy and idle time of a stage in one step on one device, so that they can be held against the time of a step."""
    busy, idle = (duration(round(stage[key] / max(table.lanes, 1))) for key in ("device_busy_ns", "idle_ns"))
    steps = table.counted > 1 and table.steps.source is not StepSource.WHOLE
    over = " and ".join([*(["step"] if steps else []), *(["device"] if table.devices > 1 else [])])
    return f" ({f'per {over}: ' if over else ''}busy {busy}, idle {idle})"


def idle_sentence(table: StageTable) -> str | None:
    """In which stage most of the idle time passes, if there is much of it and one stage, not the longest, holds it."""
    if table.stages is None or not table.wall_ns or not table.devices:
        return None
    idle = int(table.stages.filter(table.stages["depth"] == 0)["idle_ns"].sum()) + table.unattributed_idle_ns
    top = table.stages.filter(table.stages["depth"] == 0).sort("idle_ns", "stage", descending=[True, False])
    held = top["idle_ns"][0] if top.height else 0
    longest = table.stages.filter(table.stages["depth"] == 0)["stage"]
    if idle < _MUCH_IDLE * table.wall_ns or held * 2 < idle or top["stage"][0] == longest[0]:
        return None
    return (
        f"Most of the idle time passes in {stage_name(top['stage'][0])}: {percent(held / table.wall_ns)} of the time."
    )


def write_steps(result: StepReport, steps: Sequence[Step], page: Page) -> None:
    """``traceview steps`` as text."""
    page.verdict(step_sentence(result.steps))
    write_conditions(page, result.trace, result.import_report)
    for grid in _step_grids(result, steps):
        write_grid(page, grid)
    write_remarks(page, result.import_report)


def write_stages(result: StageReport, page: Page, *, limit: int | None) -> None:
    """``traceview stages`` as text."""
    page.verdict(stage_sentence(result.stages))
    write_conditions(page, result.trace, result.import_report)
    for grid in _stage_grids(result, limit):
        write_grid(page, grid)
    write_remarks(page, result.import_report)


def print_steps(result: StepReport, steps: Sequence[Step], out: TextIO) -> None:
    """``traceview steps`` as Markdown."""
    facts = conditions(result.trace, result.import_report)
    print_markdown(out, "traceview steps", step_sentence(result.steps), facts, _step_grids(result, steps))


def print_stages(result: StageReport, out: TextIO, *, limit: int | None) -> None:
    """``traceview stages`` as Markdown."""
    facts = conditions(result.trace, result.import_report)
    print_markdown(out, "traceview stages", stage_sentence(result.stages), facts, _stage_grids(result, limit))


def _step_grids(result: StepReport, steps: Sequence[Step]) -> list[Grid]:
    described = {one.device: one for one in result.trace.devices}
    grids = [
        times_grid(result.steps),
        accounting_grid(result.steps, described),
        idle_grid(result.steps),
        host_grid(result.steps),
        steps_grid(steps, result.steps.table.source.value) if steps else None,
        notes_grid(result.notes),
    ]
    return [grid for grid in grids if grid is not None]


def _stage_grids(result: StageReport, limit: int | None) -> list[Grid]:
    grids = [stages_grid(result.stages, limit), _dispatch_grid(result), notes_grid(result.notes)]
    return [grid for grid in grids if grid is not None]


def _dispatch_grid(result: StageReport) -> Grid | None:
    """What ran in the longest stages."""
    if result.stages.stages is None:
        return None
    own = result.stages.stages.sort("own_wall_ns", descending=True)["stage"].to_list()
    rows = []
    for stage in own[:5]:
        for one in result.dispatches.get(stage, ())[:3]:
            what = f"{one.family}/{one.implementation}" if one.implementation else one.family
            rows.append(
                [
                    stage_name(stage, MOST_CELL),
                    what,
                    f"{one.count:,}",
                    duration(one.device_ns),
                    one.op or "op not recorded",
                ]
            )
    if not rows:
        return None
    columns = [Column("stage", name=True), Column("ran"), Column("count", number=True), Column("device", number=True)]
    if not result.trace.worked:
        rows, columns = [[*row[:3], *row[4:]] for row in rows], columns[:3]
    heading = f"What ran in the longest stages (whole trace{together(result.trace.worked)})"
    return Grid(heading, (*columns, Column("asked by", name=True)), rows)
