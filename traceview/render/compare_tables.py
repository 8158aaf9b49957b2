"""The tables of ``traceview compare``: conditions, steps, parts, stages, dispatches, kernels, compilations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.comparability import Effect
from traceview.quantities import signed_percent
from traceview.render.grids import Grid
from traceview.render.names import UNATTRIBUTED, stage_name
from traceview.render.page import Column
from traceview.render.units import counted, duration, durations

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.comparability import Condition
    from traceview.compare import Comparison, Delta
    from traceview.dispatch_change import DispatchChange

_EFFECTS: Final = {
    Effect.HOLDS: "alike",
    Effect.UNKNOWN: "not counted",
    Effect.LIMITS: "limits the comparison",
    Effect.FORBIDS: "forbids the comparison",
}
_LEAST_SHOWN: Final = 0.001
"""Differences below this part of a step are left out of text; JSON has all."""

_RUNS: Final = (
    "The spread is that of the steps of one recording. Runs of the same program may differ by more: repeat both, and "
    "compare again."
)


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


def stages_remark(found: Comparison) -> str | None:
    """Why a stage of one trace alone may only be unrecorded in the other; ``None`` if none is alone or it is not so."""
    if all(one.before_ns is not None and one.after_ns is not None for one in found.stages or ()):
        return None
    first, second = (side.stages.sources for side in (found.before, found.after))
    if set(first) == set(second):
        return None
    return (
        f"Stages of the first come from {', '.join(first)}, of the second from {', '.join(second)}: "
        "one that is in one trace alone may only not be recorded in the other."
    )


def stages_grid(found: Comparison, limit: int) -> Grid | None:
    """What each stage takes of a step."""
    if not found.stages or found.unattributed is None:
        return None
    shown = sorted(found.stages, key=lambda one: -max(one.before_ns or 0, one.after_ns or 0))[:limit]
    ordered = [one for one in found.stages if one in shown]
    names = ["  " * one.name.count("/") + stage_name(one.name.rsplit("/", 1)[-1], 40) for one in ordered]
    rows, unit = _delta_rows([*ordered, found.unattributed], [*names, UNATTRIBUTED])
    left, remark = len(found.stages) - len(ordered), stages_remark(found)
    return Grid(
        f"Stages (wall time per step, mean, {unit})",
        _columns("stage"),
        rows,
        (*((f"{counted(left, 'more stage')}.",) if left else ()), *((remark,) if remark else ())),
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
    columns = (Column("work"), Column("stage"), Column("before"), Column("after"))
    if not any(one.before_ns or one.after_ns for one in found.dispatches):
        return Grid("What ran instead (calls per step)", columns, [row[:4] for row in rows], more)
    times = (Column("before", number=True), Column("after", number=True))
    return Grid(f"What ran instead (calls per step; device time per step, {unit})", (*columns, *times), rows, more)


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
