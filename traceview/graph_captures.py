"""Work that was captured into a graph: which launches only recorded it, and which op it was captured from.

A launch within a stream capture runs nothing: it becomes a node of the graph, and the device works when the graph is
replayed. So such a launch without device work is no loss. Nsight Systems records the creation of each node
(``--cuda-graph-trace=node``): through it the kernels of a replay are tied to the op that was running at the capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceview.timeline import Timeline

BEGIN: Final = r"^(cuda|cu|hip)StreamBeginCapture\w*$"
"""Calls that begin a stream capture."""

END: Final = r"^(cuda|cu|hip)StreamEndCapture\w*$"
"""Calls that end one, on the thread that began it."""

NODE: Final = "graph node id"
"""Detail of a piece of device work, and of the creation of a node: the node, unique within a process."""

ORIGINAL: Final = "original graph node id"
"""Detail of the creation of a node: the node that it was cloned from. Instantiating a graph clones its nodes."""

_MOST_CLONES: Final = 8
"""A graph is cloned when it is instantiated, and once more for each graph that it is a part of."""


def is_captured(events: pl.DataFrame, calls: pl.DataFrame) -> NDArray[np.bool_]:
    """Which calls lie within a stream capture of their process.

    A capture also takes the launches of other threads, as those of the backward pass, so the process decides.

    Args:
        events: :data:`traceview.schema.EVENTS`.
        calls: Rows of them with ``process`` and ``start_ns``.
    """
    inside = np.zeros(calls.height, np.bool_)
    spans = _captures(events)
    if not spans.height or not calls.height:
        return inside
    processes, starts = calls["process"].fill_null(0).to_numpy(), calls["start_ns"].to_numpy()
    for (process,), rows in spans.partition_by("process", as_dict=True).items():
        first, last = intervals.merge(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy())
        at = np.searchsorted(first, starts, "right") - 1
        inside |= (processes == process) & (at >= 0) & (starts < last[np.maximum(at, 0)])
    return inside


def _captures(events: pl.DataFrame) -> pl.DataFrame:
    """Each stream capture that was begun and ended: ``process``, ``start_ns``, ``end_ns``."""
    calls = events.select("kind", "name", "process", "thread", "start_ns", "dur_ns").filter(
        (pl.col("kind") == "api") & pl.col("process").is_not_null()
    )
    names = calls["name"].unique()
    texts = names.cast(pl.String)

    def named(pattern: str) -> pl.DataFrame:
        return calls.filter(pl.col("name").is_in(names.filter(texts.str.contains(pattern)).implode()))

    begins = named(BEGIN).select("process", "thread", "start_ns")
    if not begins.height:
        return pl.DataFrame(schema={"process": pl.UInt32, "start_ns": pl.Int64, "end_ns": pl.Int64})
    ends = named(END).select("thread", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    return (
        begins.sort("start_ns")
        .join_asof(ends.sort("start_ns"), on="start_ns", by="thread", strategy="forward", check_sortedness=False)
        .drop_nulls("end_ns")
        .select("process", "start_ns", "end_ns")
    )


def captured_ops(timeline: Timeline) -> pl.DataFrame:
    """For device work of a replayed graph the op from which it was captured: ``id``, ``op_id``.

    Work is left out whose node's creation is not recorded, is not told for certain, or lies in no op.

    Args:
        timeline: Linked timeline.
    """
    nothing = pl.DataFrame(schema={"id": pl.UInt32, "op_id": pl.UInt32})
    if ORIGINAL not in timeline.details or NODE not in timeline.details:
        return nothing
    events = timeline.events
    nodes = timeline.details[NODE].rename({"value": "node"})
    nodes = nodes.with_columns(
        events[name].gather(nodes["id"]) for name in ("process", "thread", "device", "op_id")
    ).filter(pl.col("process").is_not_null())
    created = nodes.filter(pl.col("thread").is_not_null()).join(
        # Old exports write what is not known as 0.
        timeline.details[ORIGINAL].rename({"value": "original"}).filter(pl.col("original") != 0),
        on="id",
        how="left",
    )
    clones = _told_once(created.drop_nulls("original"), "original")
    origins = _told_once(created.filter(pl.col("original").is_null() & pl.col("op_id").is_not_null()), "op_id")
    work = nodes.filter(pl.col("device").is_not_null()).select("id", "process", "node")
    for _ in range(_MOST_CLONES):
        if not clones.height:
            break
        work = work.join(clones, on=["process", "node"], how="left").select(
            "id", "process", node=pl.coalesce("original", "node")
        )
    found = work.join(origins, on=["process", "node"], how="inner").select("id", "op_id")
    return found.sort("id") if found.height else nothing


def _told_once(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """``process``, ``node`` and a column, for nodes of which all rows say the same."""
    return (
        rows.group_by("process", "node")
        .agg(pl.col(column).first(), told=pl.col(column).n_unique())
        .filter(pl.col("told") == 1)
        .drop("told")
    )
