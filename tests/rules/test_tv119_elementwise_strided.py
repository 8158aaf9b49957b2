"""Element-wise kernels over strided operands."""

from __future__ import annotations

from authored_timeline import kernel
from rules.rule_case import ADD, GEMM, found

STRIDED = (
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::CUDAFunctor_add<c10::Half>>>"
)


def test_positive_most_of_the_elementwise_time() -> None:
    (finding,) = found("TV119", kernel(STRIDED, 0, 60), kernel(ADD, 60, 100))
    assert finding.cost_ns == 60_000


def test_negative_little_of_it() -> None:
    assert found("TV119", kernel(STRIDED, 0, 40), kernel(ADD, 40, 100)) == []
    assert found("TV119", kernel(STRIDED, 0, 5), kernel(GEMM, 5, 100)) == []


def test_negative_a_contiguous_cast_on_rocm() -> None:
    assert found("TV119", kernel(STRIDED.replace("128, 4", "512, 1"), 0, 60)) == []


def test_not_recorded_kernel_name() -> None:
    assert found("TV119", kernel("elementwise_kernel", 0, 60)) == []
