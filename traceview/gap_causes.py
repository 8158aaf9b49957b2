"""Why idle stretches were idle: cut among causes by what the thread did that launched the work that ended each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from traceview.copy_holds import put_down_to_copies
from traceview.gap_pieces import LONG_QUEUE, NO_HOST, NO_LAUNCH, PEERS, SILENT, Pieces, joined, run_lengths
from traceview.host_marks import CODES as _CODE
from traceview.host_marks import NO_CAUSE as _ANY
from traceview.idle_work import Coming, Work
from traceview.knowledge.idle_causes import Cause
from traceview.launching_threads import HostTime
from traceview.waits import waited

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from numpy.typing import NDArray

    from traceview.intervals import IntervalSet

PACE_NS: Final = 100_000
"""Up to here the time between two ops is the pace of launching; beyond it the host was busy with something else."""

SLOW_NS: Final = 1_000_000
"""Beyond this a stretch without a launch is no pace of launching, even if it is made of ops."""


def coming_work(known: Sequence[Work], which: NDArray[np.int64], moments: NDArray[np.int64]) -> Coming:
    """What comes next on the device of each moment; ``which`` ascends."""
    bounds = np.searchsorted(which, np.arange(len(known) + 1))
    parts = [
        work.after(moments[bounds[place] : bounds[place + 1]])
        for place, work in enumerate(known)
        if bounds[place] < bounds[place + 1]
    ]
    return Coming(*(np.concatenate([getattr(part, name) for part in parts]) for name in Coming.__slots__))


def _cut_by_work(
    pieces: Pieces, which: NDArray[np.int64], covers: Sequence[IntervalSet]
) -> tuple[Pieces, NDArray[np.int64]]:
    """Cut the pieces of each device at a cover of its own; see :meth:`Pieces.cut`."""
    if not any(len(starts) for starts, _ in covers):
        return pieces, np.full(len(pieces.row), -1, np.int64)
    bounds = np.searchsorted(which[pieces.row], np.arange(len(covers) + 1))
    parts = [
        pieces.where(np.arange(first, stop)).cut(cover)
        for cover, first, stop in zip(covers, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        if first < stop
    ]
    if not parts:
        return pieces, np.full(0, -1, np.int64)
    return joined([part for part, _ in parts]), np.concatenate([label for _, label in parts])


def decided_pieces(
    host: HostTime,
    blocking: pl.DataFrame,
    known: Sequence[Work],
    own: pl.DataFrame,
    which: NDArray[np.int64],
    *,
    charge_host_work: Sequence[bool],
) -> list[Pieces]:
    """The pieces of idle stretches, each with its cause; once for each way to charge waits.

    Args:
        host: What the host did.
        blocking: Its waits.
        known: The work of each device.
        own: The stretches, device by device.
        which: Place of the work of each among the known.
        charge_host_work: As for :func:`traceview.gaps.causes`; the cut is the same and is made once.
    """
    gap_starts, gap_ends = own["start_ns"].to_numpy(), own["end_ns"].to_numpy()
    coming = coming_work(known, which, gap_ends)
    pieces = Pieces.undecided(np.arange(own.height), gap_starts, gap_ends)
    pieces, inside = _cut_by_work(pieces, which, [work.silent for work in known])
    pieces.say(inside >= 0, Cause.UNRELIABLE, SILENT)
    decided = pieces.where(pieces.cause != _ANY)
    pieces, inside = _cut_by_work(pieces.where(pieces.cause == _ANY), which, [work.waiting for work in known])
    pieces.say(inside >= 0, Cause.DEVICE_WAIT)
    pieces, inside = pieces.cut(host.overhead.cover)
    told = (inside >= 0) & (pieces.cause == _ANY)
    pieces.cause[told] = host.overhead.cause[inside[told]]
    pieces.culprit[told] = host.overhead.event[inside[told]]
    pieces, inside = _cut_by_work(pieces, which, [work.programs for work in known])
    pieces.say((inside >= 0) & (pieces.cause == _ANY), Cause.QUEUED)

    # Before the end of the launch call the thread that made it tells; afterwards the launch itself does.
    launched, returned, thread = (
        coming.launched_ns[pieces.row],
        coming.returned_ns[pieces.row],
        coming.thread[pieces.row],
    )
    orphan = coming.orphan[pieces.row] & (pieces.cause == _ANY)
    pieces.say(orphan, Cause.UNKNOWN, NO_LAUNCH)
    nobody = (thread < 0) & (pieces.cause == _ANY)
    pieces.say(nobody, Cause.UNKNOWN, NO_HOST)
    open_ = pieces.cause == _ANY
    decided = joined([decided, pieces.where(~open_)])
    pieces, launched, returned = pieces.where(open_), launched[open_], returned[open_]
    everything = np.arange(len(pieces.row))
    before, after = pieces.where(everything), pieces.where(everything)
    before.ends = np.minimum(pieces.ends, returned)
    after.starts = np.maximum(pieces.starts, returned)
    in_time = launched < gap_starts[after.row]
    after.say(~in_time, Cause.LAUNCH)
    after.say(in_time, Cause.QUEUED)
    long = after.ends - after.starts > PACE_NS
    after.say(long & coming.collective[after.row], Cause.COLLECTIVE, PEERS)
    after.say(long & ~coming.collective[after.row], Cause.UNKNOWN, LONG_QUEUE)
    after.culprit = np.where(after.cause == _CODE[Cause.LAUNCH], coming.launch_id[after.row], -1)
    before = before.where(before.ends > before.starts)
    after = after.where(after.ends > after.starts)
    before = _host_causes(host, before, coming.thread, coming.launch_id)
    hosted = put_down_to_copies(host, joined([before, after]), coming.thread, gap_ends)
    pieces = joined([decided, hosted])
    if known[0].device is None:
        return [pieces for _ in charge_host_work]
    past = waited(blocking, gap_starts, coming.launched_ns, coming.thread)
    culprit = np.where(past.wait_id >= 0, host.culprit[np.maximum(past.wait_id, 0)], -1)
    ways = [[Cause.LAUNCH, Cause.HOST_WORK] if one else [Cause.LAUNCH] for one in charge_host_work]
    return [_charge_waits(pieces, past.ns, culprit, [_CODE[cause] for cause in way]) for way in ways]


def _host_causes(host: HostTime, pieces: Pieces, threads: NDArray[np.int64], launch_id: NDArray[np.int64]) -> Pieces:
    """Decide pieces by what their thread did; where it did nothing of note, by what other launching threads did."""
    parts = []
    for thread in np.unique(threads[pieces.row]).tolist():
        own = _by_segments(host, pieces.where(threads[pieces.row] == thread), thread)
        for other in host.helpers(thread):
            passive = own.cause == _ANY
            if not passive.any():
                break
            parts.append(own.where(~passive))
            own = _by_segments(host, own.where(passive), other, keep_idle=True)
        parts.append(own)
    if not parts:
        return pieces
    whole = joined(parts)
    # What is still open is Python or nothing. No launch returns inside an idle stretch, so a long one is not the pace
    # of launching, whatever ops it is made of.
    for generic, least_ns in (
        (whole.cause == _ANY, PACE_NS),
        (np.isin(whole.cause, (_ANY, _CODE[Cause.LAUNCH])), SLOW_NS),
    ):
        long = generic & (run_lengths(whole, generic) > least_ns)
        whole.say(long, Cause.HOST_WORK)
    whole.say(whole.cause == _ANY, Cause.LAUNCH)
    working = np.flatnonzero(whole.cause == _CODE[Cause.HOST_WORK])
    whole.culprit[working] = host.outermost_op(whole.culprit[working])
    launching = whole.cause == _CODE[Cause.LAUNCH]
    whole.culprit[launching] = launch_id[whole.row[launching]]
    return whole


def _by_segments(host: HostTime, pieces: Pieces, thread: int, *, keep_idle: bool = False) -> Pieces:
    """Cut pieces at the segments of a thread and decide those in which it did something that has a cause.

    ``keep_idle`` leaves the culprit of pieces alone in which this thread does nothing of note either, if they have one.
    """
    segments = host.segments(thread)
    if segments is None:
        return pieces
    cut, label = pieces.cut(segments.cover)
    event = np.where(label >= 0, segments.event[np.maximum(label, 0)] if len(segments.event) else -1, -1)
    told = np.where(event >= 0, host.cause[np.maximum(event, 0)], _ANY)
    culprit = np.where(event >= 0, host.culprit[np.maximum(event, 0)], -1)
    active = (event >= 0) & host.active[np.maximum(event, 0)]
    # An op or a call that keeps the thread to itself for long is more than one step of launching.
    kind = host.kind_of(np.maximum(event, 0))
    long = active & (told == _ANY) & (cut.ends - cut.starts > PACE_NS)
    told = np.where(active & (told == _ANY), _CODE[Cause.LAUNCH], told)
    told = np.where(long, np.where(kind == HostTime.API, _CODE[Cause.SLOW_CALL], _CODE[Cause.HOST_WORK]), told)
    decided = told != _ANY
    cut.cause = np.where(decided, told, cut.cause).astype(np.uint8)
    cut.culprit = np.where(decided | (not keep_idle) | (cut.culprit < 0), culprit, cut.culprit)
    return cut


def _charge_waits(
    pieces: Pieces, waited_ns: NDArray[np.int64], wait_id: NDArray[np.int64], charged: Sequence[int]
) -> Pieces:
    """Charge launching to the wait that drained the queue, as far as the host had waited in it."""
    waiting = np.isin(pieces.cause, [_CODE[Cause.SYNC], _CODE[Cause.COPY_TO_HOST]])
    lengths = pieces.ends - pieces.starts
    already = np.bincount(pieces.row, weights=np.where(waiting, lengths, 0), minlength=len(waited_ns)).astype(np.int64)
    budget = np.maximum(waited_ns - already, 0)
    launching = np.flatnonzero(np.isin(pieces.cause, charged) & (budget[pieces.row] > 0))
    if not len(launching):
        return pieces
    row = pieces.row[launching]
    done = np.cumsum(lengths[launching])
    first = np.concatenate(([True], row[1:] != row[:-1]))
    before_row = np.maximum.accumulate(np.where(first, done - lengths[launching], 0))
    taken_before = done - lengths[launching] - before_row
    take = np.clip(budget[row] - taken_before, 0, lengths[launching])
    rest = pieces.where(launching)
    pieces = pieces.copy()
    pieces.ends[launching] = pieces.starts[launching] + take
    pieces.cause[launching] = _CODE[Cause.SYNC]
    pieces.culprit[launching] = wait_id[row]
    rest.starts = rest.starts + take
    whole = joined([pieces, rest])
    return whole.where(whole.ends > whole.starts)
