"""``traceview compare`` as text and Markdown, and the sentence that leads both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TextIO

from traceview.comparability import Comparable, Effect
from traceview.quantities import signed_percent
from traceview.render.compare_tables import grids
from traceview.render.grids import print_markdown, write_grid
from traceview.render.names import stage_name
from traceview.render.units import counted, duration
from traceview.step_change import Verdict
from traceview.step_marks import StepSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.compare import Comparison, Side
    from traceview.dispatch_change import DispatchChange, Mix
    from traceview.render.page import Page
    from traceview.slowdown_limit import LimitResult, SlowdownLimit

_WORDS: Final = {
    Verdict.FASTER: "Faster",
    Verdict.SLOWER: "Slower",
    Verdict.SAME: "The same",
    Verdict.INCONCLUSIVE: "Inconclusive",
}
_MOST_SAID: Final = 2
_MEAN_APART: Final = 0.05
"""Where median and mean changed so differently, one of them alone misleads."""


def headline(found: Comparison) -> str:
    """What became of a step, by how much, and where something else ran."""
    step = found.step
    if step.before is None or step.after is None or step.change is None:
        return f"{_WORDS[found.verdict]}: {found.why}."
    if found.comparable is Comparable.NO:
        before, after = duration(round(step.before.median_ns)), duration(round(step.after.median_ns))
        what = "A step" if _marked(found) else "What is taken as a step"
        return f"Inconclusive: {found.why}. {what} takes {before} before and {after} after, which proves nothing."
    text = f"{_WORDS[found.verdict]}: {_subject(found)} takes {_length(found)}"
    if found.verdict is Verdict.INCONCLUSIVE:
        text += f"; {found.why}"
    else:
        text += f", {found.why}"
    text = f"{text}.{_largest(found)}"
    attention = [one for one in found.dispatches if one.family == "attention" and one.before and one.after]
    for one in attention[:_MOST_SAID]:
        text += f" {_change_sentence(one)}"
    if found.comparable is Comparable.LIMITED:
        limits = [one for one in found.conditions if one.effect is Effect.LIMITS]
        text += f" Comparable with limits: {', '.join(one.what for one in limits)}."
    return text


def _largest(found: Comparison) -> str:
    """The stage, or else the part of the time, that differs most, if that is much of the step."""
    step = found.step
    if found.comparable is Comparable.NO or step.before is None:
        return ""
    stages = [one for one in found.stages or () if one.before_ns is not None and one.after_ns is not None]
    parts = list(found.parts or ())
    for kind, deltas in (("stage ", stages), ("", parts)):
        top = max(deltas, key=lambda one: abs(one.difference_ns), default=None)
        if top is not None and abs(top.difference_ns) >= _MEAN_APART * step.before.mean_ns:
            name = stage_name(top.name) if kind else top.name
            before, after = (duration(round(ns or 0)) for ns in (top.before_ns, top.after_ns))
            return f" Largest difference: {kind}{name}, {after} instead of {before} per step."
    return ""


def _unmarked(one: Side) -> bool:
    """The trace has no step marks, so that all of it, in each process, counts as one step."""
    return one.steps.table.source is StepSource.WHOLE


def _marked(found: Comparison) -> bool:
    return not _unmarked(found.before) and not _unmarked(found.after)


def _subject(found: Comparison) -> str:
    if _marked(found):
        return "a step"
    if _unmarked(found.before) and _unmarked(found.after):
        return "the whole trace (no step marks)"
    return f"a step (the whole trace {'before' if _unmarked(found.before) else 'after'}, which has no step marks)"


def _length(found: Comparison) -> str:
    step = found.step
    assert step.before is not None
    assert step.after is not None
    assert step.change is not None
    counts = f"medians of {step.before.count:,} and {step.after.count:,} steps"
    if step.before.count == step.after.count == 1:
        counts = "one step each" if _marked(found) else "one each"
    elif _unmarked(found.before) and _unmarked(found.after):
        counts = f"medians of {step.before.count:,} and {step.after.count:,} processes"
    text = f"{duration(round(step.after.median_ns))} instead of {duration(round(step.before.median_ns))}"
    speedup = step.speedup
    times = ""
    if speedup is not None and step.change:
        times = f"{speedup:.2f}x as fast, " if speedup >= 1 else f"{1 / speedup:.2f}x as long, "
    mean = step.after.mean_ns / step.before.mean_ns - 1
    apart = f", mean {signed_percent(mean)}" if abs(mean - step.change) > _MEAN_APART else ""
    return f"{text} ({times}{signed_percent(step.change)}{apart}; {counts})"


def _change_sentence(one: DispatchChange) -> str:
    where = f" in {stage_name(one.stage)}" if one.stage else ""
    way = " backward" if one.direction == "backward" else ""
    return f"{one.family.capitalize()}{way}{where} ran {_mix_names(one.after)} instead of {_mix_names(one.before)}."


def _mix_names(mixes: Sequence[Mix]) -> str:
    names = [one.implementation for one in mixes[:3]]
    more = len(mixes) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "") if names else "nothing"


def write_comparison(
    found: Comparison, page: Page, *, limit: int, gate: tuple[SlowdownLimit, LimitResult] | None = None
) -> None:
    """As text.

    Args:
        found: The comparison.
        page: Where to.
        limit: Most stages, kernels and dispatches to list.
        gate: The limit asked for, and whether it holds.
    """
    page.verdict(headline(found))
    page.facts(facts(found, gate))
    for grid in grids(found, limit):
        write_grid(page, grid)


def print_comparison(
    found: Comparison, out: TextIO, *, limit: int, gate: tuple[SlowdownLimit, LimitResult] | None = None
) -> None:
    """As Markdown; see :func:`write_comparison`."""
    print_markdown(out, "traceview compare", headline(found), facts(found, gate), grids(found, limit))


def facts(found: Comparison, gate: tuple[SlowdownLimit, LimitResult] | None) -> list[tuple[str, str]]:
    """Which traces, how far they can be compared, and whether the limit holds."""
    rows = [
        ("before", _files(found.before)),
        ("after", _files(found.after)),
        ("comparable", _comparable(found)),
    ]
    if gate is not None:
        asked, result = gate
        words = ("holds", "does not hold", "", "cannot be told")
        rows.append(("limit", f"{asked.text} {words[result.code]}: {result.why}"))
    return rows


def _comparable(found: Comparison) -> str:
    if found.comparable is Comparable.YES:
        untold = [one.what for one in found.conditions if one.effect is Effect.UNKNOWN]
        return "yes, as far as recorded" + (f"; not recorded: {', '.join(untold)}" if untold else "")
    worst = Effect.FORBIDS if found.comparable is Comparable.NO else Effect.LIMITS
    names = ", ".join(one.what for one in found.conditions if one.effect is worst)
    return f"{'no' if found.comparable is Comparable.NO else 'with limits'}: {names}"


def _files(one: Side) -> str:
    files = one.trace.files
    more = f" and {counted(len(files) - 1, 'more file')}" if len(files) > 1 else ""
    steps = "no step marks" if _unmarked(one) else counted(one.count, "steady step")
    return f"{files[0]}{more} ({steps}, trust {one.trace.trust})"
