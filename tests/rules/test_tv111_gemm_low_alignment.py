"""Half-precision products of unaligned operands."""

from __future__ import annotations

from rules.rule_case import found, ran

UNALIGNED = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2>(Params)"
ALIGNED = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align8>(Params)"


def test_positive_align2() -> None:
    (finding,) = found("TV111", *ran("aten::addmm", UNALIGNED, 0, 10, 1, dims=[[141, 512], [512, 30522]]))
    assert finding.cost_ns == 10_000
    assert "30522" in finding.evidence[0]


def test_negative_align8() -> None:
    assert found("TV111", *ran("aten::addmm", ALIGNED, 0, 10, 1)) == []


def test_not_recorded_alignment_in_the_name() -> None:
    assert found("TV111", *ran("aten::addmm", "nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NNT", 0, 10, 1)) == []
