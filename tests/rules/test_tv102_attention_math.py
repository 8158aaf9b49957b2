"""SDPA that fell back to math."""

from __future__ import annotations

from authored_timeline import op
from rules.rule_case import FLASH, found, ran
from traceview.findings import Severity


def test_positive_the_op_that_only_math_has() -> None:
    (finding,) = found(
        "TV102",
        op("aten::scaled_dot_product_attention", 0, 9),
        op("aten::_scaled_dot_product_attention_math", 1, 8),
    )
    assert (finding.severity, finding.cost_ns) == (Severity.ERROR, None)
    assert finding.title == "1 SDPA call fell back to math: 0.009 ms on the CPU"


def test_negative_flash() -> None:
    assert found("TV102", *ran("aten::scaled_dot_product_attention", FLASH, 0, 10, 1)) == []


def test_not_recorded_children_are_no_math() -> None:
    assert found("TV102", op("aten::scaled_dot_product_attention", 0, 9)) == []
