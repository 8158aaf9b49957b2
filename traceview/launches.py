"""Which host call launched which device work, and which op asked for it.

A launch and its device work share a correlation id, which is unique only within a process: joins are always by
(process, correlation). A graph launch owns many kernels. Device work whose launch was not recorded keeps no
launch, and a launch whose work was not recorded stays what it is; both are counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import graph_captures, pairing, schema
from traceview.building import in_any_order, sparse_column, taken
from traceview.host_tree import host_tree
from traceview.quantities import percent
from traceview.timeline import Count, Note, Timeline, Trust

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAUNCH_NAMES: Final = (
    r"^(cuda|cu|hip|hipExt|hipModule|musa|mu)\w*"
    r"(Launch\w*Kernel\w*|LaunchKernel\w*|LaunchCooperative\w*|GraphLaunch\w*|Memcpy\w*|Memset\w*)$"
)
"""Runtime and driver calls that put work on a device."""

GRAPH_LAUNCH_NAMES: Final = r"^(cuda|cu|hip)GraphLaunch\w*$"
"""Calls that replay a captured graph: one launch, many kernels, no op per kernel."""

_MIGRATION: Final = r"\(unified memory\)|Unified Memory Memcpy"
"""How copies of unified memory are named: by this program for Nsight Systems, and by that itself."""

_SILENT_SHARE: Final = 0.01
"""A launch or two at the end of a window is the edge of the recording, not a fault of it."""

_LIMITED_SHARE: Final = 0.01
_TOO_FEW: Final = f"at most {percent(_LIMITED_SHARE)} of the kernel launches, too few to limit an answer."


def link(timeline: Timeline) -> Timeline:
    """Set ``parent_id``, ``launch_id`` and ``op_id`` of every event and say in the report what stayed open.

    Args:
        timeline: As a parser built it. Linking twice changes nothing.
    """
    events = timeline.events
    ids, op_id = host_tree(events)
    # Each array is let go as soon as its column exists.
    parents = _nullable_id("parent_id", ids)
    ids, reused = _launches(events)
    launched = np.flatnonzero(ids >= 0).astype(np.uint32)
    op_id[launched] = op_id[ids[launched]]
    launches = _nullable_id("launch_id", ids)
    del ids, launched
    by_external_id = _fill_by_external_id(timeline, op_id)
    linked = events.with_columns(parents, launches, _nullable_id("op_id", op_id))
    report = timeline.report
    if reused:
        report = report.with_counts(correlation_reused=Count(reused))
    if by_external_id:
        report = report.with_counts(op_by_external_id=Count(by_external_id))
    launching = _launching_calls(linked)
    if captured := int((launching["silent"] & launching["captured"]).sum()):
        report = report.with_counts(launch_captured=Count(captured))
    report = report.with_notes(*_missing_launch_notes(linked), *_missing_work_notes(launching))
    return replace(timeline, events=linked, report=report)


def graph_launch_ids(events: pl.DataFrame) -> pl.Series:
    """Ids of the host calls that replay a captured graph."""
    return events.filter((pl.col("kind") == "api") & _named(events, GRAPH_LAUNCH_NAMES))["id"]


@dataclass(frozen=True, slots=True)
class GraphReplays:
    """The replays of captured graphs in a trace.

    Attributes:
        launched: Ids of the host calls that replay one.
        silent: Those of them to which no recorded device work is linked: what they ran is not in the file.
    """

    launched: pl.Series
    silent: pl.Series

    @property
    def under_recorded(self) -> bool:
        """More replays are silent than the edge of a recording explains: idle time and absence prove nothing."""
        return len(self.silent) > _SILENT_SHARE * len(self.launched)

    @property
    def words(self) -> str:
        """How many are silent, to begin a sentence."""
        return f"{len(self.silent):,} of {len(self.launched):,} graph launches have no recorded kernel"


def graph_replays(events: pl.DataFrame) -> GraphReplays:
    """The graph replays of linked events."""
    launched = graph_launch_ids(events)
    worked = pl.col("device").is_not_null() & pl.col("kind").is_in(list(schema.BUSY_KINDS))
    owned = events.select("launch_id", worked=worked).filter("worked")["launch_id"].drop_nulls().unique()
    return GraphReplays(launched, launched.filter(~launched.is_in(owned.implode())))


def _named(events: pl.DataFrame, pattern: str) -> pl.Expr:
    """Rows whose name matches. Each distinct name is looked at once: a trace has thousands of calls of one name."""
    calls = events.select("kind", "name").filter(pl.col("kind") == "api")["name"].unique()
    matching = calls.filter(calls.cast(pl.String).str.contains(pattern))
    return pl.col("name").is_in(matching.implode())


def _nullable_id(name: str, ids: NDArray[np.int32]) -> pl.Series:
    known = ids >= 0
    if known.all():
        return pl.Series(name, ids.view(np.uint32))
    at = np.flatnonzero(known).astype(np.uint32)
    return sparse_column(len(ids), at, ids[known].view(np.uint32), pl.UInt32).alias(name)


def _launches(events: pl.DataFrame) -> tuple[NDArray[np.int32], int]:
    """Launching host call of each device row (-1: none), and how many correlation ids a process used twice."""
    launch_id = np.full(events.height, -1, np.int32)
    keyed = (events["correlation"].is_not_null() & events["process"].is_not_null()).to_numpy()
    hosted = keyed & events["thread"].is_not_null().to_numpy() & _is_kind(events, "api", "sync")
    calls = np.flatnonzero(hosted).astype(np.int32)
    work = np.flatnonzero(keyed & events["device"].is_not_null().to_numpy()).astype(np.int32)
    if not len(calls) or not len(work):
        return launch_id, 0
    call_keys, work_keys = pairing.keys(
        [(_taken(events["process"], rows), _taken(events["correlation"], rows)) for rows in (calls, work)]
    )
    answer = pairing.in_table(call_keys, work_keys)
    if answer is not None:
        found = answer >= 0
        launch_id[work[found]] = calls[answer[found]]
        return launch_id, 0
    # Rows are numbered by start, so among equal keys the calls stay in the order of time.
    order = np.argsort(call_keys, kind="stable")
    calls, call_keys = calls[order], call_keys[order]
    first = np.searchsorted(call_keys, work_keys, "left")
    stop = np.searchsorted(call_keys, work_keys, "right")
    found = stop > first
    work, first, stop = work[found], first[found], stop[found]
    reused = int((call_keys[1:] == call_keys[:-1]).sum())
    if reused:
        # A profiler that restarts its counter, or two sessions in one file: the latest call before the work counts.
        starts = events["start_ns"].to_numpy()
        first = pairing.last_not_after(starts[calls], starts[work], first, stop)
    launch_id[work] = calls[first]
    return launch_id, reused


def _is_kind(events: pl.DataFrame, *kinds: str) -> NDArray[np.bool_]:
    codes = events["kind"].to_physical().to_numpy()
    found = np.zeros(len(codes), np.bool_)
    for kind in kinds:
        found |= codes == schema.KINDS.index(kind)
    return found


def _taken(column: pl.Series, rows: NDArray[np.int32]) -> NDArray[np.int64]:
    """The values of some rows. A column with nulls would be copied as a whole to become an array."""
    return column.gather(pl.Series(rows)).cast(pl.Int64).to_numpy()


def _fill_by_external_id(timeline: Timeline, op_id: NDArray[np.int32]) -> int:
    """Give device work without an enclosing op the op that carries the same ``External id``.

    PyTorch stamps launches and their device work with the id of the op that was innermost at the time. It is only
    used where the call tree gives no answer: ids repeat for collectives, so the tree is the better witness.
    """
    events = timeline.events
    names = [key for key in ("External id", "external id") if key in timeline.details]
    owned = events["process"].is_not_null().to_numpy()
    wanted = (op_id < 0) & owned & events["device"].is_not_null().to_numpy() & _is_kind(events, *schema.BUSY_KINDS)
    if not names or not wanted.any():
        return 0
    is_op = _is_kind(events, "op") & owned
    op_stamps: list[tuple[NDArray[np.int32], NDArray[np.int64]]] = []
    open_stamps: list[tuple[NDArray[np.int32], NDArray[np.int64]]] = []
    for name in names:
        frame = in_any_order(timeline.details, name)
        rows, values = frame["id"].to_numpy(), frame["value"].to_numpy()
        del frame
        for chosen, stamps in ((is_op, op_stamps), (wanted, open_stamps)):
            stamped = taken(chosen, rows)
            if chosen is is_op:
                stamped &= values > 0
            stamps.append((rows[stamped].astype(np.int32), values[stamped]))
        del rows, values
    ops, op_values = (np.concatenate(parts) for parts in zip(*op_stamps, strict=True))
    open_rows, open_values = (np.concatenate(parts) for parts in zip(*open_stamps, strict=True))
    if not len(ops) or not len(open_rows):
        return 0
    op_keys, open_keys = pairing.keys(
        [
            (_taken(events["process"], ops), op_values),
            (_taken(events["process"], open_rows), open_values),
        ]
    )
    order = np.argsort(op_keys, kind="stable")
    ops, op_keys = ops[order], op_keys[order]
    first = np.searchsorted(op_keys, open_keys, "left")
    # An id that several ops carry names none of them.
    once = np.searchsorted(op_keys, open_keys, "right") - first == 1
    open_rows, op = open_rows[once], ops[first[once]]
    starts = events["start_ns"].to_numpy()
    before = starts[op] <= starts[open_rows]
    op_id[open_rows[before]] = op[before]
    return int(before.sum())


def migrates(events: pl.DataFrame) -> pl.Expr:
    """Copies by which the driver moves pages of unified memory: a page fault asks for them, and no call."""
    names = events.filter((pl.col("kind") == "memcpy") & pl.col("device").is_not_null())["name"].unique()
    moved = names.filter(names.cast(pl.String).str.contains(_MIGRATION))
    return (pl.col("kind") == "memcpy") & pl.col("name").is_in(moved.implode())


def _missing_launch_notes(events: pl.DataFrame) -> list[Note]:
    busy = pl.col("device").is_not_null() & pl.col("kind").is_in(list(schema.BUSY_KINDS))
    work = events.select("launch_id", busy=busy & ~migrates(events)).filter("busy")
    orphans = work["launch_id"].null_count()
    if not orphans:
        return []
    share = orphans / work.height
    if orphans == work.height:
        which = "the only device event" if orphans == 1 else f"any of the {orphans:,} device events"
        text = f"No launch is recorded for {which}, so device work cannot be tied to the op that asked for it."
    else:
        text = (
            f"{orphans:,} of {work.height:,} device events have no launch in the file "
            "(recorded before the window opened, or dropped by the profiler): "
            "their kernels are known, the op that asked for them is not."
        )
    return [Note("work-without-launch", text, Trust.LIMITED if share > _LIMITED_SHARE else Trust.GOOD)]


def _launching_calls(events: pl.DataFrame) -> pl.DataFrame:
    """Calls that put work on a device: ``name``, whether none is recorded, and whether they only captured it."""
    launches = events.select("id", "kind", "name", "correlation").filter(
        (pl.col("kind") == "api") & pl.col("correlation").is_not_null() & _named(events, LAUNCH_NAMES)
    )
    if not launches.height:
        return launches.select("name", silent=pl.lit(value=False), captured=pl.lit(value=False))
    answered = np.zeros(events.height, np.bool_)
    answered[events.select("device", "launch_id").drop_nulls()["launch_id"].to_numpy()] = True
    silent = ~answered[launches["id"].to_numpy()]
    captured = np.zeros(launches.height, np.bool_)
    quiet = np.flatnonzero(silent)
    if len(quiet):
        at = launches["id"].gather(pl.Series(quiet.astype(np.uint32)))
        placed = pl.DataFrame({name: events[name].gather(at) for name in ("process", "start_ns")})
        captured[quiet] = graph_captures.is_captured(events, placed)
    return launches.select("name", silent=pl.Series(silent), captured=pl.Series(captured))


def _missing_work_notes(launching: pl.DataFrame) -> list[Note]:
    launches = launching.filter(~pl.col("captured"))
    if not launches.height:
        return []
    # From here on by distinct name: a trace has a few launch calls, each many thousand times.
    calls = (
        launches.group_by("name")
        .agg(n=pl.len(), silent=pl.col("silent").sum())
        .with_columns(pl.col("name").cast(pl.String))
        .sort("silent", "name", descending=[True, False])
    )
    silent = int(calls["silent"].sum())
    if not silent:
        return []
    # An empty fill or copy (0 bytes) is never put on the device, so a silent memset or memcpy is no loss by itself.
    kernels = calls.filter(pl.col("name").str.contains("(?i)kernel|graph|cooperative"))
    silent_kernels = int(kernels["silent"].sum())
    names = calls.filter(pl.col("silent") > 0).head(3)
    listed = ", ".join(f"{n:,} {name}" for name, n in names.select("name", "silent").iter_rows())
    text = f"{silent:,} of {launches.height:,} launches have no device event in the file ({listed})"
    if not silent_kernels:
        return [Note("launch-without-work", f"{text}: fills and copies of nothing leave none.")]
    lossy = silent_kernels > _LIMITED_SHARE * int(kernels["n"].sum())
    # A replay that is not recorded kernel by kernel is another matter than activity that was dropped, with another fix.
    graphs = kernels.filter(pl.col("name").str.contains(GRAPH_LAUNCH_NAMES))
    only_graphs = silent_kernels == int(graphs["silent"].sum())
    return [
        Note(
            "graph-without-work" if only_graphs else "launch-without-work",
            f"{text}: " + ("device time and busy time are lower bounds." if lossy else _TOO_FEW),
            Trust.LIMITED if lossy else Trust.GOOD,
        )
    ]
