"""Interval arithmetic against a model that counts single nanoseconds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceview import intervals

Pairs = list[tuple[int, int]]
pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12)


def arrays(items: Pairs) -> tuple[np.ndarray, np.ndarray]:
    return (np.array([a for a, _ in items], np.int64), np.array([b for _, b in items], np.int64))


def points(items: Pairs) -> set[int]:
    return {t for a, b in items for t in range(a, b)}


def points_of(result: tuple[np.ndarray, np.ndarray]) -> set[int]:
    return points(list(zip(result[0].tolist(), result[1].tolist(), strict=True)))


def assert_normalised(result: tuple[np.ndarray, np.ndarray]) -> None:
    starts, ends = result
    assert (ends > starts).all()
    assert (starts[1:] > ends[:-1]).all()


@given(pairs)
def test_union_counts_every_nanosecond_once(items: Pairs) -> None:
    merged = intervals.merge(*arrays(items))
    assert points_of(merged) == points(items)
    assert_normalised(merged)
    assert intervals.total(*arrays(items)) == len(points(items))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=20))
def test_grouped_total_is_a_total_per_group(rows: list[tuple[int, int, int]]) -> None:
    groups, starts, ends = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    expected = [len(points([(a, b) for g, a, b in rows if g == group])) for group in range(max(groups) + 1)]
    assert intervals.grouped_total(groups, starts, ends).tolist() == expected


@given(pairs, pairs)
def test_subtract_and_intersect_agree_with_sets(a: Pairs, b: Pairs) -> None:
    left = intervals.subtract(arrays(a), arrays(b))
    both = intervals.intersect(arrays(a), arrays(b))
    assert points_of(left) == points(a) - points(b)
    assert points_of(both) == points(a) & points(b)
    assert_normalised(left)


@given(pairs, pairs)
def test_covered_keeps_each_interval_apart(items: Pairs, cover: Pairs) -> None:
    result = intervals.covered(*arrays(items), arrays(cover))
    assert result.tolist() == [len(points([item]) & points(cover)) for item in items]


@given(pairs)
def test_gaps_fill_the_span(items: Pairs) -> None:
    covered = points(items)
    expected = set(range(min(covered), max(covered) + 1)) - covered if covered else set()
    assert points_of(intervals.gaps(*arrays(items))) == expected


def test_a_long_kernel_over_short_ones_leaves_no_negative_gap() -> None:
    # A 100-1100, B 200-300, C 1150-1250: the only gap is 50 long. Comparing with the previous end gives 850.
    starts, ends = np.array([100, 200, 1150]), np.array([1100, 300, 1250])
    assert [g.tolist() for g in intervals.gaps(starts, ends)] == [[1100], [1150]]
    assert intervals.total(starts, ends) == 1100
    assert intervals.span(starts, ends) == 1150


def test_nothing_in_nothing_out() -> None:
    none = arrays([])
    assert intervals.total(*none) == intervals.span(*none) == 0
    assert intervals.covered(*none, none).tolist() == []
