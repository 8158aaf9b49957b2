from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from authored_timeline import host, kernel, launch, op, timeline
from traceview import load
from traceview.dashboards.timeline import inside
from traceview.dashboards.timeline.lanes import draw
from traceview.dashboards.timeline.payload import OTHERS, Area, Selection, payload, selection, stage_colours
from traceview.dashboards.views import timeline as view
from traceview.render.palette import STAGES
from traceview.stages import assign_stages

ALL = ("p0d0s7", "p0d0s8", "p0t0")


@pytest.fixture
def trace():
    return timeline(
        op("aten::mm", 0, 30, dims=[[8, 8]], dtypes=["float"]),
        launch(2, 1),
        launch(10, 2),
        kernel("gemm", 20, 60, 1),
        kernel("relu", 40, 80, 2, stream=8),
        kernel("gemm", 90, 100, None),
        host("sync", "cudaDeviceSynchronize", 50, 99),
        host("counter", "memory", 55, 55),
    )


def parts(frame):
    return [tuple(row) for row in frame.rows()]


def test_an_area_counts_what_lies_in_it_and_cuts_at_its_edges(trace):
    found = inside.inside(trace, draw(trace), Area(30_000, 95_000, ALL))
    assert (found.length_ns, found.events) == (65_000, 4)
    # 30 to 60 and 40 to 80 are 50 us together, and 90 to 95 are 5 more.
    assert found.busy.rows() == [(0, 55_000, 55_000 / 65_000)]
    assert parts(found.names) == [
        ("cudaDeviceSynchronize", 1, 45_000, 45_000, 49_000),
        ("relu", 1, 40_000, 40_000, 40_000),
        ("gemm", 2, 35_000, 35_000, 40_000),
    ]
    assert parts(found.kinds) == [("kernel", 3, 55_000, 75_000, 40_000), ("sync", 1, 45_000, 45_000, 49_000)]
    assert parts(found.stages) == [(None, 4, 65_000, 120_000, 49_000)]
    inside.PARTS.validate(found.names)
    inside.BUSY.validate(found.busy)


def test_only_the_chosen_lanes_count(trace):
    found = inside.inside(trace, draw(trace), Area(0, 100_000, ("p0d0s8",)))
    assert parts(found.names) == [("relu", 1, 40_000, 40_000, 40_000)]
    assert found.busy["busy_ns"].to_list() == [40_000]


def test_overlapping_events_of_a_lane_count_once_in_the_union():
    trace = timeline(kernel("a", 0, 10), kernel("a", 5, 20))
    found = inside.inside(trace, draw(trace), Area(0, 20_000, ALL))
    assert parts(found.names) == [("a", 2, 20_000, 25_000, 15_000)]


def test_an_empty_area_is_empty(trace):
    found = inside.inside(trace, draw(trace), Area(81_000, 89_000, ("p0d0s8",)))
    assert (found.events, found.names.height, found.busy.height) == (0, 0, 0)
    assert view.area_sentence(found, {}) == "0 events in 8.000 us."


def test_an_area_of_a_real_trace_is_as_busy_as_a_plain_count_says(corpus):
    trace = assign_stages(load(str(corpus / "nsys" / "mfu-2gpu-before.sqlite"))).timeline
    drawing = draw(trace)
    low, high = 100_000_000, 130_000_000
    found = inside.inside(trace, drawing, Area(low, high, tuple(lane.key for lane in drawing.lanes)))
    for device, busy, _ in found.busy.iter_rows():
        reach, total = low, 0
        for start, length in (
            trace.device_work.filter(pl.col("device") == device).select("start_ns", "dur_ns").iter_rows()
        ):
            begin, end = max(start, reach), min(start + length, high)
            if end > begin:
                total += end - begin
                reach = end
        assert busy == total
    assert found.busy.height == 2


def test_search_looks_at_all_names_whatever_the_case(trace):
    drawing = draw(trace)
    total, found = inside.search(trace, drawing, " GEMM ")
    inside.FOUND.validate(found)
    assert total == 2
    assert found.select("name", "start_ns", "lane").rows() == [
        ("gemm", 20_000, "GPU 0 · stream 7"),
        ("gemm", 90_000, "GPU 0 · stream 7"),
    ]
    assert inside.search(trace, drawing, "memory")[0] == 0
    assert inside.search(trace, drawing, "e", most=1)[0] == 7
    assert inside.search(trace, drawing, "e", most=1)[1].height == 1
    assert inside.search(trace, drawing, "  ")[0] == 0


def test_the_facts_of_an_event_are_exact(trace):
    ids = {
        (name, start): id_
        for id_, name, start in trace.events.select("id", pl.col("name").cast(pl.String), "start_ns").iter_rows()
    }
    facts = dict(inside.facts(trace, ids["gemm", 20_000]))
    assert facts == {
        "name": "gemm",
        "kind": "kernel",
        "start": "20,000 ns",
        "duration": "40,000 ns",
        "stream": "7",
        "correlation": "1",
        "launched by": f"cudaLaunchKernel  (event {ids['cudaLaunchKernel', 2_000]})",
        "after the launch returned": "17,000 ns",
        "asked for by": f"aten::mm  (event {ids['aten::mm', 0]})",
    }
    assert dict(inside.facts(trace, ids["aten::mm", 0]))["inputs, dims"] == "[[8, 8]]"
    assert inside.launched(trace, ids["cudaLaunchKernel", 2_000]) == [ids["gemm", 20_000]]
    assert inside.facts(trace, 999) == []


def test_rare_arguments_are_those_of_the_event():
    trace = timeline(op("a", 0, 1, details={"grid": 4, "Ev Idx": 9}), op("b", 2, 3, details={"grid": 7}))
    assert inside.arguments(trace, 0) == [("Ev Idx", "9"), ("grid", "4")]
    assert inside.arguments(trace, 1) == [("grid", "7")]


@pytest.mark.parametrize(
    "state",
    [
        None,
        [],
        {"trace": "another", "t0": 0, "t1": 5},
        {"trace": "t", "t0": "0", "t1": 5},
        {"trace": "t", "t0": None, "t1": 5},
        {"trace": "t", "t0": float("nan"), "t1": 5},
        {"trace": "t", "t0": 9, "t1": 5},
        {"trace": "t", "t0": True, "t1": 5},
    ],
)
def test_a_state_that_this_trace_cannot_have_is_dropped(trace, state):
    assert selection(state, draw(trace), "t") is None


def test_a_state_is_brought_into_the_trace(trace):
    told = {
        "trace": "t", "t0": -7, "t1": 1e30, "q": "x" * 9_000, "id": -3,
        "area": {"t0": 5, "t1": 10**15, "lanes": ["p0t0", "made up", 4, {}]},
    }  # fmt: skip
    assert selection(told, draw(trace), "t") == Selection(0, 100_000, "x" * 500, None, Area(5, 100_000, ("p0t0",)))
    assert selection({**told, "area": {"t0": 5, "t1": 5, "lanes": ["p0t0"]}}, draw(trace), "t").area is None
    assert selection({**told, "area": {"t0": 5, "t1": 9, "lanes": []}}, draw(trace), "t").area is None


def test_what_the_browser_gets_names_what_is_not_drawn(trace):
    data = payload(draw(trace), trace="t")
    assert data["note"] == "1 counter event has no length and no lane here."
    assert data["events"].columns == ["start", "dur", "name", "stage", "kind", "id", "launch", "op"]
    assert [text for _, text in data["legend"]] == ["kernel, XLA op, graph", "wait", "host op", "runtime call"]
    assert [lane["key"] for lane in data["lanes"]] == ["p0d0s7", "p0d0s8", "p0t0"]
    assert data["total"] == 7


def test_an_event_of_the_address_is_shown_with_what_is_around_it(trace):
    assert view.around(trace, 0) == Selection(0, 330_000, event=0)
    assert view.around(trace, 10**6) is None


def test_stages_keep_the_colour_that_they_have_elsewhere():
    stages = [f"s{i}" for i in range(len(STAGES) + 2)]
    colours = stage_colours(stages, {"s3": STAGES[0], "unseen": STAGES[5]})
    assert (colours["s3"], colours["s0"], colours["s1"]) == (STAGES[0], STAGES[1], STAGES[2])
    assert len({colours[stage] for stage in stages[: len(STAGES)]}) == len(STAGES)
    assert [colours[stage] for stage in stages[-2:]] == [OTHERS, OTHERS]


SPANS = st.lists(
    st.tuples(
        st.sampled_from(["gemm", "relu", "copy"]),
        st.integers(0, 90),
        st.integers(0, 40),
        st.integers(0, 1),
        st.sampled_from([7, 8]),
        st.booleans(),
    ),
    min_size=1,
    max_size=25,
)


@given(SPANS, st.integers(0, 80), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_at_least_one_ran_is_never_longer_than_the_area_and_equals_a_plain_count(spans, low, length):
    # Several devices, streams and the host have events of one name at the same time.
    trace = timeline(
        *(
            op(name, start, start + long)
            if on_host
            else kernel(name, start, start + long, device=device, stream=stream)
            for name, start, long, device, stream, on_host in spans
        )
    )
    drawing = draw(trace)
    end = max(low + length, 1)
    area = Area(low * 1_000, end * 1_000, tuple(lane.key for lane in drawing.lanes))
    found = inside.inside(trace, drawing, area)
    ran = {
        name: {
            at for one, start, long, *_ in spans if one == name for at in range(start, start + long) if low <= at < end
        }
        for name in {one for one, *_ in spans}
    }
    for frame in (found.names, found.kinds, found.stages):
        assert (frame["union_ns"] <= found.length_ns).all()
        assert (frame["union_ns"] <= frame["sum_ns"]).all()
    assert {row["value"]: row["union_ns"] for row in found.names.iter_rows(named=True) if row["union_ns"]} == {
        name: len(moments) * 1_000 for name, moments in ran.items() if moments
    }
    assert (found.busy["share"] <= 1).all()
    assert (view.parts_table(found.names, "name", found.length_ns)["of the area, %"] <= 100).all()
