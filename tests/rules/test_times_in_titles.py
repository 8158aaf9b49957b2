"""A time in the title of a finding reads as the same time does beside it."""

from __future__ import annotations

import pytest

from traceview.render.units import duration
from traceview.rules.kernel_evidence import milliseconds


@pytest.mark.parametrize(
    ("ns", "words"),
    [
        (1_234_567, "1.235 ms"),
        (492_506_000, "492.506 ms"),
        (999_000_000, "999.000 ms"),
        (1_000_000_000, "1.000 s"),
        (1_651_200_000, "1.651 s"),
        (304_257_919_000, "304.3 s"),
        (12_345_678_000_000, "12,346 s"),
    ],
)
def test_from_a_second_on_it_is_in_seconds(ns, words):
    assert milliseconds(ns) == words
    if ns >= 10**9:
        assert words == duration(ns)
