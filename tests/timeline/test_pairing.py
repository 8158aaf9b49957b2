"""Matching by (process, number) with sorted keys."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceview import pairing

INT64 = st.integers(-(1 << 63) + 1, (1 << 63) - 1)
SIDE = st.lists(st.tuples(st.integers(0, 1 << 31), st.one_of(st.integers(-3, 3), INT64)), max_size=12)


def arrays(pairs):
    return np.array([p for p, _ in pairs], np.int64), np.array([n for _, n in pairs], np.int64)


@given(SIDE, SIDE)
def test_keys_are_equal_exactly_where_process_and_number_are(one, other):
    first, second = pairing.keys([arrays(one), arrays(other)])
    assert (first[:, None] == second[None, :]).tolist() == [[a == b for b in other] for a in one]
    assert (first[:, None] == first[None, :]).tolist() == [[a == b for b in one] for a in one]


@given(st.lists(st.tuples(st.lists(st.integers(0, 20), min_size=1, max_size=9), st.integers(-1, 21)), min_size=1))
def test_the_last_place_not_after_a_moment(stretches):
    lengths = [len(times) for times, _ in stretches]
    stop = np.cumsum(lengths)
    first = stop - lengths
    times = np.concatenate([sorted(times) for times, _ in stretches]).astype(np.int64)
    moments = np.array([moment for _, moment in stretches], np.int64)
    found = pairing.last_not_after(times, moments, first, stop)
    for place, begin, end, moment in zip(found, first, stop, moments, strict=True):
        fitting = [index for index in range(begin, end) if times[index] <= moment]
        assert place == (fitting[-1] if fitting else begin)


@given(st.lists(st.integers(-40, 40), min_size=1, unique=True), st.lists(st.one_of(st.integers(-50, 50), INT64)))
def test_a_table_finds_each_key_or_says_that_it_is_not_there(known, wanted):
    found = pairing.in_table(np.array(known, np.int64), np.array(wanted, np.int64))
    assert found is not None
    assert found.tolist() == [known.index(key) if key in known else -1 for key in wanted]


def test_a_table_does_not_answer_for_a_key_that_is_there_twice_nor_for_keys_far_apart():
    assert pairing.in_table(np.array([4, 7, 4]), np.array([7])) is None
    assert pairing.in_table(np.array([0, 1 << 40]), np.array([0])) is None
