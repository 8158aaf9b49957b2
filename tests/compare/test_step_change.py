"""Steps before and after: the test and its interval against known tables and a count of every order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from traceview.step_change import Verdict, interval, outside, spread, step_change

WORKERS_0 = [187_948, 175_153, 179_733, 174_564, 182_172, 165_983]
WORKERS_4 = [182_306, 126_183, 127_181, 123_079, 163_461, 124_198]


def us(*values):
    return np.array(values, np.int64) * 1000


@pytest.mark.parametrize(
    ("first", "second", "critical"),
    [(4, 4, 0), (5, 5, 2), (6, 6, 5), (7, 7, 8), (8, 8, 13), (10, 10, 23), (20, 20, 127), (5, 8, 6), (9, 12, 26)],
)
def test_the_published_table_of_mann_and_whitney(first, second, critical):
    """Critical values of U, two-sided 5 %, as every textbook prints them."""
    assert outside(first, second) == critical
    assert outside(second, first) == critical


def test_against_a_count_of_every_order():
    for first, second in ((3, 4), (4, 5), (5, 6)):
        counts = []
        for chosen in itertools.combinations(range(first + second), first):
            rest = [at for at in range(first + second) if at not in chosen]
            counts.append(sum(a > b for a in chosen for b in rest))
        u = np.array(counts)
        cut = outside(first, second)
        assert (u <= cut).mean() <= 0.025 or cut == 0
        assert (u <= cut + 1).mean() > 0.025


def test_many_steps_go_over_into_the_normal_distribution_without_a_jump():
    ratios = [outside(n, n) / n**2 for n in (38, 39, 40, 41, 42)]
    assert all(0 < b - a < 0.01 for a, b in itertools.pairwise(ratios))


def test_three_steps_on_each_side_leave_all_ratios():
    low, high = interval(us(100, 102, 104), us(50, 51, 52))
    assert (low, high) == (50 / 104 - 1, 52 / 100 - 1)


def test_the_loader_with_four_workers_is_faster_though_one_step_is_as_slow_as_before():
    found = step_change(us(*WORKERS_0), us(*WORKERS_4))
    assert found.verdict is Verdict.FASTER
    assert found.change == pytest.approx(126.682 / 177.443 - 1, abs=1e-4)
    # 5 of 36 pairs got longer: as many lie outside of the interval, so it ends just below no change.
    assert sum(b > a for a in WORKERS_0 for b in WORKERS_4) == 5
    assert found.high == pytest.approx(163_461 / 165_983 - 1)
    assert found.speedup == pytest.approx(177.443 / 126.682, rel=1e-4)


def test_the_other_way_round_it_is_slower():
    assert step_change(us(*WORKERS_4), us(*WORKERS_0)).verdict is Verdict.SLOWER


@pytest.mark.parametrize(
    ("before", "after", "verdict", "why"),
    [
        ((100, 101, 102, 103), (80, 81, 82, 83), Verdict.FASTER, "more than the spread"),
        ((100, 101, 102, 103), (100, 101, 102, 103), Verdict.SAME, "less than 5%"),
        ((100, 150, 200, 250), (90, 160, 210, 240), Verdict.INCONCLUSIVE, "too wide"),
        ((1000, 1000, 1000, 1000), (995, 995, 995, 995), Verdict.SAME, "less than 1%"),
        ((100, 101), (50, 51), Verdict.INCONCLUSIVE, "fewer than 3"),
        ((), (50, 51, 52), Verdict.INCONCLUSIVE, "the first trace has no step"),
        ((50, 51, 52), (), Verdict.INCONCLUSIVE, "the second trace has no step"),
        ((0, 0, 0), (1, 1, 1), Verdict.INCONCLUSIVE, "the first trace has no step"),
    ],
)
def test_verdicts(before, after, verdict, why):
    found = step_change(us(*before), us(*after))
    assert found.verdict is verdict
    assert why in found.why


def test_few_steps_say_what_chance_does():
    assert "10.0 % of cases" in step_change(us(100, 101, 102), us(50, 51, 52)).why
    assert "chance" not in step_change(us(100, 101, 102, 103), us(50, 51, 52, 53)).why


def test_thousands_of_steps_are_compared_within_bounds_of_memory():
    generator = np.random.default_rng(1)
    before, after = (generator.normal(mean, 5e6, 20_000).astype(np.int64) for mean in (100e6, 97e6))
    found = step_change(before, after)
    assert found.verdict is Verdict.FASTER
    assert found.low < -0.03 < found.high < -0.025


def test_alike_samples_are_seldom_called_different():
    """The share of false alarms is what the test promises: at most 5 %, within what 400 trials can show."""
    generator = np.random.default_rng(7)
    alarms = 0
    for _ in range(400):
        before, after = (generator.lognormal(17, 0.3, 8).astype(np.int64) for _ in range(2))
        alarms += step_change(before, after).verdict in {Verdict.FASTER, Verdict.SLOWER}
    assert alarms <= 0.05 * 400 + 3 * (400 * 0.05 * 0.95) ** 0.5
    assert alarms > 0  # It is no test that never says anything.


def test_a_spread_of_nothing_is_none():
    assert spread(us()) is None
