"""Two traces compared: the answer, the conditions, figures beside each other, bars, tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.comparability import Comparable, Effect
from traceview.dashboards.views.overview import Figure
from traceview.dashboards.views.table import Show, Table, in_ms
from traceview.quantities import signed_percent
from traceview.render.compare_tables import condition_sentence, stages_remark
from traceview.render.names import UNATTRIBUTED, stage_name
from traceview.render.units import counted, duration
from traceview.step_change import Verdict
from traceview.waterfall import OTHERS, PartOfStep, StepBar, Waterfall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.compare import Comparison, Delta
    from traceview.dispatch_change import Mix

MOST_KERNELS: Final = 200
MOST_BARS: Final = 7

WORDS: Final = {
    Verdict.FASTER: "Faster",
    Verdict.SLOWER: "Slower",
    Verdict.SAME: "The same",
    Verdict.INCONCLUSIVE: "Inconclusive",
}
COMPARABLE: Final = {
    Comparable.YES: ("ok", "Comparable, as far as recorded"),
    Comparable.LIMITED: ("warning", "Comparable with limits"),
    Comparable.NO: ("error", "Not comparable"),
}
"""The icon's name and the words for how far two traces can be compared."""


def conditions(found: Comparison) -> tuple[list[str], list[str]]:
    """What differs or is not known, a sentence each, and what is alike."""
    differ = [condition_sentence(one) for one in found.conditions if one.effect is not Effect.HOLDS]
    alike = [
        f"{one.what}: {one.before}" for one in found.conditions if one.effect is Effect.HOLDS and one.before is not None
    ]
    return [f"{text[:1].upper()}{text[1:]}" for text in differ], alike


def figures(found: Comparison) -> list[Figure]:
    """The steps of both, and the change."""
    step = found.step
    shown = []
    for name, one in (("Before", step.before), ("After", step.after)):
        if one is not None:
            shown.append(
                Figure(
                    name,
                    duration(round(one.median_ns)),
                    f"median of {counted(one.count, 'step')}; {duration(one.least_ns)} to {duration(one.most_ns)}",
                    "The median length of a steady step, and the shortest and longest.",
                )
            )
    if step.change is not None:
        room = (
            f"{signed_percent(step.low)} to {signed_percent(step.high)} by the spread of the steps"
            if step.low is not None
            else "too few steps for an interval"
        )
        shown.append(
            Figure(
                "Change",
                signed_percent(step.change),
                room,
                "Of the median; the interval is that of Hodges and Lehmann at 95 %.",
            )
        )
    return shown


def bars(found: Comparison) -> Waterfall | None:
    """The mean step of both, by stage, or by what the device did where a trace has no stages."""
    deltas: list[Delta]
    if found.stages is not None and found.unattributed is not None:
        outer = [one for one in found.stages if "/" not in one.name]
        outer.sort(key=lambda one: -max(one.before_ns or 0, one.after_ns or 0))
        deltas, small = outer[:MOST_BARS], outer[MOST_BARS:]
        names = [one.name for one in deltas]
        rows = [[one.before_ns or 0 for one in deltas], [one.after_ns or 0 for one in deltas]]
        if small:
            names.append(OTHERS)
            for row, values in zip(
                rows, ([one.before_ns for one in small], [one.after_ns for one in small]), strict=True
            ):
                row.append(sum(value or 0 for value in values))
        names.append(UNATTRIBUTED)
        rows[0].append(found.unattributed.before_ns or 0)
        rows[1].append(found.unattributed.after_ns or 0)
    elif found.parts is not None:
        deltas = list(found.parts)
        names = [one.name for one in deltas]
        rows = [[one.before_ns or 0 for one in deltas], [one.after_ns or 0 for one in deltas]]
    else:
        return None
    made = []
    for label, row in zip(("before", "after"), rows, strict=True):
        parts = tuple(PartOfStep(name, round(ns), 0) for name, ns in zip(names, row, strict=True) if round(ns))
        made.append(StepBar(label, sum(part.ns for part in parts), parts))
    return Waterfall(
        names=tuple(names),
        bars=tuple(made),
        means=(),
        steps=2,
        by_stage=found.stages is not None,
        on_device=False,
    )


def delta_table(deltas: Sequence[Delta], what: str, remarks: tuple[str, ...] = ()) -> Table:
    """Something per step before and after, in the order given."""
    frame = pl.DataFrame(
        {
            what: [one.name for one in deltas],
            "before ms": in_ms(one.before_ns for one in deltas),
            "after ms": in_ms(one.after_ns for one in deltas),
            "difference ms": in_ms(one.difference_ns for one in deltas),
            "change": [one.change for one in deltas],
        },
        schema_overrides={"before ms": pl.Float64, "after ms": pl.Float64, "change": pl.Float64},
    )
    shows = {name: Show.MS for name in frame.columns if name.endswith(" ms")}
    return Table(frame, {**shows, "change": Show.SHARE, what: Show.LONG if what == "kernel" else Show.MEDIUM}, remarks)


def stages_table(found: Comparison) -> Table | None:
    """The stages with what is in none; ``None`` if a trace has none."""
    if found.stages is None or found.unattributed is None:
        return None
    table = delta_table([*found.stages, found.unattributed], "stage")
    names = [
        *("\u2003" * one.name.count("/") + stage_name(one.name.rsplit("/", 1)[-1]) for one in found.stages),
        UNATTRIBUTED,
    ]
    remarks = ["Wall time of one step, mean; parts stand under what they are parts of, and count in it."]
    if alone := stages_remark(found):
        remarks.append(alone)
    return Table(table.frame.with_columns(stage=pl.Series(names)), table.shows, tuple(remarks))


def kernels_table(found: Comparison) -> Table:
    """The kernels, largest difference first."""
    deltas = found.kernels[:MOST_KERNELS]
    table = delta_table(deltas, "kernel")
    frame = table.frame.with_columns(
        pl.Series("calls before", [one.before_count for one in deltas], dtype=pl.Float64),
        pl.Series("calls after", [one.after_count for one in deltas], dtype=pl.Float64),
        pl.Series("family", [one.family for one in deltas], dtype=pl.String),
    )
    left = len(found.kernels) - len(deltas)
    remarks = ["Device time of one step, summed over the devices of a process."]
    if left:
        remarks.append(f"{counted(left, 'more kernel')}: the JSON file has all.")
    return Table(frame, {**table.shows, "calls before": Show.FEW, "calls after": Show.FEW}, tuple(remarks))


def dispatch_table(found: Comparison) -> Table | None:
    """Where something else ran; ``None`` if nothing did."""
    if not found.dispatches:
        return None
    frame = pl.DataFrame(
        {
            "work": [f"{one.family}{' backward' if one.direction == 'backward' else ''}" for one in found.dispatches],
            "stage": [None if one.stage is None else stage_name(one.stage) for one in found.dispatches],
            "ran before": [_mix(one.before) for one in found.dispatches],
            "runs after": [_mix(one.after) for one in found.dispatches],
            "before ms": in_ms(one.before_ns for one in found.dispatches),
            "after ms": in_ms(one.after_ns for one in found.dispatches),
        },
        schema_overrides={"stage": pl.String},
    )
    shows = {"before ms": Show.MS, "after ms": Show.MS, "ran before": Show.MEDIUM, "runs after": Show.MEDIUM}
    return Table(frame, shows, ("Calls and device time of one step, mean.",))


def _mix(mixes: Sequence[Mix]) -> str:
    """``math 2, flash-2 1``; slow ones are called that."""
    slow = {"slow": " (slow)", "unknown": " (not told)"}
    parts = [f"{one.implementation}{slow.get(one.verdict, '')} {one.count:,.4g}" for one in mixes]
    return ", ".join(parts) if parts else "nothing"


def recompiles_line(found: Comparison) -> str:
    """Compilations after the warm-up in both."""
    texts = [
        "not recorded" if one.count is None else f"{one.count:,} ({duration(one.total_ns or 0)})"
        for one in found.recompiles
    ]
    return f"{texts[0]} before, {texts[1]} after"
