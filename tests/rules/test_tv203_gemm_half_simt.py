"""Half-precision products without tensor cores."""

from __future__ import annotations

from rules.rule_case import GEMM, found, ran

SIMT = "ampere_fp16_sgemm_fp16_128x128_nn"
GEMV = "void gemv2T_kernel_val<int, int, __half, __half, __half, float, 128, 16, 4, 4, false, false>"


def test_positive_fp16_sgemm() -> None:
    (finding,) = found("TV203", *ran("aten::bmm", SIMT, 0, 10, 1))
    assert finding.cost_ns == 10_000


def test_negative_tensor_cores_or_a_vector_product() -> None:
    assert found("TV203", *ran("aten::bmm", GEMM, 0, 10, 1)) == []
    assert found("TV203", *ran("aten::mv", GEMV, 0, 10, 1)) == []


def test_not_recorded_capability() -> None:
    assert found("TV203", *ran("aten::bmm", SIMT, 0, 10, 1), capability=None) == []
