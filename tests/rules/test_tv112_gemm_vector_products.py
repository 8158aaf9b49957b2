"""Matrix-vector products."""

from __future__ import annotations

from rules.rule_case import GEMM, found, ran

GEMV = (
    "void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 128, 16, 4, 4, false, false>"
)


def test_positive_most_products_are_vectors() -> None:
    (finding,) = found("TV112", *ran("aten::mm", GEMV, 0, 40, 1), *ran("aten::mm", GEMM, 50, 60, 2))
    assert finding.cost_ns == 40_000


def test_negative_the_odd_layer() -> None:
    assert found("TV112", *ran("aten::mm", GEMV, 0, 20, 1), *ran("aten::mm", GEMM, 50, 80, 2)) == []


def test_not_recorded_kernel_identity() -> None:
    assert found("TV112", *ran("aten::mm", "some_kernel", 0, 40, 1)) == []
