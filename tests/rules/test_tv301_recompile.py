"""Compilation after the warm-up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from authored_timeline import host, op, timeline
from rules.rule_case import found, judged, step
from traceview.findings import Severity

STEPS = [step(0, 0, 100), step(1, 100, 200)]


def compilation(at_us: float) -> list[object]:
    return [
        host("compile", "entire_frame_compile (dynamo_timed)", at_us, at_us + 50),
        host("compile", "_compile.compile_inner (dynamo_timed)", at_us + 1, at_us + 49),
    ]


def test_positive_once_although_two_spans_nest() -> None:
    (finding,) = found("TV301", *STEPS, *compilation(110))
    assert finding.title == "1 compilation after the first recorded step: 0.050 ms on the host"
    assert (finding.severity, finding.cost_ns, finding.evidence[0]) == (Severity.WARNING, 50_000, "in step 1")


def test_negative_warm_up_and_the_region_counter_alone() -> None:
    assert found("TV301", *STEPS, *compilation(10)) == []
    assert found("TV301", *STEPS, op("Torch-Compiled Region: 0/3", 110, 120)) == []


def test_not_recorded_steps_leave_a_remark_that_it_cannot_tell() -> None:
    (finding,) = found("TV301", *compilation(10))
    assert finding.severity is Severity.INFO
    assert "cannot be told apart" in finding.evidence[0]


@pytest.mark.parametrize(
    ("format_", "named", "other"),
    [("kineto", "TORCH_LOGS", "JAX"), ("xprof", "JAX_EXPLAIN_CACHE_MISSES", "TORCH")],
)
def test_the_advice_is_that_of_the_framework(format_, named, other) -> None:
    built = timeline(*STEPS, *compilation(110))
    built = replace(built, runs=tuple(replace(run, format=format_) for run in built.runs))
    (finding,) = judged("TV301", built)
    assert named in finding.fix
    assert other not in finding.fix
