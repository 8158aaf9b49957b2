"""Stretches of idle time while they are cut and given causes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from traceview import intervals
from traceview.host_marks import CODES, NO_CAUSE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from traceview.intervals import IntervalSet
    from traceview.knowledge.idle_causes import Cause


NO_LAUNCH: Final = "the launch of the work that ended it is not recorded"
NO_HOST: Final = "no host thread of this process is recorded"
PEERS: Final = "work that communicates was queued in time: it may have waited for another rank, or for work on this one"
LONG_QUEUE: Final = "the next work was launched long before it started; what it waited for is not recorded"
SILENT: Final = "a graph was replayed in this time whose kernels are not recorded"
REASONS: Final = (None, NO_LAUNCH, NO_HOST, LONG_QUEUE, SILENT, PEERS)
"""What can be said of a piece whose cause is not known or not reliable."""


@dataclass(slots=True)
class Pieces:
    """Pieces of idle stretches; all arrays have one entry per piece.

    Attributes:
        row: Row of the stretch that the piece is of.
        starts: Starts, ns.
        ends: Ends, ns.
        cause: Numbers of causes (:data:`traceview.host_marks.CODES`), or :data:`traceview.host_marks.NO_CAUSE`.
        culprit: Event ids, -1 for none.
        reason: Index into :data:`REASONS`.
        inferred: The thread that launched was not inside of the culprit: another one was, or it had been before.
    """

    row: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    cause: NDArray[np.uint8]
    culprit: NDArray[np.int64]
    reason: NDArray[np.uint8]
    inferred: NDArray[np.bool_]

    @classmethod
    def undecided(cls, row: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Pieces:
        """Pieces without a cause."""
        count = len(row)
        return cls(
            row,
            starts,
            ends,
            np.full(count, NO_CAUSE, np.uint8),
            np.full(count, -1, np.int64),
            np.zeros(count, np.uint8),
            np.zeros(count, np.bool_),
        )

    def where(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Pieces:
        """Some of the pieces, as a copy."""
        return Pieces(*(getattr(self, name)[chosen] for name in Pieces.__slots__))

    def copy(self) -> Pieces:
        """The same pieces, to be changed apart from these."""
        return Pieces(*(getattr(self, name).copy() for name in Pieces.__slots__))

    def cut(self, cover: IntervalSet) -> tuple[Pieces, NDArray[np.int64]]:
        """The same pieces cut at a cover, and the cover's interval that each lies in (-1: none)."""
        which, label, starts, ends = intervals.tiled(self.starts, self.ends, cover)
        cut = self.where(which)
        cut.starts, cut.ends = starts, ends
        return cut, label

    def say(self, chosen: NDArray[np.bool_], cause: Cause, reason: str | None = None) -> None:
        """Decide some of the pieces."""
        self.cause[chosen] = CODES[cause]
        self.reason[chosen] = REASONS.index(reason)


def together(parts: Iterable[Pieces]) -> Pieces:
    """All pieces of some parts, part by part."""
    parts = list(parts)
    return Pieces(*(np.concatenate([getattr(part, name) for part in parts]) for name in Pieces.__slots__))


def joined(parts: Iterable[Pieces]) -> Pieces:
    """All pieces of some parts, by stretch and start."""
    everything = together(parts)
    order = _order(everything)
    return everything if order is None else everything.where(order)


def _order(pieces: Pieces) -> NDArray[np.intp] | None:
    """The order by stretch and start; ``None`` if they are in it."""
    row, starts = pieces.row, pieces.starts
    if not len(row):
        return None
    span = int(starts.max()) - int(starts.min()) + 1
    if (int(row.max()) + 1) * span >= 1 << 62:
        return np.lexsort((starts, row))
    # One key, and a sort that is quick where sorted parts were put together.
    key = row * span + (starts - starts.min())
    return np.argsort(key, kind="stable") if (key[1:] < key[:-1]).any() else None


def run_lengths(
    pieces: Pieces, chosen: NDArray[np.bool_], turn: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Of each piece: how long the run of touching pieces is that are chosen, or not chosen, as it is, ns.

    Args:
        pieces: By stretch and start.
        chosen: Which of them.
        turn: If given, a run ends where this number changes.
    """
    if not len(chosen):
        return np.empty(0)
    goes_on = touching(pieces) & (chosen[1:] == chosen[:-1])
    if turn is not None:
        goes_on &= turn[1:] == turn[:-1]
    run = np.cumsum(np.concatenate(([False], ~goes_on)))
    lengths: NDArray[np.float64] = np.bincount(run, weights=pieces.ends - pieces.starts)[run]
    return lengths


def touching(pieces: Pieces) -> NDArray[np.bool_]:
    """Whether each piece but the first goes on where the one before it ends."""
    goes_on: NDArray[np.bool_] = (pieces.row[1:] == pieces.row[:-1]) & (pieces.starts[1:] == pieces.ends[:-1])
    return goes_on


def run_together(pieces: Pieces) -> Pieces:
    """Pieces that touch and say the same as one."""
    if not len(pieces.row):
        return pieces
    same = (
        touching(pieces)
        & (pieces.cause[1:] == pieces.cause[:-1])
        & (pieces.culprit[1:] == pieces.culprit[:-1])
        & (pieces.reason[1:] == pieces.reason[:-1])
        & (pieces.inferred[1:] == pieces.inferred[:-1])
    )
    first = np.concatenate(([True], ~same))
    merged = pieces.where(first)
    merged.ends = pieces.ends[np.append(np.flatnonzero(first)[1:] - 1, len(pieces.row) - 1)]
    return merged
