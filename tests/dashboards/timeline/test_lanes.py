from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from authored_timeline import Event, host, kernel, launch, op, timeline
from traceview import load, schema
from traceview.dashboards.timeline import sublanes
from traceview.dashboards.timeline.lanes import DRAWN, NO_STAGE, NONE, ROWS, draw
from traceview.nesting import OVERHANG_NS, parents
from traceview.stages import assign_stages


def placed(drawing):
    """Name to (lane, row)."""
    return {
        drawing.names[name]: (drawing.lanes[lane].label, row)
        for name, lane, row in drawing.events.select("name", "lane", "row").iter_rows()
    }


def test_devices_come_before_threads_and_nested_calls_lie_below_each_other():
    drawing = draw(
        timeline(
            op("outer", 0, 100),
            op("inner", 10, 50),
            launch(12, 1),
            op("later", 60, 90),
            kernel("gemm", 20, 70, 1),
            host("op", "elsewhere", 5, 20, thread=3),
        )
    )
    assert [lane.label for lane in drawing.lanes] == ["GPU 0 · stream 7", "thread 1000", "thread 1003"]
    assert placed(drawing) == {
        "gemm": ("GPU 0 · stream 7", 0),
        "outer": ("thread 1000", 0),
        "inner": ("thread 1000", 1),
        "cudaLaunchKernel": ("thread 1000", 2),
        "later": ("thread 1000", 1),
        "elsewhere": ("thread 1003", 0),
    }
    DRAWN.validate(drawing.events)
    ROWS.validate(drawing.rows)


def test_work_that_overlaps_on_one_stream_moves_to_another_row():
    drawing = draw(timeline(kernel("a", 0, 10), kernel("b", 5, 20), kernel("c", 12, 15), kernel("d", 20, 30)))
    assert placed(drawing) == {
        "a": ("GPU 0 · stream 7", 0),
        "b": ("GPU 0 · stream 7", 1),
        "c": ("GPU 0 · stream 7", 0),
        "d": ("GPU 0 · stream 7", 0),
    }


def test_ranges_on_a_stream_have_a_lane_of_their_own():
    drawing = draw(timeline(kernel("step 1", 0, 40, kind="annotation"), kernel("a", 0, 10), kernel("b", 10, 20)))
    assert placed(drawing) == {
        "step 1": ("GPU 0 · stream 7 · ranges", 0),
        "a": ("GPU 0 · stream 7", 0),
        "b": ("GPU 0 · stream 7", 0),
    }


def test_processes_are_groups_and_what_has_no_process_comes_last():
    drawing = draw(
        timeline(
            Event("other", "recorder", 0, 90, process=None),
            op("first", 0, 10),
            op("second", 0, 10, thread=1, process=1),
            kernel("k0", 10, 20),
            kernel("k1", 10, 20, device=1, process=1),
        )
    )
    assert [group.label for group in drawing.groups] == [
        "process 100",
        "process 101",
        "authored.json · no process recorded",
    ]
    assert [(lane.key, lane.group) for lane in drawing.lanes] == [
        ("p0d0s7", 0),
        ("p0t0", 0),
        ("p1d1s7", 1),
        ("p1t1", 1),
        ("none", 2),
    ]


def test_counters_are_left_out_and_counted():
    drawing = draw(timeline(op("mm", 0, 10), host("counter", "[memory]", 5, 5), host("counter", "[memory]", 6, 6)))
    assert drawing.left_out == {"counter": 2}
    assert drawing.events.height == 1


def test_launch_and_op_are_kept_and_missing_ones_have_a_number_of_their_own():
    linked = timeline(op("mm", 0, 10), launch(2, 5), kernel("gemm", 20, 30, 5), kernel("orphan", 40, 50))
    drawing = draw(linked)
    rows = {drawing.names[row["name"]]: row for row in drawing.events.iter_rows(named=True)}
    ids = dict(zip(linked.events["name"].cast(pl.String), linked.events["id"], strict=True))
    assert (rows["gemm"]["launch"], rows["gemm"]["op"]) == (ids["cudaLaunchKernel"], ids["mm"])
    assert (rows["orphan"]["launch"], rows["orphan"]["op"], rows["orphan"]["stage"]) == (NONE, NONE, NO_STAGE)


def test_stages_are_numbered_by_device_time():
    linked = timeline(
        host("annotation", "short", 0, 10),
        launch(1, 1),
        host("annotation", "long", 10, 20),
        launch(11, 2),
        kernel("a", 2, 5, 1),
        kernel("b", 12, 40, 2),
    )
    staged = assign_stages(linked).timeline
    drawing = draw(staged)
    assert drawing.stages == ("long", "short")
    code = {drawing.names[row["name"]]: row["stage"] for row in drawing.events.iter_rows(named=True)}
    assert (code["a"], code["b"]) == (1, 0)


def test_a_timeline_without_events_draws_nothing():
    drawing = draw(timeline())
    assert (drawing.events.height, drawing.lanes, drawing.groups, drawing.end_ns) == (0, (), (), 0)


def test_a_real_layout_keeps_every_event_once(repository):
    for name in (
        "two-ranks",
        "two-ranks.nsys-authored.sqlite",
        "torch-cpu-attention.json",
        "xprof/jax-tpu-unfused.xprof-authored.xplane.pb",
    ):
        path = repository / "sample_traces" / name
        timeline_ = assign_stages(load(str(path))).timeline
        check(timeline_)


def test_real_traces_keep_every_event_once(corpus):
    for name in (
        "pytorch/owlv2-large-h100.json.gz",
        "nsys/mfu-2gpu-before.sqlite",
        "xprof/tpu-v6e-inference.xplane.pb",
    ):
        check(assign_stages(load(str(corpus / name))).timeline)


def check(of):
    drawing = draw(of)
    kept = of.events.filter(pl.col("kind") != "counter")
    assert sorted(drawing.events["id"]) == kept["id"].to_list()
    shown = drawing.events.sort("id")
    assert (shown["start"].cast(pl.Int64) == kept["start_ns"]).all()
    assert (shown["dur"].cast(pl.Int64) == kept["dur_ns"]).all()
    assert [schema.KINDS[code] for code in shown["kind"]] == kept["kind"].to_list()
    assert [drawing.names[code] for code in shown["name"]] == kept["name"].to_list()
    assert drawing.rows["count"].sum() == drawing.events.height
    for lane, row, first, count in drawing.rows.iter_rows():
        part = drawing.events[first : first + count]
        assert part["lane"].unique().to_list() == [lane]
        assert part["row"].unique().to_list() == [row]
        assert part["start"].is_sorted()
        reach = (part["start"] + part["dur"]).cum_max().shift(1)
        assert not (part["start"] + OVERHANG_NS < reach).any()


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 40)), max_size=60),
)
def test_rows_never_overlap_and_children_lie_below(events):
    events.sort(key=lambda event: (event[1], -event[2]))
    lanes = np.array([event[0] for event in events], np.int64)
    starts = np.array([event[1] for event in events], np.int64)
    ends = starts + np.array([event[2] for event in events], np.int64)
    above = parents(starts, ends, lanes.astype(np.uint32), overhang_ns=0).astype(np.int64)
    rows = sublanes.rows(lanes, starts, ends, above)
    assert (rows >= 0).all()
    for child, parent in enumerate(above):
        if parent >= 0:
            assert rows[child] > rows[parent]
    slack = np.where(above >= 0, OVERHANG_NS, 0)
    for key in {(lane, row) for lane, row in zip(lanes.tolist(), rows.tolist(), strict=True)}:
        reach = 0
        for at in np.flatnonzero((lanes == key[0]) & (rows == key[1])):
            assert starts[at] + slack[at] >= reach
            reach = max(reach, ends[at])


def test_a_circle_of_parents_does_not_hang():
    starts, ends = np.array([0, 0, 5]), np.array([10, 10, 6])
    assert sublanes.rows(np.zeros(3, np.int64), starts, ends, np.array([1, 0, -1])).tolist() == [0, 1, 2]
