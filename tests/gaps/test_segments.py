"""The innermost event of a thread at each moment."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from authored_timeline import host, op, timeline
from traceview import intervals
from traceview.host_segments import host_segments


def seen(*events):
    built = timeline(*events)
    found = host_segments(built.events)
    return {
        thread: [
            (int(start) // 1000, int(end) // 1000, built.events["name"][int(event)])
            for start, end, event in zip(one.starts, one.ends, one.event, strict=True)
        ]
        for thread, one in found.items()
    }


def test_the_innermost_event_counts_and_its_parent_goes_on_after_it():
    assert seen(op("outer", 0, 100), op("inner", 20, 50), op("deep", 30, 50), op("next", 60, 80)) == {
        0: [
            (0, 20, "outer"), (20, 30, "inner"), (30, 50, "deep"), (50, 60, "outer"), (60, 80, "next"),
            (80, 100, "outer"),
        ]
    }  # fmt: skip


def test_where_nothing_is_open_there_is_no_segment():
    assert seen(op("a", 0, 10), op("b", 30, 40)) == {0: [(0, 10, "a"), (30, 40, "b")]}


def test_a_range_that_outlives_the_one_it_began_in_goes_on():
    assert seen(host("annotation", "first", 0, 10), host("annotation", "second", 5, 20)) == {
        0: [(0, 5, "first"), (5, 10, "second"), (10, 20, "second")]
    }


def test_threads_are_apart():
    assert seen(op("a", 0, 10), op("b", 5, 8, thread=1)) == {0: [(0, 10, "a")], 1: [(5, 8, "b")]}


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30), st.integers(0, 1)), max_size=12),
)
def test_segments_cover_what_the_events_cover_and_never_overlap(spans):
    events = [op(f"e{at}", start, start + length, thread=thread) for at, (start, length, thread) in enumerate(spans)]
    built = timeline(*events)
    for thread, one in host_segments(built.events).items():
        assert (one.starts[1:] >= one.ends[:-1]).all()
        own = built.events.filter(built.events["thread"] == thread)
        starts = own["start_ns"].to_numpy()
        everything = intervals.merge(starts, starts + own["dur_ns"].to_numpy())
        assert intervals.total(one.starts, one.ends) == intervals.total(*everything)
        # The event of a segment is open throughout.
        event_starts = built.events["start_ns"].to_numpy()[one.event]
        event_ends = event_starts + built.events["dur_ns"].to_numpy()[one.event]
        assert ((event_starts <= one.starts) & (event_ends >= one.ends)).all()


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=6),
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 10)), max_size=6),
)
def test_cutting_loses_nothing(spans, covers):
    starts = np.array([start for start, _ in spans], np.int64)
    ends = starts + np.array([length for _, length in spans], np.int64)
    low = np.array([start for start, _ in covers], np.int64)
    cover = intervals.merge(low, low + np.array([length for _, length in covers], np.int64))
    which, label, begin, end = intervals.tiled(starts, ends, cover)
    for at in range(len(starts)):
        own = which == at
        assert (end - begin)[own].sum() == ends[at] - starts[at]
        assert (begin[own][1:] == end[own][:-1]).all()
    inside = label >= 0
    covered = intervals.covered(begin, end, cover)
    assert (covered == np.where(inside, end - begin, 0)).all()
