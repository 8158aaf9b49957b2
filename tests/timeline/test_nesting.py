"""The vectorised call tree against the obvious one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceview import nesting


def tree(spans: list[tuple[int, int]], threads: list[int] | None = None) -> list[int]:
    starts, ends = np.array([a for a, _ in spans], np.int64), np.array([b for _, b in spans], np.int64)
    return nesting.parents(starts, ends, np.array(threads or [0] * len(spans), np.uint32)).tolist()


def by_hand(spans: list[tuple[int, int]], threads: list[int]) -> list[int]:
    result = []
    for i, (start, end) in enumerate(spans):
        encloses = [
            j
            for j in range(i)
            if threads[j] == threads[i] and spans[j][1] > start and spans[j][1] + nesting.OVERHANG_NS >= end
        ]
        result.append(encloses[-1] if encloses else nesting.NO_PARENT)
    return result


def test_siblings_and_grandchildren() -> None:
    #        step       op a      launch     op b      launch    next step
    spans = [(0, 9000), (0, 4000), (10, 20), (5000, 8000), (5001, 5002), (9000, 9900)]
    assert tree(spans) == [-1, 0, 1, 0, 3, -1]


def test_threads_do_not_mix() -> None:
    assert tree([(0, 9000), (10, 20), (30, 40)], threads=[0, 1, 0]) == [-1, -1, 0]


def test_a_range_that_outlives_its_surroundings_hangs_higher() -> None:
    #   op of 10 us, an async range that starts in it and ends 50 us later, a call inside both
    assert tree([(0, 10_000), (5_000, 60_000), (20_000, 21_000)]) == [-1, -1, 1]


def test_a_child_may_overhang_by_rounding() -> None:
    assert tree([(0, 10_000), (9_000, 11_000)]) == [-1, 0]
    assert tree([(0, 10_000), (9_000, 11_001)]) == [-1, -1]


spans_and_threads = st.lists(
    st.tuples(st.integers(0, 9).map(lambda n: n * 700), st.integers(0, 9).map(lambda n: n * 700), st.integers(0, 1)),
    max_size=40,
)


@given(spans_and_threads)
def test_like_the_obvious_way(rows: list[tuple[int, int, int]]) -> None:
    rows = sorted(rows, key=lambda r: (r[0], -r[1]))
    spans, threads = [(start, start + length) for start, length, _ in rows], [thread for *_, thread in rows]
    assert tree(spans, threads) == by_hand(spans, threads)


def test_a_long_run_of_siblings_takes_few_rounds() -> None:
    n = 200_000
    starts = np.arange(n, dtype=np.int64) * 10
    starts[0], ends = 0, starts + 5
    ends[0] = n * 10
    parent = nesting.parents(starts, ends, np.zeros(n, np.uint32))
    assert (parent[1:] == 0).all()


def test_nearest_marked_includes_itself() -> None:
    parent = np.array([-1, 0, 1, 2, -1])
    marked = np.array([False, True, False, False, False])
    assert nesting.nearest_marked(parent, marked).tolist() == [-1, 1, 1, 1, -1]


def test_nearest_marked_of_nothing() -> None:
    assert nesting.nearest_marked(np.empty(0, np.int64), np.empty(0, bool)).tolist() == []
