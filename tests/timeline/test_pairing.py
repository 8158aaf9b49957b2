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
