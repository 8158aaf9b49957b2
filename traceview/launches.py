"""Which host call launched which device work, and which op asked for it.

A launch and its device work share a correlation id, which is unique only within a process: joins are always by
(process, correlation). A graph launch owns many kernels. Device work whose launch was not recorded keeps no
launch, and a launch whose work was not recorded stays what it is; both are counted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import nesting, schema
from traceview.timeline import Count, Note, Timeline, Trust

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

LAUNCH_NAMES: Final = (
    r"^(cuda|cu|hip|hipExt|hipModule|musa|mu)\w*"
    r"(Launch\w*Kernel\w*|LaunchKernel\w*|LaunchCooperative\w*|GraphLaunch\w*|Memcpy\w*|Memset\w*)$"
)
"""Runtime and driver calls that put work on a device."""

GRAPH_LAUNCH_NAMES: Final = r"^(cuda|cu|hip)GraphLaunch\w*$"
"""Calls that replay a captured graph: one launch, many kernels, no op per kernel."""

_SILENT_SHARE: Final = 0.01
"""A launch or two at the end of a window is the edge of the recording, not a fault of it."""

_LIMITED_SHARE: Final = 0.01


def link(timeline: Timeline) -> Timeline:
    """Set ``parent_id``, ``launch_id`` and ``op_id`` of every event and say in the report what stayed open.

    Args:
        timeline: As a parser built it. Linking twice changes nothing.
    """
    events = timeline.events
    parent_id, op_of_host = _host_tree(events)
    launch_id, reused = _launches(events)
    op_id = op_of_host.copy()
    launched = np.flatnonzero(launch_id >= 0)
    op_id[launched] = op_of_host[launch_id[launched]]
    by_external_id = _fill_by_external_id(timeline, op_id)
    linked = events.with_columns(
        _nullable_id("parent_id", parent_id), _nullable_id("launch_id", launch_id), _nullable_id("op_id", op_id)
    )
    report = timeline.report
    if reused:
        report = report.with_counts(correlation_reused=Count(reused))
    if by_external_id:
        report = report.with_counts(op_by_external_id=Count(by_external_id))
    report = report.with_notes(*_missing_launch_notes(linked), *_missing_work_notes(linked))
    return replace(timeline, events=linked, report=report)


def graph_launch_ids(events: pl.DataFrame) -> pl.Series:
    """Ids of the host calls that replay a captured graph."""
    return events.filter((pl.col("kind") == "api") & _named(events, GRAPH_LAUNCH_NAMES))["id"]


def silent_graph_launches(events: pl.DataFrame) -> pl.Series:
    """Ids of the graph launches to which no recorded device work is linked: what they ran is not in the file."""
    launched = graph_launch_ids(events)
    worked = pl.col("device").is_not_null() & pl.col("kind").is_in(list(schema.BUSY_KINDS))
    owned = events.filter(worked)["launch_id"].drop_nulls().unique()
    return launched.filter(~launched.is_in(owned.implode()))


def too_many_silent(silent: int, launched: int) -> bool:
    """More graph launches are silent than the edge of a recording explains, so idle time is not reliable."""
    return silent > _SILENT_SHARE * launched


def _named(events: pl.DataFrame, pattern: str) -> pl.Expr:
    """Rows whose name matches. Each distinct name is looked at once: a trace has thousands of calls of one name."""
    calls = events.filter(pl.col("kind") == "api")["name"].unique()
    matching = calls.filter(calls.cast(pl.String).str.contains(pattern))
    return pl.col("name").is_in(matching.implode())


def _nullable_id(name: str, ids: NDArray[np.int32]) -> pl.Series:
    known = pl.Series(name, ids.view(np.uint32))
    return known.set(pl.Series(ids < 0), None)


def _host_tree(events: pl.DataFrame) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Parent of each host row and the innermost op around it (itself if it is one); -1 where there is none."""
    parent_id = np.full(events.height, -1, np.int32)
    op_id = np.full(events.height, -1, np.int32)
    host = np.flatnonzero(events["thread"].is_not_null().to_numpy()).astype(np.int32)
    if not len(host):
        return parent_id, op_id
    threads = events["thread"].gather(pl.Series(host)).to_numpy()
    # In the order of threads from the start, so that no column is copied twice.
    host = host[nesting.thread_order(threads)]
    threads = np.sort(threads)
    starts = events["start_ns"].to_numpy()[host]
    ends = starts + events["dur_ns"].to_numpy()[host]
    parent = nesting.parents(starts, ends, threads)
    kinds = events["kind"]
    is_op = (kinds == "op").to_numpy()[host]
    op = nesting.nearest_marked(parent, is_op)
    # A range that outlives the event it started in (NVTX start/end, asynchronous marks) stands between that event and
    # what runs in both. Which op asked must not depend on such ranges.
    is_range = (kinds == "annotation").to_numpy()[host]
    outliving = nesting.outliving(starts, ends, threads, parent, is_range)
    if outliving.any():
        kept = np.flatnonzero(~outliving).astype(np.int32)
        own = nesting.nearest_marked(nesting.parents(starts[kept], ends[kept], threads[kept]), is_op[kept])
        op[kept] = np.where(own >= 0, kept[own], nesting.NO_PARENT)
    has_parent, has_op = parent >= 0, op >= 0
    parent_id[host[has_parent]] = host[parent[has_parent]]
    op_id[host[has_op]] = host[op[has_op]]
    return parent_id, op_id


def _launches(events: pl.DataFrame) -> tuple[NDArray[np.int32], int]:
    """Launching host call of each device row (-1: none), and how many correlation ids a process used twice."""
    launch_id = np.full(events.height, -1, np.int32)
    keyed = (events["correlation"].is_not_null() & events["process"].is_not_null()).to_numpy()
    on_host = (events["thread"].is_not_null() & events["kind"].is_in(["api", "sync"])).to_numpy()
    calls = np.flatnonzero(keyed & on_host).astype(np.int32)
    work = np.flatnonzero(keyed & events["device"].is_not_null().to_numpy()).astype(np.int32)
    if not len(calls) or not len(work):
        return launch_id, 0
    process = events["process"].fill_null(0).to_numpy()
    correlation = events["correlation"].fill_null(0).to_numpy()
    place = _dense_places(process[calls], correlation[calls])
    if place is None:
        return _joined_launches(events, calls, work)
    spots, place_of = place
    first = np.full(spots, -1, np.int32)
    # The last write stays: from the back, so that the first call keeps its place.
    first[place_of(process[calls], correlation[calls])[::-1]] = calls[::-1]
    reused = len(calls) - int(np.count_nonzero(first >= 0))
    if reused:
        return _joined_launches(events, calls, work)
    known = place_of(process[work], correlation[work])
    launch_id[work] = np.where(known >= 0, first[known], -1)
    return launch_id, 0


_SPOTS_PER_CALL: Final = 8
"""Profilers count correlations up, so that a table of all numbers is little larger than the calls are many."""


def _dense_places(
    process: NDArray[np.uint32], correlation: NDArray[np.int64]
) -> tuple[int, Callable[[NDArray[np.uint32], NDArray[np.int64]], NDArray[np.int64]]] | None:
    """A numbering of all (process, correlation) between the first and last of each process, if it is small enough.

    Returns:
        How many places there are, and the place of given pairs, -1 outside; ``None`` if numbers are too far apart.
    """
    processes = int(process.max()) + 1
    if processes > len(process):
        return None
    low, high = np.zeros(processes, np.int64), np.full(processes, -1, np.int64)
    for one in pl.Series(process).unique():
        own = correlation if processes == 1 else correlation[process == one]
        low[one], high[one] = own.min(), own.max()
    spots = sum(int(last) - int(first) + 1 for first, last in zip(low, high, strict=True))
    if spots > _SPOTS_PER_CALL * len(process) + (1 << 20):
        return None
    widths = high - low + 1
    base = np.cumsum(widths) - widths

    def place_of(of_process: NDArray[np.uint32], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        there = np.minimum(of_process, processes - 1)
        inside = (of_process < processes) & (numbers >= low[there]) & (numbers <= high[there])
        return np.where(inside, base[there] + numbers - low[there], -1)

    return spots, place_of


def _joined_launches(
    events: pl.DataFrame, calls: NDArray[np.int32], work: NDArray[np.int32]
) -> tuple[NDArray[np.int32], int]:
    """The same for numbers that are far apart or that a process used twice."""
    key = ["process", "correlation"]
    chosen = events.select("id", "start_ns", *key)
    call_rows = chosen[pl.Series(calls)].rename({"id": "launch_id"})
    work_rows = chosen[pl.Series(work)]
    launch_id = np.full(events.height, -1, np.int32)
    unique = call_rows.unique(key, keep="first", maintain_order=True)
    reused = call_rows.height - unique.height
    found = work_rows.join(unique.drop("start_ns"), on=key, how="inner")
    launch_id[found["id"].to_numpy()] = found["launch_id"].to_numpy()
    if reused:
        # A profiler that restarts its counter, or two sessions in one file: the latest call before the work counts.
        before = work_rows.sort("start_ns").join_asof(
            call_rows.sort("start_ns"), on="start_ns", by=key, strategy="backward", check_sortedness=False
        )
        before = before.filter(pl.col("launch_id").is_not_null())
        launch_id[before["id"].to_numpy()] = before["launch_id"].to_numpy()
    return launch_id, reused


def _fill_by_external_id(timeline: Timeline, op_id: NDArray[np.int32]) -> int:
    """Give device work without an enclosing op the op that carries the same ``External id``.

    PyTorch stamps launches and their device work with the id of the op that was innermost at the time. It is only
    used where the call tree gives no answer: ids repeat for collectives, so the tree is the better witness.
    """
    key = next((key for key in ("External id", "external id") if key in timeline.details), None)
    works = timeline.events["kind"].is_in(list(schema.BUSY_KINDS)) & timeline.events["device"].is_not_null()
    open_rows = np.flatnonzero((op_id < 0) & works.to_numpy())
    if key is None or not len(open_rows):
        return 0
    ids = timeline.details[key]
    for other in ("External id", "external id"):
        if other != key and other in timeline.details:
            ids = pl.concat([ids, timeline.details[other]])
    facts = timeline.events.select("id", "process", "kind", "start_ns").join(ids, on="id")
    ops = facts.filter((pl.col("kind") == "op") & (pl.col("value") > 0)).unique(["process", "value"], keep="none")
    wanted = facts.filter(pl.col("id").is_in(pl.Series(open_rows.astype(np.uint32)).implode()))
    found = wanted.join(ops.select("process", "value", op="id", op_start_ns="start_ns"), on=["process", "value"])
    found = found.filter(pl.col("op_start_ns") <= pl.col("start_ns"))
    op_id[found["id"].to_numpy()] = found["op"].to_numpy()
    return found.height


def _missing_launch_notes(events: pl.DataFrame) -> list[Note]:
    work = events.filter(pl.col("device").is_not_null() & pl.col("kind").is_in(list(schema.BUSY_KINDS)))
    orphans = work.filter(pl.col("launch_id").is_null())
    if not orphans.height:
        return []
    share = orphans.height / work.height
    if orphans.height == work.height:
        text = (
            f"No launch is recorded for any of the {work.height:,} device events, "
            "so device work cannot be tied to the op that asked for it."
        )
    else:
        text = (
            f"{orphans.height:,} of {work.height:,} device events have no launch in the file "
            "(recorded before the window opened, or dropped by the profiler): "
            "their kernels are known, the op that asked for them is not."
        )
    return [Note("work-without-launch", text, Trust.LIMITED if share > _LIMITED_SHARE else Trust.GOOD)]


def _missing_work_notes(events: pl.DataFrame) -> list[Note]:
    launches = events.filter(
        (pl.col("kind") == "api") & pl.col("correlation").is_not_null() & _named(events, LAUNCH_NAMES)
    )
    if not launches.height:
        return []
    answered = np.zeros(events.height, np.bool_)
    answered[events.filter(pl.col("device").is_not_null())["launch_id"].drop_nulls().to_numpy()] = True
    silent = launches.filter(~pl.Series(answered[launches["id"].to_numpy()]))
    if not silent.height:
        return []
    # An empty fill or copy (0 bytes) is never put on the device, so a silent memset or memcpy is no loss by itself.
    is_kernel = pl.col("name").cast(pl.String).str.contains("(?i)kernel|graph|cooperative")
    silent_kernels = silent.filter(is_kernel).height
    kernel_launches = launches.filter(is_kernel).height
    names = silent["name"].cast(pl.String).value_counts(sort=True, name="n").head(3)
    listed = ", ".join(f"{n:,} {name}" for name, n in names.iter_rows())
    text = f"{silent.height:,} of {launches.height:,} launches have no device event in the file ({listed})"
    if not silent_kernels:
        return [Note("launch-without-work", f"{text}: fills and copies of nothing leave none.")]
    lossy = silent_kernels > _LIMITED_SHARE * kernel_launches
    # A replay that is not recorded kernel by kernel is another matter than activity that was dropped, with another fix.
    only_graphs = silent_kernels == graph_launch_ids(silent).len()
    return [
        Note(
            "graph-without-work" if only_graphs else "launch-without-work",
            f"{text}: device time and busy time are lower bounds.",
            Trust.LIMITED if lossy else Trust.GOOD,
        )
    ]
