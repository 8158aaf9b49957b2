"""Kernels that only convert types."""

from __future__ import annotations

from authored_timeline import kernel
from rules.rule_case import GEMM, found

CAST = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)>"
)


def test_positive_a_tenth_of_the_time() -> None:
    (finding,) = found("TV205", kernel(CAST, 0, 10), kernel(GEMM, 10, 100))
    assert finding.cost_ns == 10_000


def test_negative_a_few_casts() -> None:
    assert found("TV205", kernel(CAST, 0, 4), kernel(GEMM, 4, 100)) == []


def test_not_recorded_kernel_name() -> None:
    assert found("TV205", kernel("cast", 0, 10)) == []
