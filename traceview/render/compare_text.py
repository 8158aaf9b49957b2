"""``traceview compare`` as text and Markdown, and the sentence that leads both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TextIO

from traceview.comparability import Comparable, Effect
from traceview.quantities import signed_percent
from traceview.render.grids import Grid, print_markdown, write_grid
from traceview.render.names import UNATTRIBUTED, stage_name
from traceview.render.page import Column, Page
from traceview.render.units import counted, duration, durations
from traceview.step_change import Verdict
from traceview.step_marks import StepSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.comparability import Condition
    from traceview.compare import Comparison, Delta, Side
    from traceview.dispatch_change import DispatchChange, Mix
    from traceview.slowdown_limit import LimitResult, SlowdownLimit

DEFAULT_LIMIT: Final = 12

_WORDS: Final = {
    Verdict.FASTER: "Faster",
    Verdict.SLOWER: "Slower",
    Verdict.SAME: "The same",
    Verdict.INCONCLUSIVE: "Inconclusive",
}
_EFFECTS: Final = {
    Effect.HOLDS: "alike",
    Effect.UNKNOWN: "not counted",
    Effect.LIMITS: "limits the comparison",
    Effect.FORBIDS: "forbids the comparison",
}
_MOST_SAID: Final = 2
_MEAN_APART: Final = 0.05
"""Where median and mean changed so differently, one of them alone misleads."""
_LEAST_SHOWN: Final = 0.001
"""Differences below this part of a step are left out of text; JSON has all."""

_RUNS: Final = (
    "The spread is that of the steps of one recording. Runs of the same program may differ by more: repeat both, and "
    "compare again."
)


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


def grids(found: Comparison, limit: int) -> list[Grid]:
    """All tables, without those that would be empty."""
    made = [
        conditions_grid(found.conditions),
        steps_grid(found),
        parts_grid(found),
        stages_grid(found, limit),
        dispatch_grid(found, limit),
        kernels_grid(found, limit),
        recompiles_grid(found),
        import_grid(found),
    ]
    return [grid for grid in made if grid is not None]


def conditions_grid(conditions: Sequence[Condition]) -> Grid:
    """What is not alike, and then what is."""
    differ = [one for one in conditions if one.effect is not Effect.HOLDS]
    alike = [f"{one.what} ({one.before})" for one in conditions if one.effect is Effect.HOLDS and one.before]
    remarks = [f"- {condition_sentence(one)}" for one in differ]
    if alike:
        remarks.append(f"Alike: {', '.join(alike)}.")
    return Grid("Conditions that differ" if differ else "Conditions", (), [], tuple(remarks))


def condition_sentence(one: Condition) -> str:
    """A condition with what follows from it."""
    values = [text or "not recorded" for text in (one.before, one.after)]
    both = f"{values[0]} in both" if values[0] == values[1] else f"{values[0]} before, {values[1]} after"
    consequence = f": {one.consequence}" if one.consequence else ""
    return f"{one.what}: {both}; {_EFFECTS[one.effect]}{consequence}."


def steps_grid(found: Comparison) -> Grid:
    """How long steps take in both traces."""
    changes = (found.step, *found.phases)
    rows, remarks = [], []
    values = [
        round(value)
        for change in changes
        for one in (change.before, change.after)
        if one is not None
        for value in (one.median_ns, one.mean_ns, one.least_ns, one.most_ns)
    ]
    unit, texts = durations(values)
    at = 0
    for change in changes:
        for name, one in (("before", change.before), ("after", change.after)):
            if one is None:
                continue
            label = f"{change.phase}, {name}" if change.phase else name
            rows.append([label, f"{one.count:,}", *texts[at : at + 4]])
            at += 4
        if change.change is not None:
            of = f"{change.phase}: " if change.phase else ""
            room = (
                f", anything from {signed_percent(change.low)} to {signed_percent(change.high)} by the spread of the "
                "steps"
                if change.low is not None and change.high is not None
                else ""
            )
            remarks.append(f"{of}change of the median {signed_percent(change.change)}{room}: {change.verdict.value}.")
    return Grid(
        f"Steady steps ({unit})",
        (Column("steps"), *(Column(name, number=True) for name in ("count", "median", "mean", "shortest", "longest"))),
        rows,
        (*remarks, _RUNS),
    )


def parts_grid(found: Comparison) -> Grid | None:
    """What the time of a step goes to."""
    if not found.parts:
        return None
    whole = max(sum(one.before_ns or 0 for one in found.parts), sum(one.after_ns or 0 for one in found.parts))
    shown = [
        one
        for one in found.parts
        if max(one.before_ns or 0, one.after_ns or 0) >= _LEAST_SHOWN * whole or abs(one.difference_ns) >= whole / 100
    ]
    rows, unit = _delta_rows(shown, [one.name for one in shown], sums=found.parts)
    return Grid(
        f"Time of a step on the device (mean, {unit})",
        _columns("part"),
        rows,
        ("Parts below 0.1 % of a step are counted in all, but not listed.",) if len(shown) < len(found.parts) else (),
    )


def stages_grid(found: Comparison, limit: int) -> Grid | None:
    """What each stage takes of a step."""
    if not found.stages or found.unattributed is None:
        return None
    shown = sorted(found.stages, key=lambda one: -max(one.before_ns or 0, one.after_ns or 0))[:limit]
    ordered = [one for one in found.stages if one in shown]
    names = ["  " * one.name.count("/") + stage_name(one.name.rsplit("/", 1)[-1], 40) for one in ordered]
    rows, unit = _delta_rows([*ordered, found.unattributed], [*names, UNATTRIBUTED])
    left = len(found.stages) - len(ordered)
    return Grid(
        f"Stages (wall time per step, mean, {unit})",
        _columns("stage"),
        rows,
        (f"{counted(left, 'more stage')}.",) if left else (),
    )


def dispatch_grid(found: Comparison, limit: int) -> Grid | None:
    """Where something else ran."""
    if not found.dispatches:
        return None
    shown = found.dispatches[:limit]
    unit, texts = durations([round(ns) for one in shown for ns in (one.before_ns, one.after_ns)])
    rows = [
        [
            f"{one.family}{' backward' if one.direction == 'backward' else ''}",
            stage_name(one.stage, 24) if one.stage else "-",
            *_mix_cells(one),
            *texts[2 * at : 2 * at + 2],
        ]
        for at, one in enumerate(shown)
    ]
    left = len(found.dispatches) - len(shown)
    more = (f"{counted(left, 'more change')}.",) if left else ()
    return Grid(
        f"What ran instead (calls per step; device time per step, {unit})",
        (
            Column("work"),
            Column("stage"),
            Column("before"),
            Column("after"),
            Column("before", number=True),
            Column("after", number=True),
        ),
        rows,
        more,
    )


def _mix_cells(one: DispatchChange) -> list[str]:
    """Both mixes, first what shifted most."""
    parts = []
    for mixes in (one.before, one.after):
        total = sum(mix.count for mix in mixes)
        parts.append({mix.implementation: mix.count / total if total else 0.0 for mix in mixes})
    shift = {name: abs(parts[0].get(name, 0.0) - parts[1].get(name, 0.0)) for name in {*parts[0], *parts[1]}}
    cells = []
    for mixes in (one.before, one.after):
        ordered = sorted(mixes, key=lambda mix: (-shift[mix.implementation], mix.implementation))
        names = [f"{mix.implementation} {mix.count:,.4g}" for mix in ordered[:2]]
        cells.append(", ".join(names) + (f", {len(mixes) - 2} more" if len(mixes) > 2 else "") if names else "nothing")
    return cells


def kernels_grid(found: Comparison, limit: int) -> Grid | None:
    """Kernels whose time differs most."""
    whole = max((one.median_ns for one in (found.step.before, found.step.after) if one is not None), default=0.0)
    differing = [one for one in found.kernels if abs(one.difference_ns) >= _LEAST_SHOWN * whole]
    shown = differing[:limit]
    if not shown:
        return None
    unit, texts = durations(_whole(ns for one in shown for ns in (one.before_ns, one.after_ns)), short=True)
    differences = _signed([one.difference_ns for one in shown], unit)
    rows = [
        [
            texts[2 * at],
            texts[2 * at + 1],
            differences[at],
            _calls(one.before_count),
            _calls(one.after_count),
            _status(one),
            one.name,
        ]
        for at, one in enumerate(shown)
    ]
    left = len(differing) - len(shown)
    remarks = ["Sums over the devices of a process. Kernels that run side by side take less wall time than their sum."]
    if left:
        remarks.append(f"{counted(left, 'more kernel')}: --limit {len(differing)} shows all that differ.")
    return Grid(
        f"Kernels that differ most (device time per step, {unit})",
        (
            *(Column(name, number=True) for name in ("before", "after", "difference", "calls before", "after ")),
            Column(""),
            Column("kernel", name=True),
        ),
        rows,
        tuple(remarks),
    )


def _status(one: Delta) -> str:
    if one.before_ns is None:
        return "new"
    if one.after_ns is None:
        return "gone"
    calls = [count or 0.0 for count in (one.before_count, one.after_count)]
    if max(calls) > 1.01 * min(calls):
        return "more calls" if calls[1] > calls[0] else "fewer calls"
    return "slower" if one.difference_ns > 0 else "faster"


def _calls(count: float | None) -> str:
    return "-" if count is None else f"{count:,.4g}"


def recompiles_grid(found: Comparison) -> Grid | None:
    """Compilations after the warm-up."""
    before, after = found.recompiles
    if not (before.count or after.count):
        return None
    rows = [
        [
            name,
            "not recorded" if one.count is None else f"{one.count:,}",
            "-" if one.total_ns is None else duration(one.total_ns),
        ]
        for name, one in (("before", before), ("after", after))
    ]
    return Grid(
        "Compilations after the warm-up",
        (Column("trace"), Column("count", number=True), Column("time", number=True)),
        rows,
    )


def import_grid(found: Comparison) -> Grid | None:
    """What limits the trust in either trace."""
    remarks = [
        f"- {name}: {note.text}"
        for name, one in (("before", found.before), ("after", found.after))
        for note in one.import_report.notes
        if note.trust != "good"
    ]
    return Grid("What is missing in the traces", (), [], tuple(remarks)) if remarks else None


def _columns(first: str) -> tuple[Column, ...]:
    return (Column(first), *(Column(name, number=True) for name in ("before", "after", "difference", "change")))


def _delta_rows(
    deltas: Sequence[Delta], names: Sequence[str], *, sums: Sequence[Delta] = ()
) -> tuple[list[list[str]], str]:
    """Rows of before, after, difference and change; a last one with the sum of ``sums``."""
    totals = [sum(one.before_ns or 0.0 for one in sums), sum(one.after_ns or 0.0 for one in sums)] if sums else []
    unit, texts = durations(_whole([*(ns for one in deltas for ns in (one.before_ns, one.after_ns)), *totals]))
    differences = _signed([*(one.difference_ns for one in deltas), *([totals[1] - totals[0]] if sums else [])], unit)
    rows = [
        [name, texts[2 * at], texts[2 * at + 1], differences[at], signed_percent(one.change)]
        for at, (name, one) in enumerate(zip(names, deltas, strict=True))
    ]
    if sums:
        change = totals[1] / totals[0] - 1 if totals[0] else None
        rows.append(["all", texts[-2], texts[-1], differences[-1], signed_percent(change)])
    return rows, unit


def _whole(values: Iterable[float | None]) -> list[int | None]:
    return [None if value is None else round(value) for value in values]


def _signed(values: Sequence[float], unit: str) -> list[str]:
    """Differences in the unit of their table, each with its sign."""
    size = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}[unit]
    digits = 0 if unit == "ns" else 3
    return [f"{value / size:+,.{digits}f}" if round(value / size, digits) else "0" for value in values]
