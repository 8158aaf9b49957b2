"""SDPA that fell back to math."""

from __future__ import annotations

from authored_timeline import kernel, launch, op
from rules.rule_case import FLASH, GEMM, found, ran
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


def test_what_refused_is_named_with_what_to_change() -> None:
    (finding,) = found(
        "TV102",
        op("aten::scaled_dot_product_attention", 0, 9, dims=[[1, 4, 64, 32]] * 3, dtypes=["float"] * 3),
        op("aten::_scaled_dot_product_attention_math", 1, 8),
        launch(2, 1),
        kernel(GEMM, 20, 30, 1),
    )
    assert finding.evidence[0].startswith("1 call, refused: flash by F1 (query, key and value are float32)")
    assert finding.fix.startswith(
        "Meet the conditions of one fused backend. flash: Run attention in bfloat16 or float16"
    )
    assert "(F1)" in finding.fix


def test_without_recorded_inputs_the_advice_is_general() -> None:
    (finding,) = found(
        "TV102",
        op("aten::scaled_dot_product_attention", 0, 9),
        op("aten::_scaled_dot_product_attention_math", 1, 8),
    )
    assert "refused" not in finding.evidence[0]
