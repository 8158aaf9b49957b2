"""Why idle stretches were idle: cut among causes by what the thread did that launched the work that ended each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceview.copy_holds import put_down_to_copies
from traceview.gap_pieces import (
    LONG_QUEUE,
    NO_HOST,
    NO_LAUNCH,
    PEERS,
    SILENT,
    Pieces,
    joined,
    run_lengths,
    run_together,
    together,
)
from traceview.host_marks import CODES as _CODE
from traceview.host_marks import NO_CAUSE as _ANY
from traceview.host_tiles import PACE_NS, SLOW_NS, Tiles, tiles
from traceview.idle_work import Coming, Work
from traceview.knowledge.idle_causes import Cause
from traceview.launching_threads import HostTime
from traceview.waits import waited

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from numpy.typing import NDArray

    from traceview.intervals import IntervalSet


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
    if not len(pieces.row):
        return pieces
    thread = threads[pieces.row]
    order = np.argsort(thread, kind="stable")
    bounds = np.flatnonzero(np.concatenate(([True], np.diff(thread[order]) != 0, [True])))
    cut = [
        _by_tiles(host, pieces.where(order[first:stop]), tiles(host, int(thread[order[first]])))
        for first, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]
    turn, pace = (np.concatenate([one[at] for one in cut]) for at in (1, 2))
    whole = together([part for part, _, _ in cut])
    in_order = np.lexsort((whole.starts, whole.row))
    whole, turn, pace = whole.where(in_order), turn[in_order], pace[in_order]
    # What is still open is Python or nothing. Where no launch returns, a long stretch is not the pace of launching,
    # whatever ops it is made of.
    passive = whole.cause == _ANY
    generic = np.isin(whole.cause, (_ANY, _CODE[Cause.LAUNCH])) & ~pace
    long = passive & (run_lengths(whole, passive) > PACE_NS)
    long |= generic & (run_lengths(whole, generic, turn) > SLOW_NS)
    whole.say(long, Cause.HOST_WORK)
    whole.say(whole.cause == _ANY, Cause.LAUNCH)
    working = np.flatnonzero(whole.cause == _CODE[Cause.HOST_WORK])
    whole.culprit[working] = host.outermost_op(whole.culprit[working])
    launching = whole.cause == _CODE[Cause.LAUNCH]
    whole.culprit[launching] = launch_id[whole.row[launching]]
    return run_together(whole)


def _by_tiles(host: HostTime, pieces: Pieces, told: Tiles) -> tuple[Pieces, NDArray[np.int64], NDArray[np.bool_]]:
    """Pieces cut at what a thread did, with its causes; and of each its turn and whether it is surely launching."""
    cut, at = pieces.cut(told.cover)
    event, cause, pace = told.event[at], told.cause[at], told.pace[at]
    # An op or a call that keeps the thread to itself for long is more than one step of launching.
    launching = (told.active[at] & (cause == _ANY)) | pace
    long = launching & ~pace & (cut.ends - cut.starts > PACE_NS)
    kind = host.kind_of(np.maximum(event, 0))
    cause = np.where(launching, _CODE[Cause.LAUNCH], cause)
    cause = np.where(long, np.where(kind == HostTime.API, _CODE[Cause.SLOW_CALL], _CODE[Cause.HOST_WORK]), cause)
    cut.cause = cause.astype(np.uint8)
    cut.culprit = np.where(event >= 0, host.culprit[np.maximum(event, 0)], -1).astype(np.int64)
    return cut, told.turn[at], pace


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
    # The host was out of the wait by then: that it was late for it is an inference.
    pieces.inferred[launching] = True
    rest.starts = rest.starts + take
    whole = joined([pieces, rest])
    return whole.where(whole.ends > whole.starts)
