"""fp32 products without tensor cores."""

from __future__ import annotations

from authored_timeline import kernel
from rules.rule_case import found, ran

SGEMM = "ampere_sgemm_128x64_nn"
TF32 = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256_16x3_tn_align4>(Params)"


def test_positive_sgemm_on_a_part_with_tf32() -> None:
    (finding,) = found("TV202", *ran("aten::mm", SGEMM, 0, 10, 1), capability=(8, 0))
    assert finding.cost_ns == 10_000


def test_negative_tf32_or_no_tf32_unit_or_a_convolution() -> None:
    assert found("TV202", *ran("aten::mm", TF32, 0, 10, 1)) == []
    assert found("TV202", *ran("aten::mm", SGEMM, 0, 10, 1), capability=(7, 0)) == []
    assert found("TV202", *ran("aten::cudnn_convolution", SGEMM, 0, 10, 1)) == []


def test_positive_a_name_that_only_runs_on_parts_with_tf32() -> None:
    assert len(found("TV202", *ran("aten::mm", SGEMM, 0, 10, 1), capability=None)) == 1


def test_not_recorded_capability() -> None:
    assert found("TV202", *ran("aten::mm", "maxwell_sgemm_128x64_nn", 0, 10, 1), capability=None) == []
    assert found("TV202", *ran("aten::mm", "sgemm_128x64_nn", 0, 10, 1), capability=None) == []


def test_a_remark_where_copies_fill_the_busy_time() -> None:
    copy = kernel("Memcpy HtoD (Pinned -> Device)", 20, 2_000, kind="memcpy")
    (finding,) = found("TV202", *ran("aten::mm", SGEMM, 0, 10, 1), copy)
    assert finding.severity == "info"
    other = kernel("vectorized_elementwise_kernel", 20, 2_000)
    assert found("TV202", *ran("aten::mm", SGEMM, 0, 10, 1), other) == []
