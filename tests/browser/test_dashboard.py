"""What a user does with the dashboard, done by a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
MATH = SAMPLES / "flash-requested-math-ran.cuda-authored.json.gz"
NSYS = SAMPLES / "two-ranks.nsys-authored.sqlite"
TPU = SAMPLES / "xprof" / "jax-tpu-unfused.xprof-authored.xplane.pb"


def drop(page, address, *files):
    """Drop files on the first page and wait for the answer."""
    page.goto(address)
    page.locator("input[type=file]").first.set_input_files([str(file) for file in files])


def headline(page):
    found = page.locator("[class*=st-key-headline]").first
    found.wait_for()
    return found.inner_text()


def to(page, name):
    page.get_by_role("link", name=name, exact=True).first.click()


@pytest.mark.parametrize(
    ("file", "says"),
    [
        pytest.param(MATH, "6 SDPA calls fell back to math: 21.839 ms of device time, 73.1 % of busy time", id="kineto"),
        pytest.param(NSYS, "math", id="nsys"),
        pytest.param(TPU, "attention", id="xprof"),
    ],
)
def test_a_dropped_trace_is_answered_on_the_first_screen(page, dashboard, file, says):
    drop(page, dashboard, file)
    found = page.locator("[class*=st-key-headline]").first
    found.wait_for()
    assert says in found.inner_text()
    box = found.bounding_box()
    assert box["y"] + box["height"] < 800
    assert re.search(r"/overview\?trace=[0-9a-f]{16}", page.url)
