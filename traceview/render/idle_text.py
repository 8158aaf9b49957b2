"""``traceview gaps`` as text and Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from traceview.gap_culprits import LEAST_NAMED, MOST_OF_IT
from traceview.knowledge.idle_causes import Cause
from traceview.render.conditions import conditions, write_conditions, write_remarks
from traceview.render.grids import Grid, print_markdown, write_grid
from traceview.render.many_devices import most_idle
from traceview.render.names import host_name
from traceview.render.notes import notes_grid
from traceview.render.page import Column, Page
from traceview.render.units import duration, durations, percent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from traceview.gap_report import GapReport

MOST_GAPS: Final = 10
_MOST_WAITS: Final = 8
_MOST_REGIONS: Final = 5
_LEAST_SHOWN: Final = 0.05
_CAUSE_WIDTH: Final = 26
_NARROW_WIDTH: Final = 22
_GAP_WIDTH: Final = 52

_FED_WORDS: Final = (
    "bound: launch-bound. graphs: part of device time that graphs launched. latency: from the call to the start, on an "
    "idle device. pace: time between two launches. small: kernels shorter than that. queue: mean work launched and not "
    "started. empty: part of the span without any."
)

WORDS: Final = {
    Cause.LAUNCH.value: "launching",
    Cause.HOST_WORK.value: "host work",
    Cause.SLOW_CALL.value: "slow calls",
    Cause.SYNC.value: "waits of the host",
    Cause.COPY_TO_HOST.value: "copies to the host",
    Cause.COPY_TO_DEVICE.value: "copies to the device",
    Cause.DATA_LOADING.value: "data loading",
    Cause.ALLOCATOR.value: "the allocator",
    Cause.COMPILE.value: "compilation",
    Cause.GARBAGE_COLLECTION.value: "garbage collection",
    Cause.PROFILER.value: "the profiler",
    Cause.COLLECTIVE.value: "other ranks",
    Cause.QUEUED.value: "work already queued",
    Cause.DEVICE_WAIT.value: "the device's own waits",
    Cause.UNRELIABLE.value: "unrecorded graph replays",
    Cause.UNKNOWN.value: "unknown",
}
"""Causes as they read in a sentence."""


def gap_sentence(result: GapReport) -> str:
    """How long the devices stood idle and for what, largest first."""
    if result.causes is None:
        return "Neither device work nor ops are recorded: idle time cannot be told."
    idle, span = result.idle_ns, result.span_ns
    share = percent(idle / span if span else None)
    # Times of several devices are means, so that they can be held against the length of the recording.
    lanes = max(result.lanes, 1)
    each = " each" if lanes > 1 else ""
    who = "Device idle" if result.devices is not None else "No device recorded; between ops the host spent"
    if lanes > 1:
        who = f"{lanes:,} devices idle, on average," if result.devices is not None else f"{who}, on average of {lanes},"
    text = f"{who} {duration(round(idle / lanes))} of {duration(round(span / lanes))} ({share})"
    if lanes > 1 and result.devices is not None:
        text += " from the first to the last work of each"
    totals: dict[str, int] = {}
    for cause, ns in result.causes.select("cause", "idle_ns").iter_rows():
        totals[cause] = totals.get(cause, 0) + ns
    order = sorted(totals.items(), key=lambda item: -item[1])
    shown = [f"{WORDS[cause]} {percent(ns / idle)}" for cause, ns in order if idle and ns / idle >= _LEAST_SHOWN]
    if shown:
        text += f": {', '.join(shown)}"
    text += "."
    if result.devices is not None:
        bound = result.devices["launch_bound"]
        if bound.any():
            text += " Launch-bound: the host launches work slower than the device runs it."
    if idle and result.recoverable_ns:
        text += f" At most {duration(round(result.recoverable_ns / lanes))}{each} can be won back on the host."
    if result.doubt:
        text += " Idle time is not reliable here."
    return text


def write_gaps(result: GapReport, page: Page, *, places: Sequence[str | None], limit: int) -> None:
    """As text."""
    page.verdict(gap_sentence(result))
    write_conditions(page, result.trace, result.import_report)
    for grid in _grids(result, places, limit):
        write_grid(page, grid)
    write_remarks(page, result.import_report)


def print_gaps(result: GapReport, out: TextIO, *, places: Sequence[str | None], limit: int) -> None:
    """As Markdown."""
    facts = conditions(result.trace, result.import_report)
    print_markdown(out, "traceview gaps", gap_sentence(result), facts, _grids(result, places, limit))


def _grids(result: GapReport, places: Sequence[str | None], limit: int) -> list[Grid]:
    grids = [
        causes_grid(result),
        _gaps(result, places, limit),
        _waits(result),
        _feeding(result),
        _regions(result),
        notes_grid(result.notes),
    ]
    return [grid for grid in grids if grid is not None]


class _Labels:
    """What each device is called; a trace can have thousands, so the names are made once for a table."""

    def __init__(self, result: GapReport) -> None:
        self._names = {one.device: one.label for one in result.trace.devices}

    def of(self, device: int | None) -> str:
        """The name of a device; ``None`` is the host."""
        return "host" if device is None else self._names.get(device, f"device {device}")


def causes_grid(result: GapReport) -> Grid | None:
    """Idle time by cause; ``None`` if nothing was idle."""
    if result.causes is None or not result.causes.height:
        return None
    totals = list(result.causes.group_by("device", maintain_order=True).agg(pl.col("idle_ns").sum()).iter_rows())
    chosen, others = most_idle(totals, lambda one: one[1])
    keys = {device for device, _ in chosen}
    rows = [row for row in result.causes.iter_rows(named=True) if row["device"] in keys]
    labels = _Labels(result)
    unit, texts = durations(ns for row in rows for ns in (row["idle_ns"], row["recoverable_ns"]))
    several = len({row["device"] for row in rows}) > 1
    columns = (
        *((Column("device"),) if several else ()),
        Column("cause"),
        Column(f"idle {unit}", number=True),
        Column("of idle", number=True),
        Column("stretches", number=True),
        Column(f"to win {unit}", number=True),
        *(() if several else (Column("known by"),)),
        Column("most in"),
    )
    cells = iter(texts)
    table = [
        [
            *((labels.of(row["device"]),) if several else ()),
            row["cause"],
            next(cells),
            percent(row["share"]),
            f"{row['stretches']:,}",
            next(cells),
            *(() if several else (row["confidence"],)),
            _held_by(row, _NARROW_WIDTH if several else _CAUSE_WIDTH),
        ]
        for row in rows
    ]
    return Grid(
        "Idle time by cause",
        columns,
        table,
        (_of_which_time(result), _TO_WIN, *others),
    )


_TO_WIN: Final = "to win: the most that changes on the host can win back; ceilings of several causes do not add up."


def _of_which_time(result: GapReport) -> str:
    """What is looked at: steps can begin before the first and end after the last work of a device."""
    if result.devices is None:
        return "Time between the ops of the host, from the first op or step mark to the last, steps or not."
    each = "of each device" if result.lanes > 1 else "of the device"
    return (
        f"From the first to the last work {each}, between steps, too; what a step holds before and after is not in it."
    )


def _held_by(row: dict[str, Any], width: int) -> str:
    """What held the host for most of a cause; with its part where that is less than half."""
    share = (row["culprit_ns"] or 0) / row["idle_ns"] if row["idle_ns"] else 0.0
    if not row["culprit"] or share < LEAST_NAMED:
        return host_name(row["reason"] or "", width)
    part = "" if share >= MOST_OF_IT else f"{percent(share)} in "
    return part + host_name(row["culprit"], width - len(part))


def _gaps(result: GapReport, places: Sequence[str | None], limit: int) -> Grid | None:
    if result.gaps is None or not result.gaps.height:
        return None
    rows = list(result.gaps.head(limit).iter_rows(named=True))
    labels = _Labels(result)
    unit, texts = durations(row["dur_ns"] for row in rows)
    several = result.lanes > 1 and result.devices is not None
    width = _GAP_WIDTH - (max(len(labels.of(row["device"])) for row in rows) + 2 if several else 0)
    columns = (
        *((Column("device"),) if several else ()),
        Column("at ms", number=True),
        Column(f"idle {unit}", number=True),
        Column("cause"),
        Column("of it", number=True),
        Column("step", number=True),
        Column("held by"),
    )
    table = []
    for row, text, place in zip(rows, texts, places, strict=False):
        held = host_name(row["culprit"] or row["reason"] or "nothing recorded on the thread", width)
        if place and row["culprit"] and place not in row["culprit"]:
            half = min(_CAUSE_WIDTH, width // 2)
            held = f"{host_name(held, half)} in {host_name(place, width - half)}"
        table.append(
            [
                *((labels.of(row["device"]),) if several else ()),
                f"{row['start_ns'] / 1e6:,.3f}",
                text,
                row["cause"],
                percent(row["cause_ns"] / row["dur_ns"] if row["dur_ns"] else None),
                "-" if row["step"] is None else str(row["step"]),
                held,
            ]
        )
    heading = "Idle stretches" if len(rows) == result.gaps.height else f"Top {len(rows)} of {result.gaps.height:,}"
    return Grid(f"{heading}{'' if heading == 'Idle stretches' else ' idle stretches'}", columns, table)


_READS: Final = "A read waits where the tensor is on a device. Counters of an optimizer stay on the CPU, and do not."


def _waits(result: GapReport) -> Grid | None:
    if not result.waits.height:
        return None
    rows = list(result.waits.head(_MOST_WAITS).iter_rows(named=True))
    unit, texts = durations(ns for row in rows for ns in (row["host_ns"], row["idle_ns"]))
    cells = iter(texts)
    on_device = result.devices is not None
    columns = (
        Column("wait"),
        Column("count", number=True),
        Column("per step", number=True),
        Column(f"host {unit}", number=True),
        *((Column(f"device idle {unit}", number=True),) if on_device else ()),
    )
    table = []
    for row in rows:
        host, idle = next(cells), next(cells)
        per_step = "-" if row["per_step"] is None else f"{row['per_step']:,.1f}".removesuffix(".0")
        name = host_name(f"{row['name']} in {row['op']}" if row["op"] else row["name"], _GAP_WIDTH)
        table.append([name, f"{row['count']:,}", per_step, host, *((idle,) if on_device else ())])
    if on_device:
        several = result.lanes > 1
        remark = (f"host: all processes together. device idle: {result.lanes:,} devices together.",) if several else ()
        return Grid("Waits of the host", columns, table, remark)
    return Grid("Values read by Python", columns, table, (_READS,))


def _feeding(result: GapReport) -> Grid | None:
    if result.devices is None:
        return None
    fed = [row for row in result.devices.iter_rows(named=True) if row["launched"]]
    rows, others = most_idle(fed, lambda row: row["idle_ns"])
    labels = _Labels(result)
    if not rows:
        return None
    columns = (
        Column("device"),
        Column("bound"),
        Column("launches", number=True),
        Column("graphs", number=True),
        Column("latency p50", number=True),
        Column("p99", number=True),
        Column("pace", number=True),
        Column("small", number=True),
        Column("queue", number=True),
        Column("empty", number=True),
    )
    return Grid(
        "How the devices are fed",
        columns,
        [[labels.of(row["device"]), *_fed(row)] for row in rows],
        (_FED_WORDS, *others),
    )


def _fed(row: dict[str, Any]) -> list[str]:
    def time(key: str) -> str:
        return "-" if row[key] is None else duration(row[key])

    return [
        {True: "yes", False: "no", None: "?"}[row["launch_bound"]],
        f"{row['launches']:,}",
        percent(row["graph_share"]),
        time("latency_p50_ns"),
        time("latency_p99_ns"),
        time("pace_ns"),
        percent(row["too_small_share"]),
        "-" if row["queue_mean"] is None else f"{row['queue_mean']:,.1f}",
        percent(row["queue_empty_share"]),
    ]


def _regions(result: GapReport) -> Grid | None:
    if result.regions is None or not result.regions.height:
        return None
    rows = list(result.regions.head(_MOST_REGIONS).iter_rows(named=True))
    labels = _Labels(result)
    several = result.lanes > 1
    columns = (
        *((Column("device"),) if several else ()),
        Column("at ms", number=True),
        Column("length", number=True),
        Column("idle", number=True),
        Column("work", number=True),
    )
    table = [
        [
            *((labels.of(row["device"]),) if several else ()),
            f"{row['start_ns'] / 1e6:,.3f}",
            duration(row["end_ns"] - row["start_ns"]),
            f"{duration(row['idle_ns'])} ({percent(row['idle_ns'] / (row['end_ns'] - row['start_ns']))})",
            f"{row['work']:,}",
        ]
        for row in rows
    ]
    return Grid("Launch-bound stretches", columns, table)
