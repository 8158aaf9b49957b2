"""Every nanosecond of a step goes somewhere, once. Times are in microseconds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from authored_timeline import host, kernel, launch, op, timeline
from traceview import intervals
from traceview.accounting import device_times, process_times
from traceview.partition import partition
from traceview.stages import assign_stages
from traceview.steps import find_steps


def account(*events, **more):
    linked = timeline(*events)
    return device_times(linked, find_steps(linked).steady, **more)


def step(start, end, number=0):
    return host("annotation", f"ProfilerStep#{number}", start, end)


def test_parts_by_precedence():
    """
    step      |0                                   100|
    compute      |10====30|                              20
    comm.             |20======50|                       20 exposed, 10 hidden
    copy                    |40======60|                 10 exposed, 10 hidden
    wait                           |55=====70|           10
    sync                        |50============90|       never counts
    """
    [one] = account(
        step(0, 100), launch(1, 1), kernel("gemm", 10, 30, 1), kernel("nccl", 20, 50, kind="collective", stream=8),
        kernel("Memcpy HtoD", 40, 60, kind="memcpy", stream=9), kernel("async", 55, 70, kind="async_wait", stream=10),
        kernel("Event Sync", 50, 90, kind="sync"),
    )  # fmt: skip
    assert dict(one.parts) == {
        "compute": 20_000, "collective (exposed)": 20_000, "copy (exposed)": 10_000, "async wait": 10_000,
        "idle": 40_000, "unattributed": 0,
    }  # fmt: skip
    assert (one.wall_ns, one.busy_ns, one.hidden_collective_ns, one.hidden_copy_ns) == (100_000, 50_000, 10_000, 10_000)


def test_causes_of_idle_time_keep_the_sum():
    def split(idle):
        parts = [
            ("data", (np.array([0, 30_000]), np.array([20_000, 50_000]))),
            ("sync", (np.array([40_000]), np.array([60_000]))),
        ]
        return dict.fromkeys(idle, parts)

    [one] = account(step(0, 100), launch(1, 1), kernel("a", 10, 30, 1), split_idle=split)
    assert one.idle_by_cause == {"data": 30_000, "sync": 10_000}
    assert (one.idle_ns, one.unattributed_ns) == (40_000, 40_000)
    assert sum(ns for _, ns in one.parts) == one.wall_ns == 100_000


def test_the_host_fills_what_the_device_leaves():
    linked = timeline(
        step(0, 100), host("annotation", "enumerate(DataLoader)#_Iter.__next__", 0, 30), op("aten::mm", 25, 60),
        launch(40, 1), kernel("a", 50, 70, 1), host("annotation", "nccl:all_reduce", 70, 80),
    )  # fmt: skip
    [one] = process_times(linked, find_steps(linked).steady)
    assert one.parts == {
        "kernel": 20_000, "memcpy": 0, "memset": 0, "communication": 0, "runtime": 1_000, "data_loading": 30_000,
        "cpu": 19_000, "other": 30_000,
    }  # fmt: skip
    assert sum(one.parts.values()) == one.wall_ns


WORK = st.lists(
    st.tuples(
        st.sampled_from(["kernel", "collective", "memcpy", "memset", "async_wait", "sync"]),
        st.integers(0, 200), st.integers(0, 60), st.integers(0, 2), st.integers(0, 3),
    ),
    max_size=20,
)  # fmt: skip


@given(work=WORK, ends=st.lists(st.integers(1, 60), min_size=1, max_size=4))
def test_whatever_overlaps_the_parts_add_up(work, ends):
    """Random work on two devices and three streams, launched in random stages of random steps."""
    marks, at = [], 0
    for number, length in enumerate(ends):
        half = at + length // 2
        marks += [
            step(at, at + length, number),
            host("annotation", "first", at, half),
            host("annotation", "second", half, at + length),
        ]
        at += length
    events = []
    for number, (kind, start, length, stream, where) in enumerate(work):
        events.append(launch(at * where / 4, number))
        events.append(kernel(f"k{number}", start, start + length, number, kind=kind, stream=stream, device=number % 2))
    linked = timeline(*marks, *events)
    steps = find_steps(linked).steady
    for one in device_times(linked, steps):
        assert sum(ns for _, ns in one.parts) == one.wall_ns
        assert min(ns for _, ns in one.parts) >= 0
    for one in process_times(linked, steps):
        assert sum(one.parts.values()) == one.wall_ns
    cut = partition(assign_stages(linked), steps)
    assert (cut.busy.sum(axis=0) + cut.idle.sum(axis=0) == cut.walls).all()
    assert (cut.busy >= 0).all()
    assert (cut.idle >= 0).all()
    # What is busy by stage is what is busy by device.
    assert cut.busy.sum() == sum(one.busy_ns for one in device_times(linked, steps))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=12))
def test_exclusive_pieces_are_the_union(pairs):
    pairs = sorted(pairs)
    starts = np.array([start for start, _ in pairs], np.int64)
    ends = starts + np.array([length for _, length in pairs], np.int64)
    pieces = intervals.exclusive(starts, ends)
    assert (pieces[1] >= pieces[0]).all()
    assert int((pieces[1] - pieces[0]).sum()) == intervals.total(starts, ends)
    assert intervals.total(*pieces) == intervals.total(starts, ends)


def test_crossings():
    a = (np.array([0, 10, 20]), np.array([10, 20, 30]))
    b = (np.array([5, 25]), np.array([22, 26]))
    which_a, which_b, starts, ends = intervals.crossings(a, b)
    assert list(zip(which_a.tolist(), which_b.tolist(), starts.tolist(), ends.tolist(), strict=True)) == [
        (0, 0, 5, 10), (1, 0, 10, 20), (2, 0, 20, 22), (2, 1, 25, 26),
    ]  # fmt: skip
