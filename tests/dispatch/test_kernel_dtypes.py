"""Which dtype kernel names prove, and which they do not."""

from __future__ import annotations

import pytest

from traceview.kernel_dtypes import proven_dtype

GEMM = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas"
HALF_GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_kernel__5x_cublas"
SOFTMAX = "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, Epilogue>(float*)"
PLAIN_COPY = "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda>>(int)"
CAST = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}, at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1>>(int)"
TO_HALF = "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}>(int)"
FLASH = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t>>(Params)"
EFFICIENT = "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)"


@pytest.mark.parametrize(
    ("implementation", "kernels", "dtype"),
    [
        ("math", [GEMM, SOFTMAX, PLAIN_COPY], "float32"),
        ("flash-2", [FLASH], "bfloat16"),
        ("mem-efficient", [EFFICIENT], "float32"),
        # PyTorch computes in float32 for half inputs too, and converts before and after.
        ("math", [GEMM, SOFTMAX, CAST], None),
        ("math", [GEMM, SOFTMAX, TO_HALF], None),
        ("math", [GEMM, SOFTMAX, "triton_poi_fused__to_copy_0"], None),
        ("math", [GEMM, SOFTMAX, "my_kernel"], None),
        ("math", [HALF_GEMM, SOFTMAX], None),
        ("math", [GEMM, HALF_GEMM, SOFTMAX], None),
        ("math", [SOFTMAX], None),
        ("math", [], None),
        # cuDNN writes f16 for bfloat16 as well.
        ("cudnn", ["cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0"], None),
        ("unfused", [GEMM, SOFTMAX], None),
    ],
)  # fmt: skip
def test_proven_dtype(implementation: str, kernels: list[str], dtype: str | None) -> None:
    assert proven_dtype(implementation, kernels) == dtype
