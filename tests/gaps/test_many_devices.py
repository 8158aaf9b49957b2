"""Idle time of many devices: what is worked out once for a launching thread says what a look at each stretch says."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest

from authored_timeline import host, kernel, launch, op, timeline
from traceview import gap_causes
from traceview.gap_pieces import joined, run_lengths
from traceview.gaps import causes, idle
from traceview.host_marks import CODES, NO_CAUSE
from traceview.host_tiles import PACE_NS, SLOW_NS, tiles
from traceview.knowledge.idle_causes import Cause
from traceview.launching_threads import HostTime


def stretch_by_stretch(turns):
    """The plain way: the pieces of each thread are cut at its events, then at those of the threads beside it."""

    def by_segments(host_time, pieces, thread, *, keep_idle=False):
        segments = host_time.segments(thread)
        if segments is None:
            return pieces
        cut, label = pieces.cut(segments.cover)
        event = np.where(label >= 0, segments.event[np.maximum(label, 0)] if len(segments.event) else -1, -1)
        told = np.where(event >= 0, host_time.cause[np.maximum(event, 0)], NO_CAUSE)
        culprit = np.where(event >= 0, host_time.culprit[np.maximum(event, 0)], -1)
        active = (event >= 0) & host_time.active[np.maximum(event, 0)]
        kind = host_time.kind_of(np.maximum(event, 0))
        long = active & (told == NO_CAUSE) & (cut.ends - cut.starts > PACE_NS)
        told = np.where(active & (told == NO_CAUSE), CODES[Cause.LAUNCH], told)
        slow = np.where(kind == HostTime.API, CODES[Cause.SLOW_CALL], CODES[Cause.HOST_WORK])
        told = np.where(long, slow, told)
        decided = told != NO_CAUSE
        cut.cause = np.where(decided, told, cut.cause).astype(np.uint8)
        cut.culprit = np.where(decided | (not keep_idle) | (cut.culprit < 0), culprit, cut.culprit)
        return cut

    def host_causes(host_time, pieces, threads, launch_id):
        parts = []
        for thread in np.unique(threads[pieces.row]).tolist():
            own = by_segments(host_time, pieces.where(threads[pieces.row] == thread), thread)
            for other in host_time.helpers(thread):
                passive = own.cause == NO_CAUSE
                parts.append(own.where(~passive))
                own = by_segments(host_time, own.where(passive), other, keep_idle=True)
            parts.append(own)
        if not parts:
            return pieces
        whole = joined(parts)
        turn = np.zeros(len(whole.row), np.int64)
        for thread in np.unique(threads[whole.row]).tolist():
            beside = [thread, *host_time.helpers(thread)]
            returned = np.sort(np.concatenate([host_time.returns(one) for one in beside]))
            mine = threads[whole.row] == thread
            turn[mine] = np.searchsorted(returned, whole.starts[mine], side="right") if turns else 0
        passive = whole.cause == NO_CAUSE
        generic = np.isin(whole.cause, (NO_CAUSE, CODES[Cause.LAUNCH]))
        long = passive & (run_lengths(whole, passive) > PACE_NS)
        long |= generic & (run_lengths(whole, generic, turn) > SLOW_NS)
        whole.say(long, Cause.HOST_WORK)
        whole.say(whole.cause == NO_CAUSE, Cause.LAUNCH)
        working = np.flatnonzero(whole.cause == CODES[Cause.HOST_WORK])
        whole.culprit[working] = host_time.outermost_op(whole.culprit[working])
        launching = whole.cause == CODES[Cause.LAUNCH]
        whole.culprit[launching] = launch_id[whole.row[launching]]
        return whole

    return host_causes


def program(seed, devices, threads):
    """A program whose threads call ops, wait, load data and launch to several devices, at random."""
    rng = random.Random(seed)  # noqa: S311 - made-up traces
    events = []
    free = dict.fromkeys(range(devices), 0.0)
    correlation = 0
    for thread in range(threads):
        now = rng.uniform(0, 200)
        for _ in range(40):
            now += rng.choice([0.5, 3, 30, 90, 150, 1200])
            length = rng.choice([2, 20, 80, 120, 400, 1500])
            match rng.randrange(7):
                case 0:
                    name = f"train.py({thread}): f{rng.randrange(3)}"
                    events.append(host("python", name, now, now + length, thread=thread))
                case 1:
                    events.append(host("sync", "cudaDeviceSynchronize", now, now + length, thread=thread))
                case 2:
                    events.append(host("api", "cudaFuncGetAttributes", now, now + length, thread=thread))
                case _:
                    correlation += 1
                    if rng.random() < 0.2:
                        device, start = rng.randrange(devices), now + length / 3
                        free[device] = max(free[device], start) + length / 3
                        events.append(kernel("copy", free[device] - 1, free[device], correlation, device=device))
                        until = max(now + length, free[device] + rng.choice([0.5, 40]))
                        events.append(host("api", "cudaMemcpy", now, until, thread=thread, correlation=correlation))
                        length = until - now
                        now += length
                        continue
                    at = now + length / 2
                    device = rng.randrange(devices)
                    events.append(op(f"aten::op{rng.randrange(3)}", now, now + length, thread=thread))
                    events.append(launch(at, correlation, thread=thread))
                    start = max(free[device], at + rng.choice([2, 15, 300]))
                    free[device] = start + rng.choice([1, 10, 200])
                    events.append(kernel("k", start, free[device], correlation, device=device))
            now += length
    return timeline(*events)


@pytest.mark.parametrize(("devices", "threads"), [(1, 1), (3, 1), (4, 3)])
@pytest.mark.parametrize("seed", range(6))
def test_the_same_pieces_as_stretch_by_stretch(seed, devices, threads, monkeypatch):
    built = program(seed, devices, threads)
    stretches = idle(built)
    found = [causes(built, stretches, charge_host_work=one) for one in (False, True)]
    monkeypatch.setattr(gap_causes, "_host_causes", stretch_by_stretch(turns=True))
    plain = [causes(built, stretches, charge_host_work=one) for one in (False, True)]
    assert found[0].height > 30
    assert [one.rows() for one in found] == [one.rows() for one in plain]


def test_on_one_device_no_launch_returns_inside_an_idle_stretch(monkeypatch):
    built = program(7, 1, 1)
    stretches = idle(built)
    found = causes(built, stretches)
    monkeypatch.setattr(gap_causes, "_host_causes", stretch_by_stretch(turns=False))
    assert found.rows() == causes(built, stretches).rows()


def round_robin(devices, rounds):
    """One thread that launches an op to each device in turn."""
    events = []
    for at in range(devices * rounds):
        now = 10.0 * at
        events += [
            op("aten::mul", now, now + 9), launch(now + 1, at), kernel("k", now + 5, now + 45, at, device=at % devices)
        ]  # fmt: skip
    return timeline(*events)


def test_a_host_that_launches_to_other_devices_is_launching():
    built = round_robin(devices=200, rounds=4)
    pieces = causes(built, idle(built))
    assert pieces["cause"].cast(pl.String).unique().to_list() == ["launch"]


def test_a_thread_that_only_launches_is_one_piece_for_each_stretch():
    """Not one for each op that it called meanwhile: that is the product of devices and events."""
    built = round_robin(devices=50, rounds=3)
    stretches = idle(built)
    assert stretches.height == 100
    assert causes(built, stretches).height == 100
    host_time = HostTime(built, (stretches["start_ns"].to_numpy(), stretches["end_ns"].to_numpy()))
    assert len(tiles(host_time, 0).starts) < 10
