"""Element-wise kernels over strided operands."""

from __future__ import annotations

from authored_timeline import Event, kernel
from rules.rule_case import ADD, GEMM, found

STRIDED = (
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::CUDAFunctor_add<c10::Half>>>"
)


def strided(start_us: float, each_us: float, count: int, name: str = STRIDED) -> list[Event]:
    return [kernel(name, start_us + i * each_us, start_us + (i + 1) * each_us) for i in range(count)]


def test_positive_most_of_the_elementwise_time() -> None:
    (finding,) = found("TV119", *strided(0, 6, 10), kernel(ADD, 60, 100))
    assert finding.cost_ns == 60_000


def test_negative_little_of_it() -> None:
    assert found("TV119", *strided(0, 4, 10), kernel(ADD, 40, 100)) == []
    assert found("TV119", *strided(0, 0.5, 10), kernel(GEMM, 5, 100)) == []
    assert found("TV119", *strided(0, 6, 9), kernel(ADD, 60, 100)) == []


def test_negative_a_contiguous_cast_on_rocm() -> None:
    assert found("TV119", *strided(0, 6, 10, STRIDED.replace("128, 4", "512, 1"))) == []


def test_not_recorded_kernel_name() -> None:
    assert found("TV119", *strided(0, 6, 10, "elementwise_kernel")) == []
