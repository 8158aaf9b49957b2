"""Device work by ranges, against a plain look at every pair of a range and a launch."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from authored_timeline import host, kernel, launch, timeline
from traceview.projection import PROJECTION, project


def brute(trace):
    rows = trace.events.rows(named=True)
    found = {}
    for one in rows:
        if one["kind"] != "annotation" or one["thread"] is None:
            continue
        for work in rows:
            if work["device"] is None or work["launch_id"] is None:
                continue
            call = rows[work["launch_id"]]
            inside = (
                one["start_ns"] <= call["start_ns"]
                and call["start_ns"] + call["dur_ns"] <= one["start_ns"] + one["dur_ns"]
            )
            if call["thread"] == one["thread"] and inside:
                found.setdefault((one["id"], work["device"]), []).append(
                    (work["start_ns"], work["start_ns"] + work["dur_ns"])
                )
    result = []
    for (key, device), spans in sorted(found.items()):
        covered = set()
        for start, end in spans:
            covered.update(range(start // 500, end // 500))
        result.append(
            (
                key,
                device,
                len(spans),
                min(s for s, _ in spans),
                max(e for _, e in spans),
                sum(e - s for s, e in spans),
                500 * len(covered),
            )
        )
    return result


half = st.integers(0, 60).map(lambda n: n / 2)


@st.composite
def traces(draw):
    events = []
    for number in range(draw(st.integers(0, 12))):
        at, thread = draw(half), draw(st.integers(0, 1))
        events.append(launch(at, number, thread=thread, process=0))
        for _ in range(draw(st.integers(0, 2))):
            start = at + 1 + draw(half)
            events.append(
                kernel(
                    "k",
                    start,
                    start + draw(half) + 0.5,
                    number,
                    device=draw(st.integers(0, 1)),
                    stream=draw(st.integers(0, 3)),
                )
            )
    for _ in range(draw(st.integers(0, 6))):
        start = draw(half)
        events.append(host("annotation", "r", start, start + draw(half), thread=draw(st.integers(0, 1)), process=0))
    # Calls inside calls: a runtime call and the driver call that it makes.
    if draw(st.booleans()):
        events.append(host("api", "cudaLaunchKernel", 3, 20, process=0, correlation=900))
        events.append(kernel("outer", 25, 30, 900))
    return events or [launch(0, 1)]


@given(traces())
def test_like_every_pair_of_range_and_launch(events):
    trace = timeline(*events)
    projected = project(trace)
    PROJECTION.validate(projected)
    assert projected.rows() == brute(trace)


def test_chosen_ranges_and_a_long_thread():
    events = []
    for number in range(1000):
        events += [launch(number * 4, number), kernel("k", 5000 - number, 5000 - number + 2.5, number)]
    events += [host("op", "aten::mm", 400, 3000), host("annotation", "all", 0, 9000)]
    trace = timeline(*events)
    chosen = trace.events.filter(pl.col("kind") == "op")["id"]
    assert project(trace, chosen).rows() == brute_of(trace, chosen)
    ((_, _, count, *_),) = project(trace).rows()
    assert count == 1000


def brute_of(trace, ids):
    as_ranges = trace.events.with_columns(
        kind=pl.when(pl.col("id").is_in(ids.implode()))
        .then(pl.lit("annotation", trace.events.schema["kind"]))
        .when(pl.col("kind") == "annotation")
        .then(pl.lit("other", trace.events.schema["kind"]))
        .otherwise("kind")
    )
    return brute(type("T", (), {"events": as_ranges})())


def test_nothing_to_project():
    assert project(timeline(launch(0, 1))).is_empty()
