"""Weights unpacked before each product."""

from __future__ import annotations

from authored_timeline import kernel
from rules.rule_case import ADD, GEMM, found

UNPACK = (
    "void kDequantizeBlockwise<__nv_bfloat16, 512, 64, 8, 2>(float*, unsigned char*, float*, __nv_bfloat16*, int, int)"
)


def test_positive_unpack_then_multiply() -> None:
    (finding,) = found("TV113", kernel(UNPACK, 0, 10), kernel(GEMM, 10, 30))
    assert finding.cost_ns == 10_000


def test_negative_unpacked_for_something_else() -> None:
    assert found("TV113", kernel(UNPACK, 0, 10), kernel(ADD, 10, 30)) == []


def test_not_recorded_next_kernel() -> None:
    assert found("TV113", kernel(UNPACK, 0, 10)) == []
