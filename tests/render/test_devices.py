"""How devices are called in the strip under the verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from traceview.render.conditions import conditions
from traceview.report import Device

MI300X = Device(0, 0, "AMD Instinct MI300X", "amd", "9.4", None, used=True, architecture="gfx942")

CALLED = {
    "a target": (MI300X, "AMD Instinct MI300X, gfx942"),
    "a number that is four targets": (
        replace(MI300X, name="AMD Radeon Graphics", compute_capability="9.0", architecture=None),
        "AMD Radeon Graphics, architecture not recorded",
    ),
    "the target for a name": (replace(MI300X, name="gfx90a", architecture="gfx90a"), "gfx90a"),
    "nothing": (replace(MI300X, name=None, architecture=None), "name not recorded, architecture not recorded"),
    "NVIDIA": (
        Device(0, 0, "NVIDIA H100", "nvidia", "9.0", None, used=True, architecture="sm90"),
        "NVIDIA H100, compute capability 9.0",
    ),
}


@pytest.mark.parametrize("case", CALLED)
def test_by_their_vendors_word(trace, summary, case):
    device, words = CALLED[case]
    listed = dict(conditions(replace(trace, devices=(device,)), summary))
    assert listed["device"] == words
