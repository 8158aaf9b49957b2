"""Idle time in which a copy to the device was under way on a thread other than the one that launched.

On a TPU the run time moves inputs on threads of its own while the call of the program waits for them, or the program
itself waits in the queue. Such time is put down to the copy if three things hold: the copy ended before the next work
of the device began, so that the work can have waited for it; the thread that launched was in a call, in the queue, or
in nothing that is recorded, not in Python code of its own; and the device records no copies itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from traceview import intervals, schema
from traceview.gap_pieces import LONG_QUEUE, PEERS, REASONS, Pieces, joined
from traceview.host_marks import CODES
from traceview.knowledge.idle_causes import Cause
from traceview.waits import CLOCK_SLACK_NS

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from traceview.launching_threads import HostTime

_OPEN: Final = tuple(
    CODES[cause]
    for cause in (Cause.LAUNCH, Cause.HOST_WORK, Cause.SLOW_CALL, Cause.QUEUED, Cause.COLLECTIVE, Cause.UNKNOWN)
)
_OPEN_REASONS: Final = tuple(REASONS.index(reason) for reason in (None, LONG_QUEUE, PEERS))
_OWN_WORK: Final = schema.KINDS.index("python")


def put_down_to_copies(
    host: HostTime, pieces: Pieces, threads: NDArray[np.int64], gap_ends: NDArray[np.int64]
) -> Pieces:
    """The same pieces, cut where such a copy begins and ends, and with the copy as the cause between.

    Args:
        host: What the host did.
        pieces: Pieces of idle time, each with its cause.
        threads: Of each idle stretch the thread that launched the work after it.
        gap_ends: When that work began, ns.
    """
    if not host.copies.height or not len(pieces.row):
        return pieces
    culprit = np.maximum(pieces.culprit, 0)
    own_work = (pieces.culprit >= 0) & (host.kind_of(culprit) == _OWN_WORK)
    open_ = np.isin(pieces.cause, _OPEN) & np.isin(pieces.reason, _OPEN_REASONS) & ~own_work
    parts = [pieces.where(~open_)]
    left = pieces.where(open_)
    process = np.array([host.process_of(int(one)) for one in threads], np.int64)[left.row]
    for (key,), copies in host.copies.group_by("process", maintain_order=True):
        mine = process == key
        parts.append(_cut(left.where(mine), copies, gap_ends))
        left, process = left.where(~mine), process[~mine]
    return joined([*parts, left])


def _cut(pieces: Pieces, copies: pl.DataFrame, gap_ends: NDArray[np.int64]) -> Pieces:
    ends = copies["end_ns"].to_numpy()
    low, high = intervals.exclusive(copies["start_ns"].to_numpy(), ends)
    real = np.flatnonzero(high > low)
    cut, label = pieces.cut((low[real], high[real]))
    copy = real[np.maximum(label, 0)] if len(real) else label
    held = (label >= 0) & (ends[copy] <= gap_ends[cut.row] + CLOCK_SLACK_NS)
    cut.say(held, Cause.COPY_TO_DEVICE)
    cut.culprit[held] = copies["id"].to_numpy()[copy[held]]
    cut.inferred |= held
    return cut
