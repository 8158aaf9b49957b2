"""What the timeline page shows beside the timeline itself: flags, and tables of an area or a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.dashboards.timeline.payload import Flag, Selection
from traceview.dashboards.views import waterfall
from traceview.exporting.marks import events_of
from traceview.render.names import UNATTRIBUTED, plain
from traceview.render.palette import STAGES, stage_colours
from traceview.render.units import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.dashboards.timeline.inside import Inside
    from traceview.dispatch import DispatchTable
    from traceview.findings import Finding
    from traceview.gap_report import GapReport
    from traceview.partition import Partition
    from traceview.timeline import Timeline

MOST_GAPS: Final = 40
"""Gaps that are marked, by the time that can be won back."""

MOST_CALLS: Final = 40
"""Attention calls that are marked, longest first."""

MOST_EVENTS: Final = 12
"""Events of a finding that are marked, longest first."""

_CALL_BY_CALL: Final = {"TV101", "TV102", "TV108"}
"""Findings whose calls are marked one by one, each from its first kernel to its last."""

MOST_ROWS: Final = 200
"""Rows of a table."""


def flags(
    timeline: Timeline, gaps: GapReport | None, table: DispatchTable, findings: Sequence[Finding] = ()
) -> list[Flag]:
    """What to mark above the lanes: gaps that the host could avoid, attention that fell back, and other findings.

    Args:
        timeline: The timeline.
        gaps: Its gaps.
        table: What ran.
        findings: What the rules found; those that speak of events are marked where these are.
    """
    attention = _attention(timeline, table)
    told = _CALL_BY_CALL if attention else set()
    others = [flag for one in findings if one.code not in told for flag in _events(timeline, one)]
    return [*_gaps(gaps), *attention, *others]


def waterfall_colours(partition: Partition | None) -> dict[str, str]:
    """The colours that the outermost stages have in the waterfall of the overview."""
    if partition is None:
        return {}
    names = waterfall.cut_by_stage(partition).names
    colours = stage_colours(names, UNATTRIBUTED)
    return {name: colours[name] for name in names[: len(STAGES)] if name != UNATTRIBUTED}


def _gaps(report: GapReport | None) -> list[Flag]:
    if report is None or report.gaps is None:
        return []
    rows = report.gaps.filter(pl.col("recoverable_ns") > 0).head(MOST_GAPS)
    return [
        Flag(
            "gap",
            f"gap of {duration(row['dur_ns'])}: {row['cause']}" + (f", {row['culprit']}" if row["culprit"] else ""),
            row["start_ns"],
            row["start_ns"] + row["dur_ns"],
            row["device"],
        )
        for row in rows.iter_rows(named=True)
    ]


def _attention(timeline: Timeline, table: DispatchTable) -> list[Flag]:
    slow = {(row.implementation, row.direction) for row in table.attention if row.verdict == "slow"}
    if table.calls is None or not slow:
        return []
    calls = table.calls.calls.select("call", "implementation", "direction")
    kept = calls.filter(
        pl.struct("implementation", "direction").map_elements(
            lambda one: (one["implementation"], one["direction"]) in slow, return_dtype=pl.Boolean
        )
    )
    spans = (
        table.calls.members.join(kept, on="call")
        .join(timeline.events.select("id", "device", "start_ns", "dur_ns"), on="id")
        .group_by("call", "device", "implementation", "direction")
        .agg(
            start=pl.col("start_ns").min(),
            end=(pl.col("start_ns") + pl.col("dur_ns")).max(),
        )
        .sort(pl.col("end") - pl.col("start"), "call", descending=[True, False])
        .head(MOST_CALLS)
        .sort("start")
    )
    return [
        Flag(
            "finding",
            f"attention ran {row['implementation']} ({row['direction']}): "
            f"{duration(row['end'] - row['start'])} from its first kernel to its last",
            row["start"],
            row["end"],
            row["device"],
        )
        for row in spans.iter_rows(named=True)
    ]


def _events(timeline: Timeline, finding: Finding) -> list[Flag]:
    longest = events_of(finding, timeline).sort("dur_ns", "id", descending=[True, False]).head(MOST_EVENTS)
    return [
        Flag("finding", f"{finding.code}: {finding.title}", start, start + length, device)
        for start, length, device in longest.sort("id").select("start_ns", "dur_ns", "device").iter_rows()
    ]


def around(timeline: Timeline, event: int) -> Selection | None:
    """An event selected, with ten times its length on both sides; ``None`` if the trace has no such event."""
    if not 0 <= event < timeline.events.height:
        return None
    start, length = timeline.events.select("start_ns", "dur_ns").row(event)
    margin = max(10 * length, 1_000)
    return Selection(max(0, start - margin), start + length + margin, event=event)


def facts_table(pairs: Sequence[tuple[str, str]]) -> pl.DataFrame:
    """Names and values, each as plain text."""
    return pl.DataFrame(
        {"": [name for name, _ in pairs], "value": [plain(value) for _, value in pairs]},
        schema={"": pl.String, "value": pl.String},
    )


def parts_table(parts: pl.DataFrame, what: str, length_ns: int) -> pl.DataFrame:
    """Parts of an area as people read them.

    Args:
        parts: :data:`traceview.dashboards.timeline.inside.PARTS`.
        what: What they are parts by: the head of the first column.
        length_ns: Length of the area.
    """
    shown = parts.head(MOST_ROWS)
    return pl.DataFrame(
        {
            what: [plain(value) if value is not None else "(no stage)" for value in shown["value"]],
            "events": shown["events"],
            "at least one ran, us": shown["union_ns"] / 1000,
            "of the area, %": shown["union_ns"] / max(length_ns, 1) * 100,
            "sum, us": shown["sum_ns"] / 1000,
            "longest, us": shown["longest_ns"] / 1000,
        }
    )


def area_sentence(found: Inside, devices: dict[int, str]) -> str:
    """An area in one sentence.

    Args:
        found: What it holds.
        devices: What each device is called.
    """
    events = f"{found.events:,} event{'' if found.events == 1 else 's'} in {duration(found.length_ns)}"
    busy = [
        f"{devices.get(row['device'], 'device')} busy {duration(row['busy_ns'])} ({row['share'] * 100:.1f} %)"
        for row in found.busy.iter_rows(named=True)
    ]
    return "; ".join([events, *busy]) + "."


def found_table(found: pl.DataFrame) -> pl.DataFrame:
    """Matches of a search as people read them; ``found`` is :data:`traceview.dashboards.timeline.inside.FOUND`."""
    return pl.DataFrame(
        {
            "name": [plain(name) for name in found["name"]],
            "kind": found["kind"].str.replace_all("_", " "),
            "start, us": found["start_ns"] / 1000,
            "duration, us": found["dur_ns"] / 1000,
            "lane": [plain(lane) for lane in found["lane"]],
        }
    )
