"""Warm-up ends when nothing compiles any more and the time of a call stays the same."""

from __future__ import annotations

import pytest

from traceview.capture.steady import MOST_CALLS, WarmUp, warm_up


def warmed(durations, compiled=(), calls=None):
    """Warm up with calls of given lengths, of which some compile."""
    now = [0]
    count = [0]
    at = iter(range(len(durations)))

    def call():
        index = next(at)
        now[0] += durations[index]
        count[0] += index in compiled

    return warm_up(call, calls=calls, compilations=lambda: count[0], clock=lambda: now[0])


@pytest.mark.parametrize(
    ("durations", "compiled", "calls"),
    [
        ([100, 100, 100, 100], (), 3),
        ([900, 300, 101, 100, 100], (), 4),
        ([900, 100, 100, 100], (0,), 3),
        # Calls that compile are no measure, and a compilation starts the count anew.
        ([100, 100, 900, 100, 100, 100], (0, 2), 5),
        # Short calls scatter by more than a tenth; their medians do not.
        ([100, 120, 100, 120, 100, 120, 1], (), 6),
    ],
)
def test_it_ends_when_steady(durations, compiled, calls):
    assert warmed(durations, compiled) == WarmUp(calls, steady=True)


def test_it_ends_when_it_never_gets_steady():
    assert warmed([1 << at for at in range(40)]) == WarmUp(MOST_CALLS, steady=False)
    assert warmed([100] * 40, compiled=range(40)) == WarmUp(MOST_CALLS, steady=False)


def test_it_ends_after_a_minute():
    assert warmed([50 * 10**9, 20 * 10**9, 1]) == WarmUp(2, steady=False)


def test_a_number_of_calls_is_kept():
    assert warmed([1, 2], calls=2) == WarmUp(2, None)
    assert warmed([], calls=0) == WarmUp(0, None)
