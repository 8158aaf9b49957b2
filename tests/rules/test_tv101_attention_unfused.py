"""Attention as separate products and softmax."""

from __future__ import annotations

from authored_timeline import kernel
from rules.rule_case import GEMM, found, ran
from traceview.findings import Severity

SOFTMAX = (
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, false, false>(float*, float const*, int)"
)


def test_positive_batched_products_around_a_softmax() -> None:
    (finding,) = found(
        "TV101",
        *ran("aten::bmm", GEMM, 0, 10, 1),
        *ran("aten::_softmax", SOFTMAX, 20, 10, 2),
        *ran("aten::bmm", GEMM, 40, 10, 3),
    )
    assert (finding.severity, finding.cost_ns) == (Severity.ERROR, 30_000)
    assert finding.title == "1 attention call ran unfused: 0.030 ms of device time, 100.0 % of busy time"


def test_negative_softmax_of_a_classifier() -> None:
    assert found("TV101", *ran("aten::bmm", GEMM, 0, 10, 1), *ran("aten::_softmax", SOFTMAX, 20, 10, 2)) == []


def test_not_recorded_ops_leave_it_a_warning() -> None:
    (finding,) = found("TV101", kernel(GEMM, 0, 10), kernel(SOFTMAX, 10, 20), kernel(GEMM, 20, 30))
    assert (finding.severity, finding.confidence.value) == (Severity.WARNING, "inferred")
