"""Where each single step went, by stage: what a chart of steps shows, in parts that add up to each step exactly.

The longest stages stand for themselves, the rest together. Where one stage is nearly everything, its parts are shown
instead. Without stages a step is cut by what the device did.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from traceview.accounting import Part, device_times, process_of_devices, stepping_process
from traceview.partition import partition
from traceview.stages import assign_stages

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from numpy.typing import NDArray

    from traceview.partition import Partition
    from traceview.report_parts import Device
    from traceview.stages import StagePattern, Staging
    from traceview.steps import StepTable
    from traceview.timeline import Timeline

UNATTRIBUTED: Final = "Unattributed"
OTHERS: Final = "other stages"

MOST_STAGES: Final = 7
"""More stages than a reader can tell apart by colour stand together."""

MOST_STEPS: Final = 12
"""Of more steps so many are shown, at even distances, the longest among them."""

_NEARLY_ALL: Final = 0.9
"""A stage that takes more of the time is shown by its parts."""


@dataclass(frozen=True, slots=True)
class PartOfStep:
    """What one stage takes of one step: ``busy_ns + idle_ns`` is all of it."""

    name: str
    busy_ns: int
    idle_ns: int

    @property
    def ns(self) -> int:
        """All of it, ns."""
        return self.busy_ns + self.idle_ns


@dataclass(frozen=True, slots=True)
class StepBar:
    """One step on one device; its parts add up to its wall time exactly.

    Attributes:
        label: Which step, and on which device where there are several.
        wall_ns: Its wall time, ns.
        parts: What it went to, in the order of :attr:`Waterfall.names`; nothing that takes no time.
    """

    label: str
    wall_ns: int
    parts: tuple[PartOfStep, ...]


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The steps that are no warm-up, by what they went to.

    Attributes:
        names: Stages, longest first, then the others and what is in none; or the parts of the time of a device.
        bars: The steps shown, by time.
        means: What each of the names takes of a step: mean over all steps, rounded to whole ns. Empty where bars are of
            different things.
        steps: Number of steps there are, those on several devices counted on each.
        by_stage: The names are stages.
        on_device: A device is recorded, so that a stage has busy and idle time; without one all of it is idle.
        within: The stage whose parts the names are, ``None`` if they are outermost stages.
    """

    names: tuple[str, ...]
    bars: tuple[StepBar, ...]
    means: tuple[PartOfStep, ...]
    steps: int
    by_stage: bool
    on_device: bool
    within: str | None = None


def waterfall(
    timeline: Timeline,
    steps: StepTable,
    devices: Sequence[Device] = (),
    *,
    given: Sequence[StagePattern] = (),
    staging: Staging | None = None,
) -> Waterfall | None:
    """Where each steady step went; ``None`` without any.

    Args:
        timeline: With launches linked.
        steps: Its steps.
        devices: Its devices, for the labels.
        given: Stages of the user.
        staging: The stages, if they are known already.
    """
    steady = steps.steady
    if not steady.height:
        return None
    staging = staging or assign_stages(timeline, given)
    cut = partition(staging, steady)
    labels = {one.device: one.label for one in devices}
    if cut.stages and int(cut.walls.sum()):
        return _by_stage(cut, steady, labels)
    return _by_part(timeline, steady, labels)


def _by_stage(cut: Partition, steady: pl.DataFrame, labels: dict[int, str]) -> Waterfall:
    top, within = _names(cut)
    row_of = {name: at for at, name in enumerate(top)}
    places = np.array([row_of[_group(path, within)] for path in cut.stages], np.intp)
    busy, idle = (_grouped(table[:-1], places, len(top)) for table in (cut.busy, cut.idle))
    order = np.argsort(-(busy + idle).sum(axis=1), kind="stable")
    first, rest = order[:MOST_STAGES], order[MOST_STAGES:]
    if len(rest) == 1:  # One more colour is no worse than a group of one.
        first, rest = order, order[:0]
    names = [top[at] for at in first]
    tables = []
    for table, last in ((busy, cut.busy[-1]), (idle, cut.idle[-1])):
        rows = [table[at] for at in first]
        tables.append(np.stack([*rows, *([table[rest].sum(axis=0)] if len(rest) else []), last]))
    names += [*([OTHERS] if len(rest) else []), UNATTRIBUTED]
    several = len({device for device in cut.devices if device is not None}) > 1
    bars = []
    step_labels = _step_labels(steady)
    for at in _shown(cut.walls, MOST_STEPS):
        device = cut.devices[at]
        label = step_labels[int(cut.steps[at])]
        if several and device is not None:
            label = f"{label}, {labels.get(device, f'device {device}')}"
        parts = tuple(
            PartOfStep(name, int(tables[0][row, at]), int(tables[1][row, at]))
            for row, name in enumerate(names)
            if tables[0][row, at] + tables[1][row, at]
        )
        bars.append(StepBar(label, int(cut.walls[at]), parts))
    count = len(cut.walls)
    means = [
        PartOfStep(name, round(int(tables[0][row].sum()) / count), round(int(tables[1][row].sum()) / count))
        for row, name in enumerate(names)
    ]
    kept = tuple(one for one in means if one.ns or one.name == UNATTRIBUTED)
    shown = {part.name for bar in bars for part in bar.parts} | {one.name for one in kept}
    return Waterfall(
        names=tuple(name for name in names if name in shown),
        bars=tuple(bars),
        means=tuple(one for one in means if one.name in shown),
        steps=count,
        by_stage=True,
        on_device=any(device is not None for device in cut.devices),
        within=within,
    )


def _step_labels(steady: pl.DataFrame) -> list[str]:
    """Names of steps; where several have the same, each with its number."""
    names, numbers = steady["name"].to_list(), steady["number"].to_list()
    alike = len(set(names)) < len(names) and steady["process"].n_unique() == 1
    return [f"{name} #{number}" if alike else str(name) for name, number in zip(names, numbers, strict=True)]


def _names(cut: Partition) -> tuple[list[str], str | None]:
    """The stages to tell apart, and the stage that they are parts of, if they are not the outermost."""
    total = int(cut.walls.sum())
    own = (cut.busy + cut.idle)[:-1].sum(axis=1)
    within: str | None = None
    while True:
        sums: dict[str, int] = {}
        for path, ns in zip(cut.stages, own.tolist(), strict=True):
            name = _group(path, within)
            sums[name] = sums.get(name, 0) + ns
        inner = {name: ns for name, ns in sums.items() if within is None or name.startswith(f"{within}/")}
        top = max(inner, key=lambda name: inner[name])
        # A stage with a single part gains nothing from being opened.
        children = {_group(path, top) for path in cut.stages if path.startswith(f"{top}/")}
        if inner[top] <= _NEARLY_ALL * total or len(children) < 2:
            return list(sums), within
        within = top


def _group(path: str, within: str | None) -> str:
    """The name that a stage is shown under: outermost, or one level below ``within``."""
    if within is None or not path.startswith(f"{within}/"):
        return path if within is not None and path == within else path.split("/", maxsplit=1)[0]
    return f"{within}/{path[len(within) + 1 :].split('/', maxsplit=1)[0]}"


def _grouped(table: NDArray[np.int64], places: NDArray[np.intp], count: int) -> NDArray[np.int64]:
    found = np.zeros((count, table.shape[1]), np.int64)
    np.add.at(found, places, table)
    return found


def _shown(walls: NDArray[np.int64], most: int) -> list[int]:
    if len(walls) <= most:
        return list(range(len(walls)))
    chosen = set(np.linspace(0, len(walls) - 1, most).round().astype(int).tolist())
    longest = int(np.argmax(walls))
    if longest not in chosen:
        chosen.discard(min(chosen, key=lambda at: abs(at - longest)))
        chosen.add(longest)
    return sorted(chosen)


def _by_part(timeline: Timeline, steady: pl.DataFrame, labels: dict[int, str]) -> Waterfall | None:
    every = device_times(timeline, steady)
    if not every:
        return None
    count = sum(one.steps for one in every)
    owners = process_of_devices(timeline)
    lengths = (steady["end_ns"] - steady["start_ns"]).to_numpy()
    step_labels = _step_labels(steady)
    bars = []
    for at in _shown(lengths, max(MOST_STEPS // len(every), 1)):
        process = steady["process"][at]
        for one in device_times(timeline, steady[at : at + 1]):
            # A device counts with the steps of its own process alone.
            if process is not None and stepping_process(steady, owners.get(one.device)) != process:
                continue
            where = f", {labels.get(one.device, f'device {one.device}')}" if len(every) > 1 else ""
            parts = tuple(_part(name, ns) for name, ns in one.parts if ns)
            bars.append(StepBar(f"{step_labels[at]}{where}", one.wall_ns, parts))
    totals: dict[str, int] = {}
    for one in every:
        for name, ns in one.parts:
            totals[name] = totals.get(name, 0) + ns
    means = tuple(_part(name, round(ns / count)) for name, ns in totals.items() if ns)
    return Waterfall(
        names=tuple(one.name for one in means),
        bars=tuple(bars),
        means=means,
        steps=count,
        by_stage=False,
        on_device=True,
    )


def _part(name: str, ns: int) -> PartOfStep:
    waits = name in {Part.IDLE.value, Part.ASYNC_WAIT.value, Part.UNATTRIBUTED.value}
    return PartOfStep(name, 0 if waits else ns, ns if waits else 0)
