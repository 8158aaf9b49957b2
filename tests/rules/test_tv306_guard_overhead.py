"""Guards of compiled code."""

from __future__ import annotations

from authored_timeline import op
from rules.rule_case import found, step

STEPS = [step(0, 0, 100), step(1, 100, 200)]


def test_positive_a_tenth_of_the_step() -> None:
    (finding,) = found("TV306", *STEPS, op("TorchDynamo Cache Lookup", 110, 120))
    assert finding.title == "Checking guards took 0.010 ms on the host, 10.0 % of the steps"


def test_negative_little_or_in_the_warm_up() -> None:
    assert found("TV306", *STEPS, op("TorchDynamo Cache Lookup", 110, 114)) == []
    assert found("TV306", *STEPS, op("TorchDynamo Cache Lookup", 10, 90)) == []


def test_not_recorded_steps() -> None:
    assert found("TV306", op("TorchDynamo Cache Lookup", 110, 120)) == []
