"""What a step would take if stages changed: choices as text for the address, the answer in words, bars, a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

import polars as pl

from traceview.dashboards.views.table import Show, Table, in_ms
from traceview.render.names import UNATTRIBUTED, stage_name
from traceview.render.units import duration, percent
from traceview.waterfall import PartOfStep, StepBar, Waterfall
from traceview.whatif import BoundKind, Change, Effect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traceview.stage_table import StageTable
    from traceview.whatif import Bound, WhatIf

MOST_STAGES: Final = 12
"""Stages that have a control of their own, longest first."""

LEAST_FACTOR: Final = 0.5
MOST_FACTOR: Final = 20.0

AS_RECORDED: Final = "as recorded"
EFFECTS: Final = (AS_RECORDED, *(effect.value for effect in Effect))
"""What can be chosen for a stage."""

_KEYS: Final = {
    Effect.FASTER: "faster",
    Effect.REMOVED: "removed",
    Effect.OVERLAPPED: "overlapped",
    Effect.FLOOR: "floor",
}


def stages_to_change(table: StageTable) -> list[tuple[str, float]]:
    """Stages with their share of the time, longest first within their parent, parents before their parts."""
    if table.stages is None:
        return []
    longest = table.stages.sort("wall_ns", descending=True)["stage"].head(MOST_STAGES).to_list()
    shown = table.stages.filter(pl.col("stage").is_in(longest))
    return list(shown.select("stage", "share").iter_rows())


def encoded(changes: Mapping[str, Change]) -> str:
    """Changes as they stand in the address: ``denoise:faster:3,vae_decode:removed``; names are escaped."""
    parts = []
    for stage, change in changes.items():
        factor = f":{change.factor:g}" if change.effect is Effect.FASTER else ""
        parts.append(f"{quote(stage, safe='')}:{_KEYS[change.effect]}{factor}")
    return ",".join(parts)


def decoded(text: str, stages: Mapping[str, float]) -> dict[str, Change]:
    """The changes of an address; what is no change of a stage that there is gets ignored: anybody can write a link."""
    effects = {key: effect for effect, key in _KEYS.items()}
    found: dict[str, Change] = {}
    for part in text.split(",")[: 10 * MOST_STAGES]:
        name, _, rest = part.partition(":")
        key, _, number = rest.partition(":")
        stage, effect = unquote(name), effects.get(key)
        if stage not in stages or effect is None:
            continue
        if effect is not Effect.FASTER:
            found[stage] = Change(effect)
            continue
        try:
            factor = float(number)
        except ValueError:
            continue
        if LEAST_FACTOR <= factor <= MOST_FACTOR:
            found[stage] = Change(effect, factor)
    return found


def answer(found: WhatIf) -> str:
    """The range in one sentence, with what bounds it."""
    before = duration(found.before_ns)
    if found.least_ns == found.most_ns == found.before_ns:
        return f"A step takes {before}. Choose what happens to a stage."
    least, most = duration(found.least_ns), duration(found.most_ns)
    if found.least_ns == found.most_ns:
        return f"A step would take {least} instead of {before}: {_times(found.most_speedup)}."
    return (
        f"A step would take {least} to {most} instead of {before}: {_times(found.least_speedup)} to "
        f"{_times(found.most_speedup)}."
    )


def _times(factor: float | None) -> str:
    if factor is None:
        return "without bound"
    return f"{factor:.2f}x as fast" if factor >= 1 else f"{1 / factor:.2f}x as long"


def bounds(found: WhatIf) -> list[tuple[str, str]]:
    """What keeps the step from being shorter, at either end, and the ceiling of these changes."""
    if found.least_bound == found.most_bound:
        rows = [("bounded by", _bound(found.least_bound))]
    else:
        rows = [("best case", _bound(found.least_bound)), ("worst case", _bound(found.most_bound))]
    if found.ceiling_ns != found.before_ns:
        ceiling = "without bound" if found.ceiling is None else _times(found.ceiling)
        rows.append(("ceiling", f"{ceiling}, if the changed stages took no time at all"))
    if found.host_ns is not None:
        rows.append(("host", f"{duration(found.host_ns)} of its own work per step"))
    return rows


def _bound(bound: Bound) -> str:
    longest = "" if bound.stage is None else f", most of it {stage_name(bound.stage)}"
    return {
        BoundKind.UNCHANGED: f"what is not changed takes {duration(bound.ns)}{longest}",
        BoundKind.CHANGED: f"the changed stages still take {duration(bound.ns)}{longest}",
        BoundKind.OVERLAPPED: f"the overlapped stage alone takes {duration(bound.ns)}{longest}",
        BoundKind.HOST: f"the host alone needs {duration(bound.ns)}",
    }[bound.kind]


def bars(found: WhatIf) -> Waterfall:
    """The step as recorded and at both ends, by stage."""
    names = [stage for stage, (before, _, most) in found.stages.items() if stage is not None and (before or most)]
    names.sort(key=lambda stage: -found.stages[stage][0])
    shown: list[str | None] = [*names[:8], *([None] if None in found.stages else [])]
    rest = names[8:]
    made = []
    for at, label in enumerate(("as recorded", "best case", "worst case")):
        parts = [
            PartOfStep(UNATTRIBUTED if stage is None else stage, found.stages[stage][at], 0)
            for stage in shown
            if found.stages[stage][at]
        ]
        others = sum(found.stages[stage][at] for stage in rest)
        if others:
            parts.append(PartOfStep("other stages", others, 0))
        made.append(StepBar(label, sum(part.ns for part in parts), tuple(parts)))
    labels = tuple(dict.fromkeys(part.name for bar in made for part in bar.parts))
    return Waterfall(
        names=labels,
        bars=tuple(made),
        means=(),
        steps=1,
        by_stage=True,
        on_device=False,
    )


def stages_table(found: WhatIf) -> Table:
    """What each stage takes of a step before, and at both ends; parts are not in what they are parts of."""
    rows = sorted(found.stages.items(), key=lambda item: (item[0] is None, -item[1][0]))
    names = [UNATTRIBUTED if stage is None else stage_name(stage) for stage, _ in rows]
    whole = found.before_ns or 1
    frame = pl.DataFrame(
        {
            "stage, without its parts": names,
            "as recorded ms": in_ms(times[0] for _, times in rows),
            "share": [times[0] / whole for _, times in rows],
            "best case ms": in_ms(times[1] for _, times in rows),
            "worst case ms": in_ms(times[2] for _, times in rows),
        }
    )
    shows = {name: Show.MS for name in frame.columns if name.endswith(" ms")}
    shows |= {"share": Show.SHARE, "stage, without its parts": Show.MEDIUM}
    return Table(frame, shows, ("Of one step, mean over the steady steps.",))


def share_words(share: float) -> str:
    """The share of a stage beside its control."""
    return f"{percent(share)} of a step"
