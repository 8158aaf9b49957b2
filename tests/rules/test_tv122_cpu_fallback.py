"""Ops that the device does not have."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from authored_timeline import Event, kernel, launch, op
from live_frameworks import live
from rules.rule_case import ADD, found, judged
from traceview import load

if TYPE_CHECKING:
    from pathlib import Path


def fell_back(name: str, at: float, *, thread: int = 0) -> list[Event]:
    """The calls of one fallback, as torch 2.13 records them: once outside, once in the backend."""
    return [
        op(name, at, at + 100, thread=thread),
        op(name, at + 1, at + 99, thread=thread),
        op("aten::_to_cpu", at + 2, at + 30, thread=thread),
        op("aten::to", at + 3, at + 29, thread=thread),
        op("aten::_to_copy", at + 4, at + 28, thread=thread),
        op("aten::to", at + 80, at + 98, thread=thread),
    ]


def test_positive_names_the_ops_and_their_time_once() -> None:
    (finding,) = found(
        "TV122",
        *fell_back("aten::cumprod", 0),
        *fell_back("aten::cumprod", 200),
        *fell_back("aten::linalg_qr", 400, thread=1),
        op("aten::mm", 600, 900),
    )
    assert finding.title == "3 op calls fell back to the CPU: 0.294 ms on the host, 49.0 % of the time in ops"
    assert finding.evidence[:2] == (
        "2 × aten::cumprod: 0.196 ms on the host",
        "1 × aten::linalg_qr: 0.098 ms on the host",
    )
    assert finding.cost_ns == 294_000


def test_positive_an_op_inside_a_fallback_is_part_of_it() -> None:
    (finding,) = found(
        "TV122",
        op("aten::outer_op", 0, 100),
        op("aten::_to_cpu", 1, 10),
        op("aten::inner_op", 20, 80),
        op("aten::_to_cpu", 21, 30),
    )
    assert finding.title.startswith("1 op call fell back to the CPU: 0.100 ms")


def test_negative_little_of_the_time_or_a_copy_that_was_asked_for() -> None:
    assert found("TV122", *fell_back("aten::cumprod", 0), op("aten::mm", 1000, 10_000)) == []
    assert found("TV122", op("aten::copy_", 0, 100), op("aten::_to_cpu", 10, 90)) == []
    assert found("TV122", op("aten::cumprod", 0, 100), op("aten::to", 10, 20), op("aten::_to_copy", 11, 19)) == []


def test_not_recorded_ops() -> None:
    assert found("TV122", launch(0, 1), kernel(ADD, 5, 90, 1)) == []
    assert found("TV122", op("aten::_to_cpu", 0, 100)) == []


RECORD = """
import sys
import torch
import torch._lazy.ts_backend

torch._lazy.ts_backend.init()
x = torch.ones(64, 64, device="lazy")
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
    torch.linalg.qr(x)
    torch.cumprod(x, 0)
profiler.export_chrome_trace(sys.argv[1])
"""


@pytest.mark.slow
def test_live_on_a_device_without_these_ops(tmp_path: Path) -> None:
    """PyTorch's own fallback, recorded here and now, in a process of its own: the backend cannot be taken down."""
    live("torch")
    file = tmp_path / "trace.json"
    subprocess.run([sys.executable, "-W", "ignore", "-c", RECORD, str(file)], check=True, capture_output=True)
    (finding,) = judged("TV122", load(file))
    assert finding.title.startswith("2 op calls fell back to the CPU")
    assert {line.split(":")[2] for line in finding.evidence[:2]} == {"linalg_qr", "cumprod"}
