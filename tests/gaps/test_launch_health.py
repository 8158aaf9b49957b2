"""How devices are fed, on authored launches."""

from __future__ import annotations

import pytest

from authored_timeline import kernel, launch, timeline
from traceview.launch_health import (
    LAUNCH_BOUND_REGIONS,
    LAUNCH_HEALTH,
    QUEUE_DEPTH,
    launch_bound_regions,
    launch_health,
    queue_depth,
)


def launched_one_by_one(count=20, pace=40.0):
    """Kernels of 10 us, each launched when the one before has long ended; 5 us pass from launch to start."""
    return [
        event
        for at in range(count)
        for event in (launch(pace * at, at), kernel("add", pace * at + 5, pace * at + 15, at))
    ]


def launched_ahead(count=20):
    """Kernels of 100 us, launched every 10 us."""
    return [
        event
        for at in range(count)
        for event in (launch(10 * at, at), kernel("gemm", 5 + 100 * at, 105 + 100 * at, at))
    ]


def test_a_host_that_is_slower_than_the_device():
    built = timeline(*launched_one_by_one())
    health = launch_health(built)
    LAUNCH_HEALTH.validate(health)
    (row,) = health.to_dicts()
    assert row["launch_bound"] is True
    assert (row["span_ns"], row["idle_ns"], row["launch_idle_ns"]) == (770_000, 570_000, 570_000)
    assert (row["latency_p50_ns"], row["latency_p99_ns"], row["pace_ns"]) == (5_000, 5_000, 40_000)
    assert (row["too_small"], row["too_small_share"]) == (20, 1.0)
    assert row["queue_max"] == 1
    # One of 40 us is spent between launch and start, five times eight.
    assert row["queue_empty_share"] == pytest.approx(1 - 100 / 775, abs=0.001)


def test_a_host_that_runs_ahead():
    (row,) = launch_health(timeline(*launched_ahead())).to_dicts()
    assert row["launch_bound"] is False
    assert (row["idle_ns"], row["latency_p50_ns"], row["too_small"]) == (0, None, 0)
    assert row["queue_max"] == 18


def test_the_queue_counts_what_was_launched_and_has_not_started():
    built = timeline(launch(0, 1), launch(2, 2), kernel("a", 10, 20, 1), kernel("b", 20, 30, 2))
    depth = queue_depth(built)
    QUEUE_DEPTH.validate(depth)
    assert depth.select("start_ns", "depth").rows() == [(0, 1), (2_000, 2), (10_000, 1), (20_000, 0)]


def test_a_kernel_that_seems_to_start_before_its_launch_makes_no_negative_queue():
    built = timeline(launch(10, 1), kernel("a", 9, 20, 1), kernel("b", 21, 30, 2), launch(15, 2))
    assert queue_depth(built)["depth"].min() == 0


def test_the_stretch_in_which_the_device_waits_for_each_launch():
    built = timeline(*launched_one_by_one(), launch(2_000, 99), kernel("late", 2_005, 2_015, 99))
    regions = launch_bound_regions(built)
    LAUNCH_BOUND_REGIONS.validate(regions)
    (row,) = regions.to_dicts()
    assert (row["start_ns"], row["end_ns"], row["work"], row["idle_ns"]) == (15_000, 775_000, 19, 570_000)


def test_no_launch_recorded_is_not_known():
    (row,) = launch_health(timeline(kernel("a", 0, 10), kernel("a", 50, 60))).to_dicts()
    assert (row["launch_bound"], row["latency_p50_ns"], row["launched"]) == (None, None, 0)
