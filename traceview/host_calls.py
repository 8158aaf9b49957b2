"""Questions about host calls that several analyses ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals, nesting

if TYPE_CHECKING:
    from traceview.timeline import Timeline


_FEW: Final = 0.02
"""Up to this part of all events are climbed from one by one."""


def innermost(timeline: Timeline, event_ids: pl.Series, roots: pl.Series) -> pl.Series:
    """For each host event id (null: none) the innermost of ``roots`` that is it or encloses it; null if none does."""
    if not len(roots) or not len(event_ids):
        return pl.Series("root", [None], dtype=pl.UInt32).new_from_index(0, len(event_ids))
    parent = timeline.events["parent_id"].cast(pl.Int32).fill_null(nesting.NO_PARENT).to_numpy()
    marked = np.zeros(len(parent), bool)
    marked[roots.to_numpy()] = True
    found = event_ids.cast(pl.Int32).fill_null(nesting.NO_PARENT).to_numpy().copy()
    if len(found) < _FEW * len(parent):
        # For few events it is cheaper to climb from each than to look at all of them.
        climbing = np.flatnonzero(found >= 0)
        while len(climbing):
            climbing = climbing[~marked[found[climbing]]]
            found[climbing] = parent[found[climbing]]
            climbing = climbing[found[climbing] >= 0]
    else:
        around = nesting.nearest_marked(parent, marked)
        found = np.where(found >= 0, around[found], nesting.NO_PARENT)
    return pl.Series("root", found).replace(nesting.NO_PARENT, None).cast(pl.UInt32)


def host_union_ns(events: pl.DataFrame) -> int:
    """Length of the union of host calls, thread by thread, ns: a call and the calls inside it count once."""
    total = 0
    for rows in events.partition_by("thread"):
        starts = rows["start_ns"].to_numpy()
        total += intervals.total(*intervals.merge(starts, starts + rows["dur_ns"].to_numpy()))
    return total


def named(timeline: Timeline, kinds: tuple[str, ...], pattern: str) -> pl.DataFrame:
    """Host events of some kinds whose name matches, with ``name`` as text."""
    # Filtered before names become text: a trace has millions of events and thousands of names.
    wanted = timeline.host_names(kinds)
    wanted = wanted.filter(wanted.cast(pl.String).str.contains(pattern).fill_null(value=False))
    events = timeline.events if len(wanted) else timeline.events.clear()
    return events.filter(
        pl.col("thread").is_not_null() & pl.col("kind").is_in(list(kinds)) & pl.col("name").is_in(wanted.implode())
    ).with_columns(pl.col("name").cast(pl.String))


def outermost(timeline: Timeline, events: pl.DataFrame) -> pl.DataFrame:
    """Those of some host events that lie inside none of the others."""
    around = innermost(timeline, events["parent_id"], events["id"])
    return events.filter(around.is_null())
