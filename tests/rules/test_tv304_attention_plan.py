"""Plans built inside cuDNN attention."""

from __future__ import annotations

from authored_timeline import Event, op
from rules.rule_case import found, step

OP = "aten::_scaled_dot_product_cudnn_attention"
STEPS = [step(0, 0, 100_000), step(1, 100_000, 900_000)]


def calls(*durations_us: float) -> list[Event]:
    return [op(OP, 100_000 * (i + 1), 100_000 * (i + 1) + dur, dims=[[i]]) for i, dur in enumerate(durations_us)]


def test_positive_one_call_stands_out() -> None:
    (finding,) = found("TV304", *STEPS, *calls(100, 50_100, 100))
    assert finding.cost_ns == 50_000_000
    assert finding.evidence == ("usual call 0.100 ms, longest 50.100 ms", "1 input signature among them")


def test_negative_all_calls_are_alike() -> None:
    assert found("TV304", *STEPS, *calls(30_000, 50_000, 40_000)) == []


def test_not_recorded_enough_calls() -> None:
    assert found("TV304", *STEPS, *calls(100, 50_000)) == []
