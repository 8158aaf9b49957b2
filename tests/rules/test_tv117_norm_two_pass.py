"""Norms on their slow path."""

from __future__ import annotations

from rules.rule_case import found, ran

MOMENTS = "void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<float, float, false>(long, float)"
APPLY = "void at::native::(anonymous namespace)::LayerNormForwardCUDAKernel<float, float>(long, float const*)"
VECTORISED = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, false>(int, float)"
COPY = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda>>"
LAYER, GROUP = "aten::native_layer_norm", "aten::native_group_norm"


def test_positive_two_kernels_for_one_layer_norm() -> None:
    (finding,) = found("TV117", *ran(LAYER, MOMENTS, 0, 10, 1), *ran(LAYER, APPLY, 20, 10, 2))
    assert finding.title.startswith("1 layer norm ran as two kernels instead of one: 0.020 ms")
    assert finding.cost_ns == 10_000


def test_positive_a_copy_after_group_norm() -> None:
    (finding,) = found("TV117", *ran(GROUP, MOMENTS, 0, 10, 1), *ran("aten::copy_", COPY, 20, 10, 2))
    assert (finding.cost_ns, finding.confidence.value) == (10_000, "inferred")


def test_negative_one_kernel() -> None:
    assert found("TV117", *ran(LAYER, VECTORISED, 0, 10, 1)) == []
    assert found("TV117", *ran(GROUP, MOMENTS, 0, 10, 1)) == []


def test_not_recorded_op_says_nothing_of_group_norm() -> None:
    assert found("TV117", *ran("aten::other", MOMENTS, 0, 10, 1), *ran("aten::copy_", COPY, 20, 10, 2)) == []
