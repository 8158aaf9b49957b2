"""The vectorised call tree and the join of launches, against a plain look at every pair."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from authored_timeline import host, kernel, launch, op, timeline
from traceview import nesting

EVENTS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40), st.integers(0, 2)), max_size=40).map(
    lambda rows: sorted(rows, key=lambda row: (row[0], -row[1]))
)


def plain_parents(starts, ends, threads):
    result = []
    for i in range(len(starts)):
        enclosing = [
            j
            for j in range(i)
            if threads[j] == threads[i] and ends[j] > starts[i] and ends[j] + nesting.OVERHANG_NS >= ends[i]
        ]
        result.append(max(enclosing, default=nesting.NO_PARENT))
    return result


@given(EVENTS, st.sampled_from([1, 700]), st.sampled_from([0, 1, 8]))
def test_parents(rows, unit, climbs):
    starts = np.array([start for start, _, _ in rows], np.int64) * unit
    ends = starts + np.array([length for _, length, _ in rows], np.int64) * unit
    threads = np.array([thread for _, _, thread in rows], np.uint32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "_CLIMBS", climbs)
        assert nesting.parents(starts, ends, threads).tolist() == plain_parents(starts, ends, threads)


@given(EVENTS)
def test_outliving(rows):
    rows = sorted(rows, key=lambda row: (row[2], row[0], -row[1]))
    starts = np.array([start for start, _, _ in rows], np.int64) * 5000
    ends = starts + np.array([length for _, length, _ in rows], np.int64) * 5000
    threads = np.array([thread for _, _, thread in rows], np.uint32)
    parent = nesting.parents(starts, ends, threads)
    found = nesting.outliving(starts, ends, threads, parent, np.ones(len(rows), bool)).tolist()
    assert found == sorted(set(found))
    for i in range(len(rows)):
        outlives = i in found
        crossed = [
            j for j in range(i) if threads[j] == threads[i] and starts[i] < ends[j] < ends[i] - nesting.OVERHANG_NS
        ]
        # What lies between the event and its parent counts; an ancestor that is crossed higher up may be hidden by it.
        if outlives:
            assert crossed
        if crossed and max(crossed) > parent[i]:
            assert outlives


@pytest.mark.parametrize("step", [1, 10**12])
def test_launches_by_table_and_by_join(step):
    """Correlation numbers close together are looked up, numbers far apart are joined."""
    events = []
    for number in range(1, 30):
        for process in (0, 1):
            at = 10 * number + process
            events.append(launch(at, number * step, thread=process, process=process))
            events.append(kernel(f"k{process}", at + 2, at + 3, number * step, device=process, process=process))
    events.append(kernel("unknown", 400, 401, 31 * step, process=0))
    events.append(kernel("stranger", 402, 403, step, process=5))
    trace = timeline(*events)
    work = trace.device_work
    calls = trace.events[work["launch_id"].fill_null(0)]
    linked = work["launch_id"].is_not_null()
    assert work.filter(~linked)["name"].cast(pl.String).to_list() == ["unknown", "stranger"]
    assert (work["process"] == calls["process"]).filter(linked).all()
    assert (work["correlation"] == calls["correlation"]).filter(linked).all()


def test_a_range_that_outlives_an_op_hides_it_from_nobody():
    trace = timeline(
        op("aten::mm", 0, 10),
        host("annotation", "asynchronous", 5, 50),
        launch(6, 1),
        launch(20, 2),
        kernel("inside", 30, 31, 1),
        kernel("outside", 32, 33, 2),
    )
    ops = dict(trace.device_work.select(pl.col("name").cast(pl.String), "op_id").rows())
    assert ops == {"inside": 0, "outside": None}
