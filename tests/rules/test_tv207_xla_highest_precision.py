"""XLA products at the highest precision."""

from __future__ import annotations

from authored_timeline import kernel
from rules.rule_case import found

DOT = kernel("fusion.1", 0, 60, kind="xla_op")


def text(precision: str) -> dict[str, dict[str, str]]:
    return {
        "long_name": {"fusion.1": f'"%convolution.1 = f32[8,8] convolution(%a, %b), operand_precision={{{precision}}}"'}
    }


def test_positive_six_passes() -> None:
    (finding,) = found("TV207", DOT, text_details=text("highest,highest"))
    assert finding.cost_ns == 50_000


def test_negative_default_precision() -> None:
    assert found("TV207", DOT, text_details=text("default,default")) == []


def test_not_recorded_text() -> None:
    assert found("TV207", DOT) == []
