"""Whether the host launches work fast enough: latency, queue, graphs, and kernels too small to hide their launch.

A device is launch-bound where it runs what it is given faster than the host gives it. The queue between them tells: it
holds what was launched and has not started. While it is empty the device can only wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import gaps, intervals
from traceview.host_tiles import PACE_NS
from traceview.idle_work import NEVER_NS, device_works
from traceview.knowledge.idle_causes import Cause
from traceview.launches import graph_launch_ids
from traceview.schema import Column, FrameSchema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceview.idle_work import Work
    from traceview.timeline import Timeline

LAUNCH_HEALTH: Final = FrameSchema(
    "launch_health",
    "How each device is fed, one row per device. Null where no launch is recorded, or nothing was measured.",
    (
        Column("device", pl.UInt32, "", "key into `devices`"),
        Column("span_ns", pl.Int64, "ns", "from the first start to the last end of its work"),
        Column("idle_ns", pl.Int64, "ns", "time within it in which nothing ran"),
        Column("launch_idle_ns", pl.Int64, "ns", "idle time whose cause is the pace of launching", nullable=True),
        Column("launch_bound", pl.Boolean, "", "that is a quarter of the span or more; null: not known", nullable=True),
        Column("work", pl.UInt32, "", "pieces of work"),
        Column("launched", pl.UInt32, "", "of these, with a launch in the file"),
        Column("launches", pl.UInt32, "", "host calls that launched them"),
        Column("graph_work", pl.UInt32, "", "pieces of work launched by replays of graphs"),
        Column("graph_share", pl.Float64, "of 1", "part of the time of all work that graphs launched", nullable=True),
        Column(
            "latency_p50_ns", pl.Int64, "ns", "launch call to start of work, on an idle device: median", nullable=True
        ),
        Column("latency_p90_ns", pl.Int64, "ns", "the same, 90th percentile", nullable=True),
        Column("latency_p99_ns", pl.Int64, "ns", "the same, 99th percentile", nullable=True),
        Column("pace_ns", pl.Int64, "ns", "median time between two launches of one thread", nullable=True),
        Column(
            "too_small",
            pl.UInt32,
            "",
            "kernels shorter than this pace: they cannot hide the next launch",
            nullable=True,
        ),
        Column("too_small_share", pl.Float64, "of 1", "of the kernels that no graph launched", nullable=True),
        Column(
            "queue_mean", pl.Float64, "", "mean number of pieces launched and not started, over time", nullable=True
        ),
        Column("queue_max", pl.UInt32, "", "most of them at one time", nullable=True),
        Column("queue_empty_share", pl.Float64, "of 1", "part of the span in which none was waiting", nullable=True),
    ),
)

QUEUE_DEPTH: Final = FrameSchema(
    "queue_depth",
    "How many pieces of work were launched and had not started, per device, as a step function of time.",
    (
        Column("device", pl.UInt32, "", "key into `devices`"),
        Column("start_ns", pl.Int64, "ns", "from here on, until the next row of the device"),
        Column("depth", pl.UInt32, "", "pieces launched and not started"),
    ),
)

LAUNCH_BOUND_REGIONS: Final = FrameSchema(
    "launch_bound_regions",
    "Stretches in which a device waited for nearly every launch, longest idle time first.",
    (
        Column("device", pl.UInt32, "", "key into `devices`"),
        Column("start_ns", pl.Int64, "ns", "start of the first idle stretch"),
        Column("end_ns", pl.Int64, "ns", "end of the last work"),
        Column("work", pl.UInt32, "", "pieces of work in it"),
        Column("idle_ns", pl.Int64, "ns", "time in it in which nothing ran"),
        Column("op_id", pl.UInt32, "", "op that launched the work after the longest idle stretch", nullable=True),
    ),
)

BOUND_SHARE: Final = 0.25
"""Profiling itself slows the host; a quarter of the span is more than that."""

_CLOSE: Final = 5
"""Up to four pieces of work that were queued in time do not end a launch-bound stretch: an op launches several."""

_FEWEST: Final = 10
_KERNELS: Final = ("kernel", "xla_op")


def launch_health(
    timeline: Timeline, pieces: pl.DataFrame | None = None, known: Sequence[Work] | None = None
) -> pl.DataFrame:
    """The :data:`LAUNCH_HEALTH` of each device that did any work.

    Args:
        timeline: With launches linked.
        pieces: The :func:`traceview.gaps.causes` of :func:`traceview.gaps.idle`, if they are at hand.
        known: The work of each device, if it is at hand.
    """
    known = device_works(timeline) if known is None else known
    if pieces is None:
        pieces = gaps.causes(timeline, gaps.idle(timeline))
    taken = pieces.group_by("device", "cause").agg(ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
    by_graph = graph_launch_ids(timeline.events).to_numpy()
    idle: dict[int | None, dict[str, int]] = {}
    for device, cause, ns in taken.iter_rows():
        idle.setdefault(device, {})[cause] = ns
    rows = [_health(timeline, work, idle.get(work.device, {}), np.isin(work.launch_id, by_graph)) for work in known]
    return pl.DataFrame(rows, schema=LAUNCH_HEALTH.dtypes)


def _health(timeline: Timeline, work: Work, idle: dict[str, int], graphed: NDArray[np.bool_]) -> dict[str, object]:
    span_ns = intervals.span(work.starts, work.ends)
    linked = work.launch_id >= 0
    durations = work.ends - work.starts
    row: dict[str, object] = {
        "device": work.device,
        "span_ns": span_ns,
        "idle_ns": sum(idle.values()),
        "work": len(work.starts),
        "launched": int(linked.sum()),
        "launches": pl.Series(work.launch_id[linked]).n_unique(),
        "graph_work": int(graphed.sum()),
    }
    if not linked.any():
        return row
    row["launch_idle_ns"] = idle.get(Cause.LAUNCH.value, 0)
    unreliable = idle.get(Cause.UNRELIABLE.value, 0)
    share = (idle.get(Cause.LAUNCH.value, 0) / span_ns) if span_ns else 0.0
    # Time of unrecorded replays counts for neither side; if it could change the answer there is none.
    undecided = share < BOUND_SHARE <= share + unreliable / span_ns if span_ns else True
    row["launch_bound"] = None if undecided else share >= BOUND_SHARE
    row["graph_share"] = float(durations[graphed].sum() / max(int(durations.sum()), 1))
    # When the device ran dry before each piece of work; before the first it is not known.
    dry = np.concatenate(([NEVER_NS], np.maximum.accumulate(work.ends[:-1])))
    alone = linked & (work.launched_ns >= dry) & ~graphed
    if alone.any():
        latency = np.maximum(work.starts[alone] - work.launched_ns[alone], 0)
        for name, quantile in (("p50", 50), ("p90", 90), ("p99", 99)):
            row[f"latency_{name}_ns"] = round(float(np.percentile(latency, quantile)))
    pace = _pace(work, linked)
    if pace is not None:
        row["pace_ns"] = pace
        kinds = timeline.events["kind"].gather(pl.Series(work.ids)).is_in(list(_KERNELS)).to_numpy()
        single = kinds & ~graphed & linked
        small = int((single & (durations < pace)).sum())
        row["too_small"] = small
        row["too_small_share"] = small / max(int(single.sum()), 1)
    moments, depth = _queue(work)
    if len(moments) > 1:
        lasting = np.diff(np.append(moments, max(int(work.ends.max()), int(moments[-1]))))
        over = max(int(lasting.sum()), 1)
        row["queue_mean"] = float((depth * lasting).sum() / over)
        row["queue_max"] = int(depth.max())
        row["queue_empty_share"] = float(lasting[depth == 0].sum() / over)
    return row


def _pace(work: Work, linked: NDArray[np.bool_]) -> int | None:
    """Median time between two launches of one thread, long breaks left out."""
    calls, first = np.unique(work.launch_id[linked], return_index=True)
    launched, thread = work.launched_ns[linked][first], work.thread[linked][first]
    order = np.lexsort((launched, thread))
    between = np.diff(launched[order])[np.diff(thread[order]) == 0]
    between = between[between <= PACE_NS]
    return int(np.median(between)) if len(calls) > 1 and len(between) else None


def _queue(work: Work) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    linked = work.launch_id >= 0
    launched = work.launched_ns[linked]
    # Clocks of host and device differ by a little: nothing starts before it was launched.
    started = np.maximum(work.starts[linked], launched)
    moments = np.concatenate((launched, started))
    change = np.concatenate((np.ones(len(launched), np.int64), -np.ones(len(started), np.int64)))
    order = np.argsort(moments, kind="stable")
    moments, depth = moments[order], np.cumsum(change[order])
    last = np.append(moments[1:] != moments[:-1], True) if len(moments) else np.zeros(0, np.bool_)
    return moments[last], depth[last]


def queue_depth(timeline: Timeline) -> pl.DataFrame:
    """The :data:`QUEUE_DEPTH` of each device with recorded launches. A graph replay queues all of its kernels."""
    parts = [QUEUE_DEPTH.empty()]
    for work in device_works(timeline):
        moments, depth = _queue(work)
        device = pl.Series("device", [work.device], dtype=pl.UInt32).new_from_index(0, len(moments))
        parts.append(pl.DataFrame({"device": device, "start_ns": moments, "depth": depth.astype(np.uint32)}))
    return pl.concat(parts)


def launch_bound_regions(
    timeline: Timeline, found: pl.DataFrame | None = None, known: Sequence[Work] | None = None
) -> pl.DataFrame:
    """The :data:`LAUNCH_BOUND_REGIONS`.

    Args:
        timeline: With launches linked.
        found: The :func:`traceview.gaps.gaps`, if they are at hand.
        known: The work of each device, if it is at hand.
    """
    if found is None:
        found = gaps.gaps(timeline)
    rows = []
    late = found.filter((pl.col("cause") == Cause.LAUNCH.value) & pl.col("next_id").is_not_null())
    by_device = late.partition_by("device", as_dict=True)
    for work in device_works(timeline) if known is None else known:
        own = by_device.get((work.device,))
        if own is None:
            continue
        at = np.searchsorted(work.starts, own["start_ns"].to_numpy() + own["dur_ns"].to_numpy(), side="left")
        breaks = np.flatnonzero(np.diff(at) > _CLOSE) + 1
        for first, stop in zip([0, *breaks.tolist()], [*breaks.tolist(), len(at)], strict=True):
            count = int(at[stop - 1] - at[first]) + 1
            if count < _FEWEST:
                continue
            inside = own[first:stop]
            begin, end = int(inside["start_ns"][0]), int(work.ends[at[first] : at[stop - 1] + 1].max())
            cover = slice(int(at[first]), int(at[stop - 1]) + 1)
            busy = intervals.total(np.maximum(work.starts[cover], begin), work.ends[cover])
            longest = int(inside["dur_ns"].arg_max() or 0)
            rows.append(
                {
                    "device": work.device,
                    "start_ns": begin,
                    "end_ns": end,
                    "work": count,
                    "idle_ns": end - begin - busy,
                    "op_id": timeline.events["op_id"][int(inside["next_id"][longest])],
                }
            )
    table = pl.DataFrame(rows, schema=LAUNCH_BOUND_REGIONS.dtypes)
    waiting = 2 * pl.col("idle_ns") >= pl.col("end_ns") - pl.col("start_ns")
    return table.filter(waiting).sort("idle_ns", "start_ns", descending=[True, False])
