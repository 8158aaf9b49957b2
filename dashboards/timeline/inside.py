"""What lies in a selected area, what a search finds, and what is recorded of one event: exactly, from the timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals, schema
from traceview.dashboards.timeline.payload import shown_name
from traceview.schema import Column, FrameSchema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceview.dashboards.timeline.lanes import Drawing
    from traceview.dashboards.timeline.payload import Area
    from traceview.timeline import Timeline

MOST_FOUND: Final = 1_000
"""Matches of a search that are listed; all are counted."""

PARTS: Final = FrameSchema(
    "parts",
    "What an area holds, one row per value of some property, most time first.",
    (
        Column("value", pl.String, "", "kind, stage or name; null: no stage", nullable=True),
        Column("events", pl.UInt32, "", "events that lie in the area at least in part"),
        Column("union_ns", pl.Int64, "ns", "time within the area in which at least one of them ran, in whichever lane"),
        Column("sum_ns", pl.Int64, "ns", "sum of their durations within the area; nested or parallel ones count twice"),
        Column("longest_ns", pl.Int64, "ns", "the longest of them, as recorded"),
    ),
)

BUSY: Final = FrameSchema(
    "busy",
    "How busy each device was in an area.",
    (
        Column("device", pl.UInt32, "", "key into `devices`"),
        Column("busy_ns", pl.Int64, "ns", "union of its work within the area, over the selected lanes"),
        Column("share", pl.Float64, "", "of the length of the area"),
    ),
)

FOUND: Final = FrameSchema(
    "found",
    "Events with a text in their name, by start.",
    (
        Column("id", pl.UInt32, "", "event id"),
        Column("name", pl.String, "", "its name"),
        Column("kind", pl.String, "", "its kind"),
        Column("start_ns", pl.Int64, "ns", "its start"),
        Column("dur_ns", pl.Int64, "ns", "its duration"),
        Column("lane", pl.String, "", "where it is drawn"),
    ),
)


@dataclass(frozen=True, slots=True)
class Inside:
    """What an area holds.

    Attributes:
        length_ns: Its length.
        events: Events in it, at least in part.
        busy: :data:`BUSY`.
        kinds: :data:`PARTS` by kind.
        stages: :data:`PARTS` by stage.
        names: :data:`PARTS` by name.
    """

    length_ns: int
    events: int
    busy: pl.DataFrame
    kinds: pl.DataFrame
    stages: pl.DataFrame
    names: pl.DataFrame


def inside(timeline: Timeline, drawing: Drawing, area: Area) -> Inside:
    """What lies in an area. Events that reach over its edges count with what is within.

    Args:
        timeline: The timeline that was drawn, with its stages.
        drawing: What was drawn of it.
        area: The area.
    """
    chosen = [index for index, lane in enumerate(drawing.lanes) if lane.key in area.lanes]
    drawn = drawing.events.select("id", "lane").filter(pl.col("lane").is_in(chosen))
    end = pl.col("start_ns") + pl.col("dur_ns")
    overlaps = (end > area.start_ns) | ((pl.col("dur_ns") == 0) & (pl.col("start_ns") >= area.start_ns))
    rows = (
        timeline.events.select("id", "kind", "name", "stage", "device", "start_ns", "dur_ns")
        .filter((pl.col("start_ns") < area.end_ns) & overlaps)
        .join(drawn, on="id", how="inner", maintain_order="left")
        .with_columns(
            low=pl.max_horizontal("start_ns", pl.lit(area.start_ns)), high=pl.min_horizontal(end, pl.lit(area.end_ns))
        )
    )
    length = area.end_ns - area.start_ns
    return Inside(
        length_ns=length,
        events=rows.height,
        busy=_busy(rows, length),
        kinds=_parts(rows, "kind"),
        stages=_parts(rows, "stage"),
        names=_parts(rows, "name"),
    )


def _busy(rows: pl.DataFrame, length: int) -> pl.DataFrame:
    work = rows.filter(pl.col("device").is_not_null() & pl.col("kind").is_in(schema.BUSY_KINDS))
    devices = work["device"].unique().sort()
    busy = _unions(work, work.select(pl.col("device").rank("dense"))["device"].to_numpy().astype(np.int64) - 1)
    return pl.DataFrame(
        {"device": devices, "busy_ns": busy, "share": [one / length for one in busy]}, schema=BUSY.dtypes
    )


def _parts(rows: pl.DataFrame, by: str) -> pl.DataFrame:
    if not rows.height:
        return PARTS.empty()
    values = rows.select(pl.col(by).cast(pl.String))[by].unique(maintain_order=True)
    numbers = pl.DataFrame({"value": values, "number": range(len(values))}, schema_overrides={"number": pl.Int64})
    placed = rows.with_columns(value=pl.col(by).cast(pl.String)).join(
        numbers, on="value", how="left", nulls_equal=True, maintain_order="left"
    )
    unions = numbers.with_columns(union_ns=pl.Series(_unions(placed, placed["number"].to_numpy()), dtype=pl.Int64))
    summed = placed.group_by("value").agg(
        events=pl.len().cast(pl.UInt32),
        sum_ns=(pl.col("high") - pl.col("low")).sum(),
        longest_ns=pl.col("dur_ns").max(),
    )
    return (
        summed.join(unions, on="value", nulls_equal=True)
        .select(list(PARTS.dtypes))
        .sort("union_ns", "events", "value", descending=[True, True, False], nulls_last=True)
    )


def _unions(rows: pl.DataFrame, groups: NDArray[np.int64]) -> list[int]:
    totals: list[int] = intervals.grouped_total(groups, rows["low"].to_numpy(), rows["high"].to_numpy()).tolist()
    return totals


def search(timeline: Timeline, drawing: Drawing, text: str, most: int = MOST_FOUND) -> tuple[int, pl.DataFrame]:
    """Events whose name has a text in it, whatever the case.

    Returns:
        How many there are, and the first ones as :data:`FOUND`.
    """
    wanted = text.strip().lower()
    if not wanted:
        return 0, FOUND.empty()
    # As in the browser: the text is looked for in the names as they are shown.
    codes = [code for code, name in enumerate(drawing.names) if wanted in shown_name(name).lower()]
    hits = drawing.events.select("id", "name", "lane").filter(pl.col("name").is_in(codes))
    first = hits.select("id", "lane").sort("id").head(most)
    labels = pl.DataFrame(
        {"lane": range(len(drawing.lanes)), "label": [lane.label for lane in drawing.lanes]},
        schema={"lane": pl.UInt32, "label": pl.String},
    )
    listed = (
        timeline.events[first["id"]]
        .select("id", pl.col("name").cast(pl.String), pl.col("kind").cast(pl.String), "start_ns", "dur_ns")
        .with_columns(lane=first.join(labels, on="lane", how="left", maintain_order="left")["label"])
    )
    return hits.height, listed


def facts(timeline: Timeline, event: int) -> list[tuple[str, str]]:
    """What the timeline says of an event, as name and value; times in whole nanoseconds.

    Args:
        timeline: The timeline.
        event: Id of the event.
    """
    if not 0 <= event < timeline.events.height:
        return []
    row = timeline.events.row(event, named=True)
    found: list[tuple[str, str]] = [
        ("name", row["name"]),
        ("kind", row["kind"]),
        ("start", f"{row['start_ns']:,} ns"),
        ("duration", f"{row['dur_ns']:,} ns"),
    ]
    counted = (("bytes", " B"), ("flops", " FLOP"))
    found += [(name, f"{row[name]:,}{unit}") for name, unit in counted if row[name] is not None]
    found += [(name, str(row[name])) for name in ("stage", "step", "stream", "correlation") if row[name] is not None]
    for column, words in (("launch_id", "launched by"), ("op_id", "asked for by"), ("parent_id", "called by")):
        if row[column] is not None:
            other = timeline.events.row(row[column], named=True)
            found.append((words, f"{other['name']}  (event {row[column]})"))
            if column == "launch_id":
                late = row["start_ns"] - other["start_ns"] - other["dur_ns"]
                found.append(("after the launch returned", f"{late:,} ns"))
    if row["inputs"] is not None:
        inputs = timeline.inputs.filter(pl.col("inputs") == row["inputs"])
        found += [
            (f"inputs, {column}", value)
            for column in ("dims", "dtypes", "strides", "concrete")
            for value in inputs[column].to_list()
            if value is not None
        ]
    return found


def arguments(timeline: Timeline, event: int) -> list[tuple[str, str]]:
    """The rare arguments recorded with an event, as name and value."""
    found = []
    for name, frame in timeline.details.items():
        at = frame["id"].search_sorted(event)
        if at < frame.height and frame["id"][at] == event:
            found.append((name, str(frame["value"][at])))
    return sorted(found)


def launched(timeline: Timeline, event: int, most: int = 200) -> Sequence[int]:
    """Ids of the device work that a host call launched, the first ones."""
    return timeline.events.filter(pl.col("launch_id") == event)["id"].head(most).to_list()
