"""Allocation in steady steps."""

from __future__ import annotations

from authored_timeline import host
from rules.rule_case import found, step

STEPS = [step(0, 0, 100), step(1, 100, 200)]


def test_positive_in_a_steady_step() -> None:
    (finding,) = found("TV503", *STEPS, host("api", "cudaMalloc", 110, 118), host("api", "cudaFree", 120, 122))
    assert finding.title == "2 allocator calls after the first recorded step: 0.010 ms on the host"
    assert (finding.cost_ns, finding.evidence[0]) == (10_000, "1 × cudaMalloc: 0.008 ms")


def test_negative_in_the_warm_up_or_too_short() -> None:
    assert found("TV503", *STEPS, host("api", "cudaMalloc", 10, 90)) == []
    assert found("TV503", *STEPS, host("api", "cudaMalloc", 110, 110.5)) == []


def test_not_recorded_steps() -> None:
    assert found("TV503", host("api", "cudaMalloc", 10, 90)) == []
