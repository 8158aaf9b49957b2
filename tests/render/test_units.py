"""Numbers for people."""

from __future__ import annotations

import pytest

from traceview.render.units import counted, duration, durations, percent


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (0, "0 ns"), (832, "832 ns"), (999, "999 ns"), (1_000, "1.000 us"), (12_345, "12.35 us"), (999_949, "999.9 us"),
        (999_951, "1.000 ms"), (511_528_906, "511.5 ms"), (1_078_288_379, "1.078 s"), (5_400_000_000_000, "5,400 s"),
        (-1_500, "-1.500 us"),
    ],
)  # fmt: skip
def test_a_duration_has_four_digits(ns, shown):
    assert duration(ns) == shown


@pytest.mark.parametrize(
    ("values", "unit", "shown"),
    [
        ([1, 832], "ns", ["1", "832"]),
        ([999, 53_070], "us", ["0.999", "53.070"]),
        ([1_500, 2_186_850_000], "ms", ["0.002", "2,186.850"]),
        ([7 * 10**9, 300 * 10**9], "s", ["7.000", "300.000"]),
        ([None, 5], "ns", ["-", "5"]),
        ([], "ns", []),
    ],
)
def test_a_column_has_one_unit(values, unit, shown):
    assert durations(values) == (unit, shown)


def test_kernels_stay_in_microseconds():
    assert durations([2_186_850, 6_700], short=True) == ("us", ["2,186.8", "6.7"])


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (None, "-"),
        (0.0, "0.0 %"),
        (0.0004, "<0.1 %"),
        (0.0005, "0.1 %"),
        (0.4744, "47.4 %"),
        (0.99996, "99.9 %"),
        (1.0, "100.0 %"),
    ],
)
def test_a_share_never_hides_the_rest(share, shown):
    assert percent(share) == shown


def test_counted():
    assert (counted(1, "device"), counted(2048, "device"), counted(2, "has", "have")) == (
        "1 device",
        "2,048 devices",
        "2 have",
    )
