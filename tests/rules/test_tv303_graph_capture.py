"""Graphs captured again."""

from __future__ import annotations

from authored_timeline import Event, host
from rules.rule_case import found, step
from traceview.findings import Severity

STEPS = [step(0, 0, 100), step(1, 100, 200)]
REPLAY = host("api", "cudaGraphLaunch", 5, 6)


def capture(at_us: float) -> list[Event]:
    return [
        host("api", "cudaStreamBeginCapture", at_us, at_us + 1),
        host("api", "cudaStreamEndCapture", at_us + 30, at_us + 31),
        host("api", "cudaGraphInstantiateWithFlags", at_us + 32, at_us + 40),
    ]


def test_positive_from_begin_to_instantiation() -> None:
    (finding,) = found("TV303", *STEPS, *capture(10), *capture(110))
    assert finding.title == "1 graph capture after the warm-up: 0.040 ms on the host"
    assert (finding.severity, finding.cost_ns) == (Severity.WARNING, 40_000)


def test_negative_in_the_warm_up() -> None:
    assert found("TV303", *STEPS, *capture(10)) == []


def test_not_recorded_steps_leave_a_remark_after_a_replay() -> None:
    assert found("TV303", *capture(10)) == []
    (finding,) = found("TV303", REPLAY, *capture(10))
    assert (finding.severity, finding.confidence.value) == (Severity.INFO, "inferred")
