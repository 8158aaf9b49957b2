"""Pages in memory, and one description of a trace that all renderers share."""

from __future__ import annotations

import io

import pytest

from traceview.render.page import Page
from traceview.report import Device, ImportNote, ImportSummary, TraceInfo
from traceview.timeline import Count


@pytest.fixture
def text():
    """``text(write, width=100)`` runs ``write(page)`` and returns what was written."""

    def run(write, width=100):
        out = io.StringIO()
        write(Page(out, width=width))
        return out.getvalue()

    return run


@pytest.fixture
def trace():
    return TraceInfo(
        files=("runs/rank0.json.gz",),
        format="kineto",
        producer="PyTorch profiler (Kineto)",
        producer_version=None,
        devices=(
            Device(0, 0, "NVIDIA H100 80GB HBM3", "nvidia", "9.0", None, used=True),
            Device(1, 1, "NVIDIA H100 80GB HBM3", "nvidia", "9.0", None, used=False),
        ),
        events=117_635,
        truncated=False,
        trust="limited",
    )


@pytest.fixture
def summary():
    return ImportSummary(
        trust="limited",
        truncated=False,
        counts={"repaired-escape": Count(3, "torch\\cuda")},
        notes=(
            ImportNote("work-without-launch", "509 of 1,707 device events have no launch in the file.", "limited"),
            ImportNote("launch-without-work", "22 of 83 launches have no device event in the file.", "good"),
        ),
    )
