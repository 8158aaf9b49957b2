"""What a device's architecture is called."""

from __future__ import annotations

import pytest

from traceview.knowledge.architectures import amd_targets, architecture

KNOWN = [
    (("nvidia", "NVIDIA H100", 9, 0), "sm90"),
    (("nvidia", None, 12, 0), "sm120"),
    (("nvidia", "Tesla V100", None, None), None),
    (("nvidia", "Tesla V100", 7, None), None),
    (("amd", "AMD Instinct MI300X VF", 9, 4), "gfx942"),
    (("amd", "AMD Instinct MI300X VF", None, None), "gfx942"),
    (("amd", "AMD Radeon Graphics", 9, 4), "gfx942"),
    (("amd", "AMD Instinct MI250X", 9, 0), "gfx90a"),
    (("amd", "AMD Instinct MI100", 9, 0), "gfx908"),
    (("amd", "AMD Instinct MI355X", 9, 5), "gfx950"),
    (("amd", "gfx90a", None, None), "gfx90a"),
    # 9.0 alone is one of four, 11.0 one of several steppings.
    (("amd", "AMD Radeon Graphics", 9, 0), None),
    (("amd", None, 11, 0), None),
    (("amd", None, None, None), None),
    (("google", "TPU v5e", None, None), None),
    ((None, "MI300X", 9, 4), None),
]


@pytest.mark.parametrize(("recorded", "expected"), KNOWN)
def test_by_what_is_recorded(recorded, expected):
    assert architecture(*recorded) == expected


def test_every_row_names_a_source():
    table = amd_targets()
    for row in (*table["name"], *table["number"]):
        assert row["source"] in table["sources"]
