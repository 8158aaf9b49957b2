"""Mem-efficient attention on newer GPUs."""

from __future__ import annotations

from rules.rule_case import found, ran
from traceview.findings import Severity

EFFICIENT = "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel<>::Params)"
CALL = ran("aten::_efficient_attention_forward", EFFICIENT, 0, 10, 1)


def test_positive_on_hopper() -> None:
    (finding,) = found("TV104", *CALL, capability=(9, 0))
    assert (finding.severity, finding.cost_ns) == (Severity.WARNING, 10_000)


def test_negative_on_the_generation_it_is_written_for() -> None:
    assert found("TV104", *CALL, capability=(8, 0)) == []


def test_negative_on_a_part_without_newer_matrix_units() -> None:
    assert found("TV104", *CALL, capability=(12, 0)) == []


def test_not_recorded_capability() -> None:
    assert found("TV104", *CALL, capability=None) == []
