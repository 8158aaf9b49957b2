"""What the host did for a launching thread at each moment, in as few stretches as idle time has to be cut at.

A thread that feeds many devices is looked at by each of them, so its time is put together once: what the thread did,
and, while it did nothing of note, what the other threads did that launch beside it. What can only be the pace of
launching, wherever it is cut, is one stretch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from traceview import intervals
from traceview.host_marks import NO_CAUSE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceview.intervals import IntervalSet
    from traceview.launching_threads import HostTime

PACE_NS: Final = 100_000
"""Up to here the time between two ops is the pace of launching; beyond it the host was busy with something else."""

SLOW_NS: Final = 1_000_000
"""Beyond this a stretch in which no launch returns is no pace of launching, even if it is made of ops."""

_FAR_NS: Final = 1 << 61
"""Farther from zero than any time of a trace; the distance of two such moments still fits into 64 bits."""


@dataclass(slots=True)
class Tiles:
    """Stretches of time, sorted and disjoint, that leave nothing out; one entry per stretch.

    Attributes:
        starts: Starts, ns.
        ends: Ends, ns.
        event: Innermost event that was open, of the thread or else of one beside it; -1 for none.
        cause: Number of the cause of what was going on, :data:`traceview.host_marks.NO_CAUSE` if it has none.
        active: An op, a call, or anything that has a cause was going on.
        turn: How many launches had returned by then: stretches of one turn have no launch between them.
        pace: Whatever part of it is looked at, it is the pace of launching.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    event: NDArray[np.int64]
    cause: NDArray[np.uint8]
    active: NDArray[np.bool_]
    turn: NDArray[np.int64]
    pace: NDArray[np.bool_]

    @property
    def cover(self) -> IntervalSet:
        """As an interval set; they touch."""
        return self.starts, self.ends


def tiles(host: HostTime, thread: int) -> Tiles:
    """The time of a launching thread.

    Args:
        host: What the host did.
        thread: Key into ``Timeline.threads``.
    """
    every = np.array([-_FAR_NS], np.int64), np.array([_FAR_NS], np.int64)
    starts, ends, event = _seen(host, thread, *every, np.full(1, -1, np.int64))
    helpers = host.helpers(thread)
    for other in helpers:
        passive = ~host.notable(event)
        if not passive.any():
            break
        added = _seen(host, other, starts[passive], ends[passive], event[passive])
        parts = [np.concatenate((old[~passive], new)) for old, new in zip((starts, ends, event), added, strict=True)]
        order = np.argsort(parts[0], kind="stable")
        starts, ends, event = (part[order] for part in parts)
    returns = np.sort(np.concatenate([host.returns(one) for one in (thread, *helpers)]))
    found = Tiles(
        starts=starts,
        ends=ends,
        event=event,
        cause=np.where(event >= 0, host.cause[np.maximum(event, 0)], NO_CAUSE).astype(np.uint8),
        active=(event >= 0) & host.active[np.maximum(event, 0)],
        turn=np.searchsorted(returns, starts, side="right"),
        pace=np.zeros(len(starts), np.bool_),
    )
    found.pace = _surely_pace(found)
    return _run_together(found)


def _seen(
    host: HostTime, thread: int, starts: NDArray[np.int64], ends: NDArray[np.int64], event: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Stretches cut at the events of a thread, with its event where it did something of note or none is known yet."""
    segments = host.segments(thread)
    if segments is None:
        return starts, ends, event
    which, label, low, high = intervals.tiled(starts, ends, segments.cover)
    own = np.where(label >= 0, segments.event[np.maximum(label, 0)] if len(segments.event) else -1, -1)
    before = event[which]
    return low, high, np.where(host.notable(own) | (before < 0), own, before).astype(np.int64)


def _surely_pace(found: Tiles) -> NDArray[np.bool_]:
    """Which stretches are the pace of launching whole, and so in every part: all limits hold for the whole."""
    lengths = found.ends - found.starts
    open_ = found.cause == NO_CAUSE
    silent = _run_lengths(lengths, open_ & ~found.active, np.zeros_like(found.turn))
    sure = np.where(found.active, lengths <= PACE_NS, silent <= PACE_NS)
    sure &= open_ & (_run_lengths(lengths, open_, found.turn) <= SLOW_NS)
    return sure


def _run_lengths(lengths: NDArray[np.int64], chosen: NDArray[np.bool_], turn: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of each stretch: how long the run of stretches of one turn is that are chosen, or not chosen, as it is, ns."""
    run = np.cumsum(np.concatenate(([False], (chosen[1:] != chosen[:-1]) | (turn[1:] != turn[:-1]))))
    total: NDArray[np.float64] = np.bincount(run, weights=lengths)[run]
    return total


def _run_together(found: Tiles) -> Tiles:
    first = np.concatenate(([True], ~(found.pace[1:] & found.pace[:-1])))
    last = np.append(np.flatnonzero(first)[1:] - 1, len(first) - 1)
    return Tiles(
        found.starts[first],
        found.ends[last],
        found.event[first],
        found.cause[first],
        found.active[first],
        found.turn[first],
        found.pace[first],
    )
