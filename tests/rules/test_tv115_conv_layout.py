"""Layout conversions around convolutions."""

from __future__ import annotations

from authored_timeline import kernel
from rules.rule_case import ADD, found

CONVERSION = "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>(Params)"
CONVOLUTION = "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x32x64_stage5_warpsize2x2x1_g1_tensor16x8x8_execute_kernel__5x_cudnn"


def test_positive_conversion_before_a_convolution() -> None:
    (finding,) = found("TV115", kernel(CONVERSION, 0, 10), kernel(CONVOLUTION, 10, 90))
    assert finding.cost_ns == 10_000


def test_negative_too_little_to_matter() -> None:
    assert found("TV115", kernel(CONVERSION, 0, 1), kernel(CONVOLUTION, 1, 100)) == []


def test_not_recorded_kernel_identity() -> None:
    assert found("TV115", kernel("some_conversion", 0, 10), kernel(ADD, 10, 90)) == []
