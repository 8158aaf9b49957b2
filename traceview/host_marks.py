"""What each host event holds the host for: waits, allocations, data loading, compilation and the like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import nesting, schema
from traceview.host_copies import host_copies
from traceview.knowledge.idle_causes import HOST_NAMES, READS, WHOLE, WITHIN_ALL, Cause
from traceview.waits import TO_DEVICE, TO_HOST, blocking_copies

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceview.timeline import Timeline

CODES: Final = {cause: number for number, cause in enumerate(Cause)}
"""Number of each cause."""

NO_CAUSE: Final = 255

_COPY_NS: Final = 20_000
"""A copy call that is shorter than this only queues the copy."""


@dataclass(frozen=True, slots=True)
class HostMarks:
    """What every event means; one entry per event of the timeline.

    Attributes:
        cause: Number of its cause (:data:`CODES`), that of an event around it included; :data:`NO_CAUSE`: none.
        culprit: Id of the event that gives it the cause; itself where there is none.
        whole: It is part of data loading or of a compilation.
    """

    cause: NDArray[np.uint8]
    culprit: NDArray[np.int32]
    whole: NDArray[np.bool_]


def host_marks(timeline: Timeline, rows: NDArray[np.int32] | None = None) -> HostMarks:
    """The marks of a linked timeline.

    Args:
        timeline: With launches linked.
        rows: Ascending ids of the events that matter, each with all that enclose it; the others get no cause. Not
            given: all.
    """
    own, reads = _own_causes(timeline)
    _mark_host_copies(timeline, own)
    parent = timeline.events["parent_id"].cast(pl.Int32).fill_null(nesting.NO_PARENT).to_numpy()
    if rows is None:
        return _marks(own, reads, parent)
    place = np.full(len(parent) + 1, nesting.NO_PARENT, np.int32)
    place[rows] = np.arange(len(rows), dtype=np.int32)
    few = _marks(own[rows], reads[rows], place[parent[rows]])
    del place
    marks = HostMarks(
        np.full(len(parent), NO_CAUSE, np.uint8),
        np.arange(len(parent), dtype=np.int32),
        np.zeros(len(parent), np.bool_),
    )
    marks.cause[rows], marks.culprit[rows], marks.whole[rows] = few.cause, rows[few.culprit], few.whole
    # Overhead is recorded on no thread: it has no events around it.
    aside = np.flatnonzero(timeline.events["thread"].is_null().to_numpy() & (own != NO_CAUSE))
    marks.cause[aside] = own[aside]
    return marks


def _marks(own: NDArray[np.uint8], reads: NDArray[np.bool_], parent: NDArray[np.int32]) -> HostMarks:
    whole = np.isin(own, [CODES[cause] for cause in WHOLE])
    nearest = nesting.nearest_marked(parent, own != NO_CAUSE)
    chosen = nearest.copy()
    for marked in (reads, whole):
        outermost = _outermost(parent, marked)
        chosen = np.where(outermost >= 0, outermost, chosen)
        if marked is whole:
            in_whole = outermost >= 0
    interrupts = np.isin(own, [CODES[cause] for cause in WITHIN_ALL])
    chosen = np.where((nearest >= 0) & interrupts[np.maximum(nearest, 0)], nearest, chosen)
    itself = np.arange(len(parent), dtype=np.int32)
    return HostMarks(
        cause=np.where(chosen >= 0, own[np.maximum(chosen, 0)], NO_CAUSE).astype(np.uint8),
        culprit=np.where(chosen >= 0, chosen, itself).astype(np.int32),
        whole=in_whole,
    )


def waiting_calls(timeline: Timeline) -> NDArray[np.int64]:
    """Ids of the outermost events that wait for a device or read a value from it, ascending.

    Waits inside of data loading or of a compilation are part of these.
    """
    own, reads = _own_causes(timeline)
    parent = timeline.events["parent_id"].cast(pl.Int32).fill_null(nesting.NO_PARENT).to_numpy()
    rows = np.flatnonzero(np.isin(own, [CODES[Cause.SYNC], CODES[Cause.COPY_TO_HOST]]))
    hidden = reads | np.isin(own, [CODES[cause] for cause in WHOLE])
    # Few events wait, so climbing from each is cheaper than looking at all events.
    around, climbing = parent[rows].copy(), np.arange(len(rows))
    inside = np.zeros(len(rows), np.bool_)
    while len(climbing):
        climbing = climbing[around[climbing] >= 0]
        inside[climbing] |= hidden[around[climbing]]
        around[climbing] = parent[around[climbing]]
        climbing = climbing[~inside[climbing]]
    return rows[~inside].astype(np.int64)


def _outermost(parent: NDArray[np.int32], marked: NDArray[np.bool_]) -> NDArray[np.int32]:
    """For each event the outermost marked one that is it or encloses it; -1 if none does."""
    if not marked.any():
        return np.full(len(parent), nesting.NO_PARENT, np.int32)
    nearest = nesting.nearest_marked(parent, marked)
    # From one marked event to the next around it: few are marked, and fewer lie within each other.
    top = np.arange(len(parent), dtype=np.int32)
    climbing = np.flatnonzero(marked)
    around = np.where(parent[climbing] >= 0, nearest[parent[climbing]], nesting.NO_PARENT)
    while (inside := around >= 0).any():
        climbing, around = climbing[inside], around[inside]
        top[climbing] = around
        around = np.where(parent[around] >= 0, nearest[parent[around]], nesting.NO_PARENT)
    return np.where(nearest >= 0, top[nearest], np.int32(nesting.NO_PARENT))


def _own_causes(timeline: Timeline) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Cause of each event by its own kind and name, and which events read a value to Python."""
    events = timeline.events
    cause = np.full(events.height, NO_CAUSE, np.uint8)
    reads = np.zeros(events.height, np.bool_)
    hosted = events["thread"].is_not_null().to_numpy()
    kinds = events["kind"].to_physical().to_numpy()
    duration = events["dur_ns"].to_numpy()
    codes = events["name"].to_physical().to_numpy()
    for kind in schema.HOST_KINDS:
        # Names first: most kinds have none that matters, and then their events need not be looked at.
        distinct = (
            events.select("kind", "name").filter(pl.col("kind") == kind)["name"].unique()
            if kind == "overhead"
            else timeline.host_names((kind,))
        )
        if not len(distinct):
            continue
        numbers, texts = distinct.to_physical().to_numpy(), distinct.cast(pl.String)
        table = np.full(int(numbers.max(initial=0)) + 1, NO_CAUSE, np.uint8)
        least = np.zeros(len(table), np.int64)
        for row in reversed([row for row in HOST_NAMES if kind in row.kinds]):
            matching = numbers[texts.str.contains(row.pattern).to_numpy()]
            table[matching], least[matching] = CODES[row.cause], row.least_ns
        reading = np.zeros(len(table), np.bool_)
        if kind == "op":
            reading[numbers[texts.str.contains(READS).to_numpy()]] = True
        if (table == NO_CAUSE).all() and not reading.any():
            continue
        of_kind = np.flatnonzero((kinds == schema.KINDS.index(kind)) & (hosted | (kind == "overhead")))
        names = codes[of_kind]
        cause[of_kind] = np.where(duration[of_kind] >= least[names], table[names], NO_CAUSE)
        reads[of_kind] = reading[names]
    for direction, copy in ((TO_HOST, Cause.COPY_TO_HOST), (TO_DEVICE, Cause.COPY_TO_DEVICE)):
        calls = blocking_copies(timeline, direction).to_numpy()
        cause[calls[duration[calls] >= _COPY_NS]] = CODES[copy]
    return cause, reads


def _mark_host_copies(timeline: Timeline, cause: NDArray[np.uint8]) -> None:
    """Give their cause to copies that a host thread recorded: that thread was held by them."""
    found = host_copies(timeline).filter(pl.col("end_ns") - pl.col("start_ns") >= _COPY_NS)
    for towards, copy in ((True, Cause.COPY_TO_DEVICE), (False, Cause.COPY_TO_HOST)):
        cause[found.filter(pl.col("to_device") == towards)["id"].to_numpy()] = CODES[copy]
