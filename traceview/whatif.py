"""How long a step would take if stages changed: Amdahl's law over disjoint shares, with the range that overlap leaves.

The wall time of the steady steps is cut so that each moment is of one stage (:mod:`traceview.partition`). So several
changes combine exactly: the new time is what each stage keeps of its own time, plus what no change reaches. Ceilings of
single changes do not add, and they do not multiply either.

One number would still promise too much: what is hidden behind a stage today comes to light when the stage shrinks, and
a faster device may only wait for its host. So the answer is a range:

- its lower end: host and device of each changed stage get faster alike, and everything overlaps as recorded;
- its upper end: one after the other. A faster stage gains on the device alone, where the device works for it; hidden
  work of other stages comes to light; nothing that was to be overlapped is; and the host still has to do its own work.

The upper end is never above the recorded time: less work does not make a step longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview import intervals
from traceview.quantities import milliseconds
from traceview.step_marks import StepSource
from traceview.waits import waits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traceview.stage_table import StageTable
    from traceview.timeline import Timeline

UNATTRIBUTED: Final = None
"""Key of the time that is in no stage."""

_NOT_ON_HOST: Final = (StepSource.XLA_MODULE, StepSource.WHOLE)
"""Steps that are no ranges of the host, so that nothing tells what the host does for one."""


class Effect(StrEnum):
    """What happens to a stage."""

    FASTER = "faster"
    """It takes its time divided by a factor."""
    REMOVED = "removed"
    """It takes no time."""
    OVERLAPPED = "overlapped"
    """It runs while the rest of the step does, e.g. loading of data in a process of its own."""
    FLOOR = "at the hardware floor"
    """Its matrix products and fused attention take what the hardware needs at least; the rest of it stays."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one stage, parts included.

    Attributes:
        effect: What happens to it.
        factor: How many times faster; only for :attr:`Effect.FASTER`, above 0. Below 1 it gets slower.
    """

    effect: Effect
    factor: float = 1.0

    def __post_init__(self) -> None:
        if self.effect is Effect.FASTER and not (isfinite(self.factor) and self.factor > 0):
            msg = f"a stage gets faster by a factor above 0, not {self.factor}"
            raise ValueError(msg)


class BoundKind(StrEnum):
    """What keeps the new step from being shorter."""

    UNCHANGED = "the rest"
    """Time that no change reaches."""
    CHANGED = "the changed stages"
    """What the changed stages still take."""
    OVERLAPPED = "the overlapped stage"
    """The stage that runs beside the rest takes longer than the rest."""
    HOST = "the host"
    """The host needs that long for its own work."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What keeps one end of the range from being shorter.

    Attributes:
        kind: Which of them.
        stage: The stage that takes most of it; ``None`` for time in no stage and for the host.
        ns: How long that takes per step, ns.
    """

    kind: BoundKind
    stage: str | None
    ns: int


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A step after some changes. Times are means over the counted steps.

    Attributes:
        before_ns: The step as recorded, ns.
        least_ns: Lower end of the range, ns.
        most_ns: Upper end of the range, ns; at least ``least_ns``.
        ceiling_ns: What would be left if the changed stages took no time at all, ns.
        least_bound: What bounds the lower end.
        most_bound: What bounds the upper end.
        stages: Own time per step of each stage before, and at both ends after, ns; key ``None`` is time in no stage. An
            overlapped stage takes none at the lower end.
        host_ns: What the host needs for its own work per step, ns; ``None`` where that is not known.
        not_applied: Changes that could not be made, each with the reason.
        assumptions: What the figures rest on.
    """

    before_ns: int
    least_ns: int
    most_ns: int
    ceiling_ns: int
    least_bound: Bound
    most_bound: Bound
    stages: dict[str | None, tuple[int, int, int]]
    host_ns: int | None
    not_applied: tuple[tuple[str, str], ...]
    assumptions: tuple[str, ...]

    @property
    def most_speedup(self) -> float | None:
        """How many times as fast at best; ``None`` if nothing would be left."""
        return self.before_ns / self.least_ns if self.least_ns else None

    @property
    def least_speedup(self) -> float | None:
        """How many times as fast at worst."""
        return self.before_ns / self.most_ns if self.most_ns else None

    @property
    def ceiling(self) -> float | None:
        """How many times as fast if the changed stages took no time; ``None`` if nothing would be left."""
        return self.before_ns / self.ceiling_ns if self.ceiling_ns else None

    @property
    def saved_shares(self) -> tuple[float, float]:
        """Part of the step that is saved, at worst and at best."""
        if not self.before_ns:
            return 0.0, 0.0
        return 1 - self.most_ns / self.before_ns, 1 - self.least_ns / self.before_ns


def host_work(timeline: Timeline, table: StageTable) -> int | None:
    """How long the host of a step is at work for it, without its waits for the device: mean over the steps, ns.

    The device can get as fast as it likes: with the same calls a step never gets shorter than this. A call that waits
    because the queue of launches is full counts as work, so the figure may be too high, and it is only used for the
    upper end of a range.

    Args:
        timeline: With launches linked.
        table: Its stages; their steps are looked at.

    Returns:
        ``None`` where steps are no host ranges: in a trace without marks, and for runs of a compiled program.
    """
    steps = table.steps.steady.filter(pl.col("host_end_ns") > pl.col("host_start_ns"))
    if table.steps.source in _NOT_ON_HOST or not steps.height or not table.devices:
        return None
    # A thread that launches nothing, such as one that pins memory, may wait as long as it likes.
    launching = timeline.events["thread"].gather(timeline.device_work["launch_id"].drop_nulls().unique()).unique()
    waiting = waits(timeline).filter(pl.col("thread").is_in(launching.implode()))
    waiting = waiting.join(timeline.threads.select("thread", "process"), on="thread", how="left")
    total = 0
    for (process,), own in steps.group_by("process", maintain_order=True):
        spans = intervals.merge(own["host_start_ns"].to_numpy(), own["host_end_ns"].to_numpy())
        blocked = waiting.filter(pl.col("process").eq_missing(pl.lit(process, pl.UInt32)))
        held = intervals.merge(blocked["start_ns"].to_numpy(), blocked["end_ns"].to_numpy())
        total += intervals.total(*intervals.subtract(spans, held))
    return round(total / steps.height)


@dataclass(frozen=True, slots=True)
class _Own:
    """Own time of one stage: without its parts, ns."""

    busy: float
    idle: float
    hidden: float


def what_if(
    table: StageTable, changes: Mapping[str, Change], *, host_ns: int | None = None, attributed_only: bool = False
) -> WhatIf:
    """How long a step takes after changes of its stages.

    A change of a stage reaches its parts, unless a part has a change of its own.

    Args:
        table: The stages of the steady steps.
        changes: Stage to what happens to it.
        host_ns: What the host needs per step, see :func:`host_work`.
        attributed_only: Leave out time in no stage: in a recording of annotations alone it is often no part of the
            program. Shares are then of the attributed time.

    Raises:
        KeyError: a stage is not in the table.
    """
    owns = _own_times(table)
    if attributed_only:
        owns[UNATTRIBUTED] = _Own(0.0, 0.0, 0.0)
    for stage in changes:
        if stage not in owns:
            raise KeyError(stage)
    scale = 1 / table.lanes if table.lanes else 0.0
    reach = {stage: None if stage is None else _change_of(stage, changes) for stage in owns}
    floors, refused = _floor_savings(table, changes, reach)
    least, most, apart = _ends(owns, changes, reach, floors)
    held = _held_by_host(table, changes, reach, owns, most)
    hidden = sum(own.hidden for stage, own in owns.items() if reach[stage] is None or reach[stage] in refused)
    before = {stage: own.busy + own.idle for stage, own in owns.items()}
    whole = sum(before.values())
    serial = sum(most.values())
    upper = min(serial + min(max(whole - serial, 0.0), hidden), max(whole, serial))
    lower = max(sum(least.values()), max(apart.values(), default=0.0))
    reached = {stage for stage, by in reach.items() if by is not None and by not in refused}
    host = min(host_ns / scale, whole) if host_ns is not None and scale and _keeps_host(changes) else 0.0
    host_bound = bool(reached) and host > upper
    upper = max(upper, lower, host if host_bound else 0.0)
    rest = sum(ns for stage, ns in before.items() if stage not in reached)
    return WhatIf(
        before_ns=round(whole * scale),
        least_ns=round(lower * scale),
        most_ns=round(upper * scale),
        ceiling_ns=round(rest * scale),
        least_bound=_bound(least, apart, reached, scale),
        most_bound=Bound(BoundKind.HOST, None, round(host * scale)) if host_bound else _bound(most, {}, reached, scale),
        stages={
            stage: (round(ns * scale), round(least[stage] * scale), round(most[stage] * scale))
            for stage, ns in before.items()
        },
        host_ns=host_ns,
        not_applied=tuple(refused.items()),
        assumptions=(
            *_assumptions(table, changes, host_ns, hidden=hidden > 0),
            *(_held_words(*one, scale) for one in held),
        ),
    )


def _own_times(table: StageTable) -> dict[str | None, _Own]:
    """Own time of each stage over all counted steps; the last entry is the time in no stage."""
    found: dict[str | None, _Own] = {}
    if table.stages is not None:
        columns = ("stage", "own_wall_ns", "device_busy_ns", "idle_ns", "overlapped_ns")
        rows = table.stages.select(columns).rows()
        for stage, own_wall, busy, idle, hidden in rows:
            parts = [row for row in rows if row[0].rpartition("/")[0] == stage]
            own_busy = busy - sum(row[2] for row in parts)
            own_idle = idle - sum(row[3] for row in parts)
            # Without a device all time of the host is the stage's own.
            left = own_wall - own_busy - own_idle
            found[stage] = _Own(own_busy, own_idle + left, max(hidden - sum(row[4] for row in parts), 0))
    found[UNATTRIBUTED] = _Own(table.unattributed_busy_ns, table.unattributed_idle_ns, 0)
    return found


def _change_of(stage: str, changes: Mapping[str, Change]) -> str | None:
    """The stage whose change reaches this one: itself, or the closest one around it."""
    at = stage
    while at:
        if at in changes:
            return at
        at = at.rpartition("/")[0]
    return None


def _floor_savings(
    table: StageTable, changes: Mapping[str, Change], reach: Mapping[str | None, str | None]
) -> tuple[dict[str, float], dict[str, str]]:
    """What stages save at their floor, over all steps, ns; and those that cannot be told, with the reason."""
    savings: dict[str, float] = {}
    refused: dict[str, str] = {}
    factors = dict(table.stages.select("stage", "speedup_at_floor").iter_rows()) if table.stages is not None else {}
    for stage, change in changes.items():
        if change.effect is not Effect.FLOOR:
            continue
        if factors.get(stage) is None:
            refused[stage] = "its hardware floor is not known: no shapes, FLOP or bytes are recorded for enough of it"
        elif any(other != stage and other.startswith(f"{stage}/") and by == other for other, by in _pairs(reach)):
            refused[stage] = "a part of it has a change of its own, and its floor is known for the whole only"
        else:
            savings[stage] = table.wall_ns - table.wall_ns / factors[stage]
    return savings, refused


def _pairs(reach: Mapping[str | None, str | None]) -> list[tuple[str, str | None]]:
    return [(stage, by) for stage, by in reach.items() if stage is not None]


Times = dict[str | None, float]


def _ends(
    owns: Mapping[str | None, _Own],
    changes: Mapping[str, Change],
    reach: Mapping[str | None, str | None],
    floors: Mapping[str, float],
) -> tuple[Times, Times, dict[str, float]]:
    """New own times at both ends, and how long each stage is that runs beside the rest."""
    least: Times = {}
    most: Times = {}
    apart: dict[str, float] = {}
    busy: dict[str, float] = {}
    for stage, by in reach.items():
        if by is not None:
            busy[by] = busy.get(by, 0.0) + owns[stage].busy
    for stage, own in owns.items():
        by = reach[stage]
        ns = own.busy + own.idle
        least[stage] = most[stage] = ns
        if by is None:
            continue
        change = changes[by]
        if change.effect is Effect.REMOVED:
            least[stage] = most[stage] = 0.0
        elif change.effect is Effect.OVERLAPPED:
            apart[by] = apart.get(by, 0.0) + ns
            least[stage] = 0.0
        elif change.effect is Effect.FLOOR:
            # The floor is known for a stage as a whole: its parts share the saving as they share its device time.
            part = own.busy / busy[by] if busy[by] else 0.0
            least[stage] = most[stage] = ns - min(floors.get(by, 0.0) * part, own.busy)
        else:
            # Where the device works for a stage, its idle time may be its host's, which keeps its pace.
            ends = (ns / change.factor, own.busy / change.factor + own.idle if busy[by] else ns / change.factor)
            least[stage], most[stage] = min(ends), max(ends)
    return least, most, apart


def _held_by_host(
    table: StageTable,
    changes: Mapping[str, Change],
    reach: Mapping[str | None, str | None],
    owns: Mapping[str | None, _Own],
    most: Times,
) -> list[tuple[str, int]]:
    """Raise the upper end of stages to what their host needs for its calls; the stages concerned, with that time.

    What the device gains beyond that is hidden behind the host: it only waits for the next launch.
    """
    held = []
    for by, change in changes.items():
        if change.effect not in {Effect.FASTER, Effect.FLOOR} or change.factor < 1:
            continue
        mine = [stage for stage, own in reach.items() if own == by]
        busy = sum(owns[stage].busy for stage in mine)
        before = sum(owns[stage].busy + owns[stage].idle for stage in mine)
        # Idle time of a stage without device work is its host's own, and gets faster with it.
        need = min(float(table.host_needs.get(by, 0)), before) if busy else 0.0
        short = need - sum(most[stage] for stage in mine)
        if short > 0:
            most[by] += short
            held.append((by, table.host_needs[by]))
    return held


def _held_words(stage: str, ns: int, scale: float) -> str:
    return (
        f"Upper end: the host works {milliseconds(round(ns * scale))} per step for {stage} itself; what the device "
        "gains beyond that is hidden behind the host."
    )


def _keeps_host(changes: Mapping[str, Change]) -> bool:
    """Whether the host still makes all its calls: where work is taken from it, nothing is known of what it needs."""
    return all(change.effect in {Effect.FASTER, Effect.FLOOR} for change in changes.values())


def _bound(inline: Times, apart: Mapping[str, float], reached: set[str | None], scale: float) -> Bound:
    """What takes most of a new step."""
    longest = max(apart, key=lambda stage: apart[stage], default=None)
    if longest is not None and apart[longest] > sum(inline.values()):
        return Bound(BoundKind.OVERLAPPED, longest, round(apart[longest] * scale))
    rest = {stage: ns for stage, ns in inline.items() if stage not in reached}
    changed = {stage: ns for stage, ns in inline.items() if stage in reached}
    kind = BoundKind.UNCHANGED if sum(rest.values()) >= sum(changed.values()) else BoundKind.CHANGED
    chosen = rest if kind is BoundKind.UNCHANGED else changed
    top = max(chosen, key=lambda stage: chosen[stage], default=None)
    return Bound(kind, top, round(sum(chosen.values()) * scale))


def _assumptions(table: StageTable, changes: Mapping[str, Change], host_ns: int | None, *, hidden: bool) -> list[str]:
    said = [
        "Shares are of the steady steps as recorded, each moment in one stage. Ceilings of several changes do not add.",
    ]
    effects = {change.effect for change in changes.values()}
    if Effect.FASTER in effects and table.devices:
        said.append(
            "Lower end: host and device of a stage get faster alike. Upper end: only its device work does, and its "
            "idle time stays."
        )
    if Effect.OVERLAPPED in effects:
        said.append(
            "Lower end: an overlapped stage is hidden wholly behind the rest, as if it shared no resource with it. "
            "Upper end: it is not hidden at all."
        )
    if Effect.FLOOR in effects:
        said.append(
            "The floor counts matrix products and fused attention of known shape, and work of known FLOP or bytes, at "
            "published dense peaks. Nobody reaches it."
        )
    if hidden and effects:
        said.append("Upper end: work of other stages that is hidden today takes the place of what is saved.")
    if not table.devices or not effects:
        return said
    if host_ns is None:
        said.append("What the host needs for itself is not known here, so it bounds nothing.")
    elif _keeps_host(changes):
        said.append("Upper end: with the same calls a step is no shorter than what its host needs for its own work.")
    return said
