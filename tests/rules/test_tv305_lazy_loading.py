"""Kernel code loaded late."""

from __future__ import annotations

from authored_timeline import host
from rules.rule_case import ADD, found, ran, step

STEPS = [step(0, 0, 100), step(1, 100, 200)]


def test_positive_in_a_steady_step() -> None:
    (finding,) = found("TV305", *STEPS, host("overhead", "Lazy Function Loading", 110, 120))
    assert finding.title == "1 load of kernel code after the first recorded step: 0.010 ms on the host"
    assert finding.cost_ns == 10_000


def test_negative_in_the_warm_up_or_too_short() -> None:
    assert found("TV305", *STEPS, host("api", "cuModuleLoadData", 10, 20)) == []
    assert found("TV305", *STEPS, host("api", "cuModuleLoadData", 110, 110.5)) == []


def test_not_recorded_steps_leave_a_remark() -> None:
    (finding,) = found("TV305", *ran("aten::add", ADD, 0, 100, 1), host("api", "cuModuleLoadData", 10, 20, thread=1))
    assert "this may be the warm-up" in finding.evidence[-1]
