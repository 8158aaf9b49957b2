"""Matrix kernels of an older generation."""

from __future__ import annotations

from rules.rule_case import found, ran
from traceview.findings import Severity

TURING = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1>(Params)"
AMPERE = "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_32x3_nn"


def test_positive_turing_tile_on_hopper_with_its_cause() -> None:
    (finding,) = found("TV110", *ran("aten::bmm", TURING, 0, 10, 1))
    assert (finding.severity, finding.cost_ns) == (Severity.WARNING, 10_000)
    assert finding.evidence[0] == "1 of them say that operands are aligned to one or two elements only"


def test_positive_long_ampere_products_are_only_a_remark() -> None:
    (finding,) = found("TV110", *ran("aten::mm", AMPERE, 0, 60, 1))
    assert finding.severity is Severity.INFO


def test_negative_on_its_own_generation_or_short() -> None:
    assert found("TV110", *ran("aten::bmm", TURING, 0, 10, 1), capability=(7, 5)) == []
    assert found("TV110", *ran("aten::mm", AMPERE, 0, 60, 1), capability=(8, 0)) == []
    assert found("TV110", *ran("aten::mm", AMPERE, 0, 60, 1), capability=(12, 0)) == []
    assert found("TV110", *ran("aten::mm", AMPERE, 0, 40, 1)) == []


def test_not_recorded_capability() -> None:
    assert found("TV110", *ran("aten::bmm", TURING, 0, 10, 1), capability=None) == []
