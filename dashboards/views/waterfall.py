"""Where a step goes, as bars that begin where the one before ends and add up to the wall time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import polars as pl

from traceview.accounting import Part
from traceview.render.names import UNATTRIBUTED, stage_name
from traceview.render.palette import INK, PARTS, stage_colours
from traceview.render.palette import UNATTRIBUTED as GREY
from traceview.render.units import duration, percent
from traceview.schema import Column, FrameSchema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import altair as alt
    from numpy.typing import NDArray

    from traceview.accounting import DeviceTime
    from traceview.partition import Partition

MOST_ROWS: Final = 12
"""More stages than this are shown as one."""

MOST_STEPS: Final = 200
"""More steps than this are not told apart in a chart."""

NAME_WIDTH: Final = 28

WORKS: Final = "device works"
WAITS: Final = "device waits or is idle"
HOST: Final = "host"
"""What a trace without device work is cut into: nothing of it is waiting for a device, or work of one."""
MEAN: Final = -1
"""Stands for the mean of all steps where a step can be chosen."""

WATERFALL: Final = FrameSchema(
    "waterfall",
    "One row per bar, in order: each begins where the one before ends.",
    (
        Column("row", pl.String, "", "the stage or part"),
        Column("segment", pl.String, "", "whether the device works in it"),
        Column("start_ns", pl.Float64, "ns", "where the bar begins, from the start of the step"),
        Column("end_ns", pl.Float64, "ns", "where it ends"),
        Column("row_ns", pl.Float64, "ns", "length of the whole row"),
        Column("row_busy_ns", pl.Float64, "ns", "part of it in which the device works"),
        Column("share", pl.Float64, "", "of the row in the step"),
        Column("colour", pl.String, "", "of the row"),
    ),
)
"""The frame of a waterfall. Values are means over steps and devices, hence not whole."""

STEPS: Final = FrameSchema(
    "steps",
    "One row per step and stage.",
    (
        Column("step", pl.String, "", "name of the step"),
        Column("order", pl.Int64, "", "its place"),
        Column("row", pl.String, "", "the stage"),
        Column("place", pl.Int64, "", "its place in the bar"),
        Column("wall_ns", pl.Float64, "ns", "its time in the step, mean of the devices"),
        Column("colour", pl.String, "", "of the stage"),
    ),
)
"""The frame of the chart of all steps."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Steps by outermost stage.

    Attributes:
        names: Outermost stages, longest first, last the time in none.
        steps: Index of each column's step in the frame of steady steps.
        devices: Devices that each column sums up.
        busy: Names by steps: time in which the device worked for the stage, ns.
        waits: The same, idle or waiting, ns.
    """

    names: tuple[str, ...]
    steps: tuple[int, ...]
    devices: NDArray[np.int64]
    busy: NDArray[np.int64]
    waits: NDArray[np.int64]

    @property
    def walls(self) -> NDArray[np.int64]:
        """Wall time of each column, all its devices together, ns."""
        whole: NDArray[np.int64] = (self.busy + self.waits).sum(axis=0)
        return whole


def cut_by_stage(partition: Partition, most: int = MOST_ROWS) -> Cut:
    """Sum a partition up to its outermost stages; the shortest of many become one row."""
    outer = [path.split("/", 1)[0] for path in partition.stages]
    names = list(dict.fromkeys(outer))
    steps, column_of = np.unique(partition.steps, return_inverse=True)
    shape = (len(names) + 1, len(steps))
    busy, waits = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    number = {name: at for at, name in enumerate(names)}
    rows = np.array([*(number[name] for name in outer), len(names)], np.intp)
    where = (rows[:, None], column_of[None, :])
    np.add.at(busy, where, partition.busy)
    np.add.at(waits, where, partition.idle)
    devices = np.bincount(column_of, minlength=len(steps)).astype(np.int64)
    totals = (busy + waits)[:-1].sum(axis=1)
    order = [int(at) for at in np.argsort(-totals, kind="stable") if totals[at] > 0]
    kept, rest = (order, []) if len(order) <= most else (order[: most - 1], order[most - 1 :])
    labels = [stage_name(names[at], NAME_WIDTH) for at in kept]
    picked = [[at] for at in kept]
    if rest:
        labels.append(f"{len(rest)} shorter stages")
        picked.append(rest)
    picked.append([len(names)])
    return Cut(
        names=(*_told_apart(labels), UNATTRIBUTED),
        steps=tuple(int(step) for step in steps),
        devices=devices,
        busy=np.vstack([busy[at].sum(axis=0) for at in picked]),
        waits=np.vstack([waits[at].sum(axis=0) for at in picked]),
    )


def _told_apart(labels: Sequence[str]) -> list[str]:
    """Names that were shortened to the same text get a number."""
    seen: dict[str, int] = {}
    out = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        out.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return out


def stage_waterfall(cut: Cut, column: int = MEAN) -> pl.DataFrame:
    """The waterfall of one step by stage, or of the mean step: :data:`WATERFALL`.

    Where no device works in any step, bars are :data:`HOST`.

    Args:
        cut: The steps.
        column: Which step; :data:`MEAN` for the mean of all.
    """
    if column == MEAN:
        over = int(cut.devices.sum())
        busy, waits = cut.busy.sum(axis=1), cut.waits.sum(axis=1)
    else:
        over = int(cut.devices[column])
        busy, waits = cut.busy[:, column], cut.waits[:, column]
    colours = stage_colours(cut.names, UNATTRIBUTED)
    if not cut.busy.any():
        return _waterfall(
            [(name, colours[name], ((HOST, float(ns) / over),)) for name, ns in zip(cut.names, waits, strict=True)]
        )
    rows = [
        (name, colours[name], ((WORKS, float(works) / over), (WAITS, float(idle) / over)))
        for name, works, idle in zip(cut.names, busy, waits, strict=True)
    ]
    return _waterfall(rows)


def part_waterfall(devices: Iterable[DeviceTime]) -> pl.DataFrame:
    """The waterfall of the mean step by what the device did: :data:`WATERFALL`."""
    own = list(devices)
    over = sum(one.steps for one in own)
    totals: dict[str, int] = {}
    for one in own:
        for name, ns in one.parts:
            totals[name] = totals.get(name, 0) + ns
    wall = sum(totals.values())
    small = [name for name, ns in totals.items() if name.startswith(_IDLE) and 0 < ns < _SMALL * wall]
    if len(small) > 1:
        totals[f"{_IDLE}{len(small)} other causes"] = sum(totals.pop(name) for name in small)
    rows = []
    for name, ns in totals.items():
        if not ns:
            continue
        works = name in {Part.COMPUTE.value, Part.COLLECTIVE.value, Part.COPY.value}
        rows.append((_part_words(name), _part_colour(name), ((WORKS if works else WAITS, ns / over),)))
    return _waterfall(rows)


_IDLE: Final = "idle: "
_SMALL: Final = 0.005
"""Causes of idle time with a smaller part of the step are drawn as one."""

_PART_WORDS: Final = {
    Part.COMPUTE.value: "compute",
    Part.COLLECTIVE.value: "exposed communication",
    Part.COPY.value: "exposed copies",
    Part.ASYNC_WAIT.value: "waits for async. work",
    Part.UNATTRIBUTED.value: UNATTRIBUTED,
}


def _part_words(name: str) -> str:
    return _PART_WORDS.get(name, name)


def _part_colour(name: str) -> str:
    if name.startswith("idle"):
        return PARTS["idle"]
    return PARTS.get(name, GREY)


def _waterfall(rows: Sequence[tuple[str, str, Sequence[tuple[str, float]]]]) -> pl.DataFrame:
    whole = sum(ns for _, _, segments in rows for _, ns in segments)
    at = 0.0
    out: list[dict[str, Any]] = []
    for name, colour, segments in rows:
        row_ns = sum(ns for _, ns in segments)
        works_ns = sum(ns for segment, ns in segments if segment == WORKS)
        for segment, ns in segments:
            if ns or not row_ns:
                out.append(
                    {
                        "row": name,
                        "segment": segment,
                        "start_ns": at,
                        "end_ns": at + ns,
                        "row_ns": row_ns,
                        "row_busy_ns": works_ns,
                        "share": row_ns / whole if whole else 0.0,
                        "colour": colour,
                    }
                )
            at += ns
    return pl.DataFrame(out, schema=WATERFALL.dtypes)


def all_steps(cut: Cut, names: Sequence[str]) -> pl.DataFrame:
    """Every step by stage, the first :data:`MOST_STEPS`: :data:`STEPS`.

    Args:
        cut: The steps.
        names: Names of the columns.
    """
    colours = stage_colours(cut.names, UNATTRIBUTED)
    rows = [
        {
            "step": names[column],
            "order": column,
            "row": name,
            "place": cut.names.index(name),
            "wall_ns": float(ns) / int(cut.devices[column]),
            "colour": colours[name],
        }
        for column in range(min(len(cut.steps), MOST_STEPS))
        for name, ns in zip(cut.names, cut.busy[:, column] + cut.waits[:, column], strict=True)
        if ns
    ]
    return pl.DataFrame(rows, schema=STEPS.dtypes)


def unit_of(longest_ns: float) -> tuple[str, float]:
    """The unit in which a chart is drawn, and its length in ns."""
    for name, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if longest_ns >= 2 * size:
            return name, size
    return "ns", 1.0


def waterfall_chart(frame: pl.DataFrame, ink: str = INK, whole: str = "step") -> alt.LayerChart:
    """Draw a waterfall; each bar has its length and share beside it, so that no colour has to be read.

    Args:
        frame: What to draw.
        ink: Colour of text on the ground.
        whole: What the bars add up to; a trace without step marks has no step.
    """
    import altair as alt

    unit, size = unit_of(float(frame["end_ns"].max() or 0))  # type: ignore[arg-type]
    drawn = frame.with_columns(
        start=pl.col("start_ns") / size,
        end=pl.col("end_ns") / size,
        length=pl.Series([duration(round(ns)) for ns in frame["row_ns"]], dtype=pl.String),
        busy=pl.Series([duration(round(ns)) for ns in frame["row_busy_ns"]], dtype=pl.String),
        part=pl.Series([percent(share) for share in frame["share"]], dtype=pl.String),
    ).with_columns(label=pl.format("{}  {}", "length", "part"))
    order = frame["row"].unique(maintain_order=True).to_list()
    colours = dict(frame.select("row", "colour").iter_rows())
    limit = max(float(drawn["end"].max() or 0) * 1.22, 1e-9)  # type: ignore[arg-type]
    y = alt.Y("row:N", sort=order, title=None, axis=alt.Axis(labelLimit=220, ticks=False, domain=False, labelPadding=8))
    hosted = bool((frame["segment"] == HOST).all())
    tips = [
        alt.Tooltip("row:N", title="what"),
        alt.Tooltip("length:N", title="takes"),
        alt.Tooltip("part:N", title=f"of the {whole}"),
        *([] if hosted else [alt.Tooltip("busy:N", title="of it the device works")]),
    ]
    pale = alt.Opacity(
        "segment:O",
        scale=alt.Scale(domain=[WORKS, WAITS], range=[1.0, 0.45]),
        legend=alt.Legend(title=None, orient="top", direction="horizontal", symbolType="square", symbolFillColor=ink),
    )
    base = alt.Chart(drawn)
    bars = base.mark_bar(height={"band": 0.72}, cornerRadius=2).encode(
        x=alt.X(
            "start:Q", title=f"{unit} from the start of the {whole}", scale=alt.Scale(domain=[0, limit], nice=False)
        ),
        x2="end:Q",
        y=y,
        color=alt.Color("row:N", scale=alt.Scale(domain=list(colours), range=list(colours.values())), legend=None),
        opacity=alt.value(1.0) if hosted else pale,
        tooltip=tips,
    )
    last = drawn.group_by("row", maintain_order=True).last()
    labels = (
        alt.Chart(last)
        .mark_text(align="left", dx=6, baseline="middle", fontSize=12, color=ink)
        .encode(x="end:Q", y=y, text="label:N", tooltip=tips)
    )
    # Layers of one data source each are never split into facets.
    return cast("alt.LayerChart", alt.layer(bars, labels).properties(height=32 * len(order) + 120))


def steps_chart(frame: pl.DataFrame) -> alt.Chart:
    """Every step as one bar, by stage."""
    import altair as alt

    totals = frame.group_by("order").agg(pl.col("wall_ns").sum())["wall_ns"].max() if frame.height else 0
    unit, size = unit_of(float(totals or 0))  # type: ignore[arg-type]
    drawn = frame.with_columns(
        wall=pl.col("wall_ns") / size,
        takes=pl.Series([duration(round(ns)) for ns in frame["wall_ns"]], dtype=pl.String),
    )
    colours = dict(frame.select("row", "colour").iter_rows())
    drawing: alt.Chart = (
        alt.Chart(drawn)
        .mark_bar()
        .encode(
            x=alt.X("order:O", title="step", axis=alt.Axis(labelOverlap=True, labelAngle=0)),
            y=alt.Y("wall:Q", title=unit, stack="zero"),
            color=alt.Color(
                "row:N",
                scale=alt.Scale(domain=list(colours), range=list(colours.values())),
                legend=alt.Legend(title=None, orient="top", columns=4, labelLimit=200),
            ),
            order=alt.Order("place:Q"),
            tooltip=[
                alt.Tooltip("step:N", title="step"),
                alt.Tooltip("row:N", title="stage"),
                alt.Tooltip("takes:N", title="takes"),
            ],
        )
        .properties(height=340)
    )
    return drawing
