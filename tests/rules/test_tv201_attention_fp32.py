"""Fused attention in fp32."""

from __future__ import annotations

from rules.rule_case import found, ran

EFFICIENT = "fmha_cutlassF_{}_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<>::Params)"


def test_positive_where_flash_exists() -> None:
    (finding,) = found("TV201", *ran("aten::_efficient_attention_forward", EFFICIENT.format("f32"), 0, 10, 1))
    assert finding.cost_ns == 10_000


def test_negative_half_precision_or_no_flash() -> None:
    assert found("TV201", *ran("aten::x", EFFICIENT.format("f16"), 0, 10, 1)) == []
    assert found("TV201", *ran("aten::x", EFFICIENT.format("f32"), 0, 10, 1), capability=(7, 5)) == []


def test_not_recorded_capability() -> None:
    assert found("TV201", *ran("aten::x", EFFICIENT.format("f32"), 0, 10, 1), capability=None) == []
