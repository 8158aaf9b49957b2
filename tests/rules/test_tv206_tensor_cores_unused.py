"""fp32 work beside idle tensor cores."""

from __future__ import annotations

from rules.rule_case import ADD, found, ran
from traceview.findings import Severity

SGEMM = "volta_sgemm_64x64_nt"


def test_positive_on_volta_as_a_remark() -> None:
    (finding,) = found("TV206", *ran("aten::mm", SGEMM, 0, 30, 1), *ran("aten::add", ADD, 50, 70, 2), capability=(7, 0))
    assert (finding.severity, finding.cost_ns) == (Severity.INFO, 30_000)


def test_negative_little_matrix_work_or_another_generation() -> None:
    little = [*ran("aten::mm", SGEMM, 0, 10, 1), *ran("aten::add", ADD, 50, 90, 2)]
    assert found("TV206", *little, capability=(7, 0)) == []
    assert found("TV206", *ran("aten::mm", SGEMM, 0, 30, 1), capability=(8, 0)) == []


def test_not_recorded_capability() -> None:
    assert found("TV206", *ran("aten::mm", SGEMM, 0, 30, 1), capability=None) == []
