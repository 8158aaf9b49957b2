"""From a timeline to what is drawn: groups, lanes, rows, and one row of numbers per event.

A lane is a stream of a device or a thread of a host, inside the group of its process. Ranges on a stream (annotations,
module runs, waits for other work) have a lane of their own beside its work, because they span it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from traceview import schema
from traceview.dashboards.timeline import sublanes
from traceview.dashboards.timeline.counters import NONE_RECORDED, Counters, counters
from traceview.schema import Column, FrameSchema

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceview.timeline import Timeline

NONE: Final = 0xFFFFFFFF
"""Stands for a missing event id in :data:`DRAWN`."""

NO_STAGE: Final = 255
"""Stands for no stage in :data:`DRAWN`."""

MOST_STAGES: Final = 254
"""Stages beyond these share the last code; no screen tells more colours apart."""

OPEN_ROWS: Final = 12
"""A lane with more rows than this starts folded, except the main thread of its process."""

DRAWN: Final = FrameSchema(
    "drawn",
    "One row per drawn event, sorted by lane, row, start; the columns that the canvas takes.",
    (
        Column("start", pl.Float64, "ns", "start from the trace's origin; whole numbers are exact below 2^53"),
        Column("dur", pl.Float64, "ns", "duration"),
        Column("lane", pl.UInt32, "", "index into `Drawing.lanes`"),
        Column("row", pl.UInt16, "", "row inside the lane, 0 at the top"),
        Column("name", pl.UInt32, "", "index into `Drawing.names`"),
        Column("stage", pl.UInt8, "", "index into `Drawing.stages`; 255: none"),
        Column("kind", pl.UInt8, "", "index into `schema.KINDS`"),
        Column("id", pl.UInt32, "", "event id"),
        Column("launch", pl.UInt32, "", "id of the host call that launched it; 4294967295: none"),
        Column("op", pl.UInt32, "", "id of the op that asked for it; 4294967295: none"),
    ),
)

ROWS: Final = FrameSchema(
    "rows",
    "One row per row of the picture, in the order of `DRAWN`: where its events lie in that frame.",
    (
        Column("lane", pl.UInt32, "", "index into `Drawing.lanes`"),
        Column("row", pl.UInt16, "", "row inside the lane"),
        Column("first", pl.UInt32, "", "its first event"),
        Column("count", pl.UInt32, "", "its events"),
    ),
)


@dataclass(frozen=True, slots=True)
class Group:
    """Lanes that belong together: a process of a run.

    Attributes:
        label: Name for a person, with rank and process where recorded.
        open: It starts unfolded.
    """

    label: str
    open: bool


@dataclass(frozen=True, slots=True)
class Lane:
    """One stream or thread.

    Attributes:
        key: Stable text that names it, e.g. ``"p0d0s7"``.
        label: Name for a person.
        group: Index into :attr:`Drawing.groups`.
        rows: Rows that it needs.
        events: Events in it.
        device: Key into ``devices``, or ``None`` for a host thread.
        open: It starts with all its rows shown.
    """

    key: str
    label: str
    group: int
    rows: int
    events: int
    device: int | None
    open: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """A timeline, ready to be drawn.

    Attributes:
        events: :data:`DRAWN`.
        rows: :data:`ROWS`.
        groups: In the order shown.
        lanes: In the order shown.
        names: Distinct event names.
        stages: Distinct stages, most device time first.
        end_ns: End of the last event.
        left_out: Kind to number of events that have no place in a lane.
        counters: Values over time, drawn above the lanes.
    """

    events: pl.DataFrame
    rows: pl.DataFrame
    groups: tuple[Group, ...]
    lanes: tuple[Lane, ...]
    names: tuple[str, ...]
    stages: tuple[str, ...]
    end_ns: int
    left_out: dict[str, int]
    counters: Counters = NONE_RECORDED


_RANGES: Final = ("annotation", "xla_module", "sync")
_KEYS: Final = ("process", "device", "stream", "ranges", "thread")
_OPEN_GROUPS: Final = 4


def draw(timeline: Timeline) -> Drawing:
    """Lay out every event of a timeline, stages included where :func:`traceview.stages.assign_stages` has set them.

    Counters are samples, not spans: those with a value that changes are :attr:`Drawing.counters`, and
    :attr:`Drawing.left_out` says how many are drawn nowhere.
    """
    values = counters(timeline)
    events = timeline.events.filter(pl.col("kind") != "counter")
    on_device = pl.col("device").is_not_null()
    placed = events.select(
        "id", "start_ns", "dur_ns", "kind", "name", "stage", "launch_id", "op_id", "parent_id", "process", "device",
        stream=pl.when(on_device).then("stream"),
        ranges=on_device & pl.col("kind").is_in(_RANGES),
        thread=pl.when(~on_device).then("thread"),
    )  # fmt: skip
    tables = _Tables(timeline)
    found = placed.group_by(_KEYS).agg(
        pl.len().alias("events"),
        pl.col("kind").cast(pl.String).unique().alias("kinds"),
        pl.col("kind").is_in(["op", "api", "python"]).sum().alias("calls"),
    )
    found, groups = _ordered(found, tables)
    numbers = found.select(*_KEYS, "lane")
    joined = placed.select(_KEYS).join(numbers, on=_KEYS, how="left", nulls_equal=True, maintain_order="left")
    lane = joined["lane"].to_numpy().astype(np.int64)
    starts, lengths = placed["start_ns"].to_numpy(), placed["dur_ns"].to_numpy()
    row = sublanes.rows(lane, starts, starts + lengths, _parents(placed, timeline.events.height, lane))
    names, name_codes = _coded(placed["name"])
    stages, stage_codes = _stages(placed)
    order = np.lexsort((starts, row, lane))
    drawn = pl.DataFrame(
        {
            "start": starts[order].astype(np.float64),
            "dur": lengths[order].astype(np.float64),
            "lane": lane[order].astype(np.uint32),
            "row": row[order].astype(np.uint16),
            "name": name_codes[order].astype(np.uint32),
            "stage": stage_codes[order].astype(np.uint8),
            "kind": placed["kind"].to_physical().to_numpy()[order].astype(np.uint8),
            "id": placed["id"].to_numpy()[order],
            "launch": placed["launch_id"].fill_null(NONE).to_numpy()[order],
            "op": placed["op_id"].fill_null(NONE).to_numpy()[order],
        }
    )
    rows = _rows(drawn)
    undrawn = timeline.events.height - events.height - values.drawn
    return Drawing(
        events=drawn,
        rows=rows,
        groups=groups,
        lanes=_lanes(found, rows, tables),
        names=names,
        stages=stages,
        end_ns=int((starts + lengths).max()) if len(starts) else 0,
        left_out={"counter": undrawn} if undrawn else {},
        counters=values,
    )


def _parents(placed: pl.DataFrame, total: int, lane: NDArray[np.int64]) -> NDArray[np.int64]:
    """Enclosing event of each placed event as an index into them, where it is in the same lane."""
    at = np.full(total, sublanes.NO_PARENT, np.int64)
    at[placed["id"].to_numpy()] = np.arange(placed.height)
    given = placed["parent_id"]
    parent = np.full(placed.height, sublanes.NO_PARENT, np.int64)
    known = given.is_not_null().to_numpy()
    parent[known] = at[given.drop_nulls().to_numpy()]
    same = (parent >= 0) & (lane[parent] == lane) & (parent < np.arange(len(parent)))
    return np.where(same, parent, sublanes.NO_PARENT)


def _coded(names: pl.Series) -> tuple[tuple[str, ...], NDArray[np.uint32]]:
    """Distinct values of a categorical column, and each row's index into them.

    Categories may be shared with other timelines, so their own codes have holes.
    """
    codes = names.to_physical()
    distinct = names.unique(maintain_order=True)
    if not len(distinct):
        return (), np.zeros(len(names), np.uint32)
    present = distinct.to_physical().to_numpy()
    of_code = np.zeros(int(present.max()) + 1, np.uint32)
    of_code[present] = np.arange(len(distinct), dtype=np.uint32)
    return tuple(distinct.cast(pl.String).to_list()), of_code[codes.to_numpy()]


def _stages(placed: pl.DataFrame) -> tuple[tuple[str, ...], NDArray[np.uint8]]:
    """Stages, most device time first, and each event's code."""
    ranked = (
        placed.filter(pl.col("stage").is_not_null())
        .group_by("stage")
        .agg(
            pl.col("dur_ns").filter(pl.col("kind").is_in(schema.BUSY_KINDS)).sum().alias("busy"),
            pl.len().alias("events"),
            pl.col("start_ns").min().alias("first"),
        )
        .sort("busy", "events", "first", descending=[True, True, False])
    )
    if not ranked.height:
        return (), np.full(placed.height, NO_STAGE, np.uint8)
    names = ranked["stage"].cast(pl.String).to_list()
    codes = pl.DataFrame(
        {"stage": ranked["stage"], "code": np.minimum(np.arange(len(names)), MOST_STAGES - 1).astype(np.uint8)}
    )
    of_row = placed.select("stage").join(codes, on="stage", how="left", maintain_order="left")["code"]
    if len(names) > MOST_STAGES:
        names = [*names[: MOST_STAGES - 1], f"{len(names) - MOST_STAGES + 1} other stages"]
    return tuple(names), of_row.fill_null(NO_STAGE).to_numpy()


def _rows(drawn: pl.DataFrame) -> pl.DataFrame:
    return (
        drawn.group_by("lane", "row", maintain_order=True)
        .agg(pl.len().alias("count").cast(pl.UInt32))
        .with_columns(first=(pl.col("count").cum_sum() - pl.col("count")).cast(pl.UInt32))
        .select("lane", "row", "first", "count")
    )


def _holds(kinds: frozenset[str], *, ranges: bool) -> str:
    """What a stream or line holds, where that is not plain work of any kind."""
    if not ranges:
        return "XLA ops" if "xla_op" in kinds else ""
    words = {"annotation": "ranges", "xla_module": "XLA modules", "sync": "waits"}
    return " and ".join(word for kind, word in words.items() if kind in kinds)


class _Tables:
    """What the lookup frames say about a key, in words."""

    def __init__(self, timeline: Timeline) -> None:
        self.runs = timeline.runs
        self.processes = {row["process"]: row for row in timeline.processes.iter_rows(named=True)}
        self.threads = {row["thread"]: row for row in timeline.threads.iter_rows(named=True)}
        self.devices = {row["device"]: row for row in timeline.devices.iter_rows(named=True)}

    def run_of(self, process: int | None, device: int | None) -> int:
        for table, key in ((self.processes, process), (self.devices, device)):
            if key is not None and key in table:
                return int(table[key]["run"])
        return 0

    def group(self, process: int | None, run: int) -> str:
        """One process: its rank, number and name as far as they are recorded."""
        known = self.processes.get(process, {}) if process is not None else {}
        rank = known.get("rank")
        if rank is None and run < len(self.runs):
            rank = self.runs[run].rank
        parts = [f"rank {rank}"] if rank is not None else []
        if known.get("pid") is not None:
            parts.append(f"process {known['pid']}")
        if known.get("name"):
            parts.append(str(known["name"]))
        if process is not None and parts:
            return " · ".join(parts)
        file = self.runs[run].path.name if run < len(self.runs) else "trace"
        return file if process is not None else f"{file} · no process recorded"

    def lane(self, row: dict[str, Any]) -> str:
        """One stream or thread."""
        if row["device"] is None:
            return self._thread(row["thread"])
        device = self.devices.get(row["device"], {})
        noun = {"google": "TPU", "nvidia": "GPU", "amd": "GPU"}.get(str(device.get("vendor")), "device")
        line = "line" if noun == "TPU" else "stream"
        stream = f"{line} {row['stream']}" if row["stream"] is not None else f"no {line}"
        holds = _holds(frozenset(row["kinds"]), ranges=row["ranges"])
        return f"{noun} {device.get('ordinal', '?')} · {stream}{holds and ' · ' + holds}"

    def _thread(self, thread: int | None) -> str:
        known = self.threads.get(thread) if thread is not None else None
        if known is None:
            return "no thread recorded"
        number, name = known["tid"], known["name"]
        if not name:
            return f"thread {number}" if number is not None else "thread without a number"
        # Some recorders put the number into the name.
        return str(name) if number is None or str(number) in str(name) else f"thread {number} · {name}"


def _ordered(found: pl.DataFrame, tables: _Tables) -> tuple[pl.DataFrame, tuple[Group, ...]]:
    """Lanes in the order shown, numbered, with ``group``; and the groups."""

    def ordinal(device: int | None) -> int:
        return int(tables.devices[device]["ordinal"]) if device in tables.devices else 0

    def group_key(row: dict[str, Any]) -> tuple[bool, int, int]:
        # What belongs to no process comes last: it is what the recorder says of itself.
        process = row["process"]
        return process is None, tables.run_of(process, row["device"]), -1 if process is None else int(process)

    rows = list(found.iter_rows(named=True))
    rows.sort(
        key=lambda row: (
            group_key(row),
            row["device"] is None,
            (ordinal(row["device"]), row["stream"] is None, row["stream"] or 0, not row["ranges"])
            if row["device"] is not None
            else (-row["calls"], -row["events"], row["thread"] is None, row["thread"] or 0),
        )
    )
    keys = list(dict.fromkeys(group_key(row) for row in rows))
    number = {key: index for index, key in enumerate(keys)}
    groups = tuple(
        Group(tables.group(None if nowhere else process, run), index < _OPEN_GROUPS)
        for index, (nowhere, run, process) in enumerate(keys)
    )
    main: dict[int, int] = {}
    for index, row in enumerate(rows):
        if row["device"] is None and row["calls"]:
            main.setdefault(number[group_key(row)], index)
    ordered = pl.DataFrame(rows, schema=found.schema).with_columns(
        lane=pl.int_range(pl.len(), dtype=pl.UInt32),
        group=pl.Series([number[group_key(row)] for row in rows], dtype=pl.UInt32),
        main=pl.Series([main.get(number[group_key(row)]) == index for index, row in enumerate(rows)], dtype=pl.Boolean),
    )
    return ordered, groups


def _lanes(found: pl.DataFrame, rows: pl.DataFrame, tables: _Tables) -> tuple[Lane, ...]:
    deepest = dict(rows.group_by("lane").agg(pl.col("row").max()).iter_rows())
    lanes = []
    for row in found.iter_rows(named=True):
        needed = deepest.get(row["lane"], 0) + 1
        where = "".join(
            f"{letter}{row[column]}"
            for letter, column in (("p", "process"), ("d", "device"), ("s", "stream"), ("t", "thread"))
            if row[column] is not None
        )
        lanes.append(
            Lane(
                key=(where or "none") + ("r" if row["ranges"] else ""),
                label=tables.lane(row),
                group=row["group"],
                rows=needed,
                events=row["events"],
                device=row["device"],
                open=row["main"] or (row["device"] is not None and needed <= OPEN_ROWS),
            )
        )
    return tuple(lanes)
