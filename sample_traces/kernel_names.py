"""Kernel names as profilers record them.

Families and tokens were read in shipped binaries and public traces: libtorch 2.9 (flash, mem-efficient, ATen),
cuBLASLt 12.8 (GEMM), cuDNN 9.10 (convolution), public traces (nvjet, cuDNN attention, Triton, Tensile, AOTriton,
NCCL). Template arguments that depend on shape and dtype are filled in to fit the samples, and the Tensile name is
shortened. Lambda numbers inside ATen names differ from build to build; no reader may depend on them.
"""

# ruff: noqa: E501 - a kernel name is one word.
from __future__ import annotations

from typing import Final


def vectorized(functor: str, arrays: int, width: int = 4) -> str:
    """ATen's dense element-wise kernel for one functor."""
    data = f"std::array<char*, {arrays}ul>"
    return f"void at::native::vectorized_elementwise_kernel<{width}, {functor}, {data} >(int, {functor}, {data})"


def strided(functor: str, width: int) -> str:
    """ATen's element-wise kernel for strided or broadcast operands."""
    inner = (
        f"at::native::gpu_kernel_impl_nocast<{functor}>(at::TensorIteratorBase&, {functor} const&)::{{lambda(int)#1}}"
    )
    return f"void at::native::elementwise_kernel<128, {width}, {inner}>(int, {inner})"


_MUL = "at::native::AUnaryFunctor<{0}, {0}, {0}, at::native::binary_internal::MulFunctor<float> >"
_COPY = (
    "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{{lambda()#3}}::operator()() const::"
    "{{lambda()#{0}}}::operator()() const::{{lambda({1})#1}}"
)
_AND = (
    "at::native::func_wrapper_t<bool, at::native::and_kernel_cuda(at::TensorIterator&)::{lambda()#1}::operator()() "
    "const::{lambda()#12}::operator()() const::{lambda(bool, bool)#1}>"
)
_REDUCE_AND = f"at::native::ReduceOp<bool, {_AND}, unsigned int, bool, 4, 4>"

MUL_F32: Final = vectorized(_MUL.format("float"), 2)
MUL_BF16: Final = vectorized(_MUL.format("c10::BFloat16"), 2, 8)
ADD_F32: Final = vectorized("at::native::CUDAFunctor_add<float>", 3)
ADD_BF16: Final = vectorized("at::native::CUDAFunctor_add<c10::BFloat16>", 3, 8)
FILL_F32: Final = vectorized("at::native::FillFunctor<float>", 1)
FILL_BOOL: Final = vectorized("at::native::FillFunctor<bool>", 1)
ISNEGINF_F32: Final = vectorized(
    "at::native::isneginf_kernel_impl(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::"
    "{lambda()#2}::operator()() const::{lambda(float)#1}",
    2,
)
TO_BF16: Final = vectorized("at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}", 2)
TO_F32: Final = (
    f"void at::native::unrolled_elementwise_kernel<{_COPY.format(7, 'float')}, std::array<char*, 2ul>, 4, "
    "TrivialOffsetCalculator<1, unsigned int>, TrivialOffsetCalculator<1, unsigned int>, "
    "at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >"
    f"(int, {_COPY.format(7, 'float')}, std::array<char*, 2ul>, TrivialOffsetCalculator<1, unsigned int>, "
    "TrivialOffsetCalculator<1, unsigned int>, at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1>)"
)
COPY_F32: Final = strided(_COPY.format(7, "float"), 2)
COPY_BF16: Final = strided(_COPY.format(12, "c10::BFloat16"), 4)
WHERE_F32: Final = strided(
    "at::native::(anonymous namespace)::where_kernel_impl(at::TensorIterator&)::{lambda()#1}::operator()() const::"
    "{lambda()#7}::operator()() const::{lambda(bool, float, float)#1}",
    4,
)
ALL_BOOL: Final = f"void at::native::reduce_kernel<512, 1, {_REDUCE_AND} >({_REDUCE_AND})"
GELU_BF16: Final = vectorized(
    "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::"
    "{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}",
    2,
    8,
)
LAYER_NORM_BF16: Final = (
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, false>(int, float, "
    "c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, c10::BFloat16*)"
)


def softmax_warp(source: str, target: str, log2: int) -> str:
    """ATen's softmax for rows of up to 1024 elements."""
    return (
        f"void (anonymous namespace)::softmax_warp_forward<{source}, {target}, float, {log2}, false, false>"
        f"({target}*, {source} const*, int, int, int, bool const*, int, bool)"
    )


def softmax_block(dtype: str, width: int) -> str:
    """ATen's softmax for longer rows."""
    return (
        f"void at::native::(anonymous namespace)::cunn_SoftMaxForward<{width}, {dtype}, float, {dtype}, "
        f"at::native::(anonymous namespace)::SoftMaxForwardEpilogue>({dtype}*, {dtype} const*, int)"
    )


def flash2(namespace: str, head_dim: int, dtype: str, *, causal: bool = False) -> str:
    """FlashAttention-2, forward; the namespace is all that tells PyTorch's copy from the pip package."""
    block_n = 64 if head_dim > 64 else 128
    traits = f"{head_dim}, 128, {block_n}, 4, false, false, cutlass::{dtype}"
    flags = f"false, {str(causal).lower()}, false, false, true, true, false, false"
    full = f"Flash_fwd_kernel_traits<{traits}, Flash_kernel_traits<{head_dim}, 128, {block_n}, 4, cutlass::{dtype}> >"
    return f"void {namespace}::flash_fwd_kernel<{full}, {flags}>({namespace}::Flash_fwd_params)"


MEM_EFFICIENT_F32: Final = (
    "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float, cutlass::arch::Sm80, true, "
    "64, 64, 64, true, true>::Params)"
)
CUDNN_SDPA: Final = "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0"
UNIFIED_2D: Final = "kernel_unified_attention_2d"
AOTRITON: Final = "attn_fwd"

GEMM_BF16_H100: Final = "nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NNT"
GEMM_BF16_A100: Final = "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_32x3_nn"
GEMM_F32_SIMT_QK: Final = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas"
GEMM_F32_SIMT_PV: Final = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas"
GEMM_F32_SIMT_A100: Final = "ampere_sgemm_128x64_nn"
GEMM_BF16_MI300: Final = (
    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0_"
    "DTVA0_DTVB0_EPS0_ISA942_IU1_K1_LRVW8_MIAV0_MIWT8_6_PGR2_PLR1_SIA3_SS1_SRVW0_TLDS1_WS64_WG32_8_1"
)
CONV_BF16: Final = (
    "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize64x64x64_warpgroupsize1x1x1_g1_"
    "execute_segment_k_off_kernel__5x_cudnn"
)
CACHE_WRITE: Final = (
    "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>"
    "(__nv_bfloat16 const*, __nv_bfloat16 const*, __nv_bfloat16*, __nv_bfloat16*, long const*, long, long, long, long, "
    "long, int, int, int, float const*, float const*)"
)
RMS_NORM: Final = (
    "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long, c10::BFloat16*, c10::BFloat16 const*, "
    "float, int, int)"
)
NCCL_ALL_REDUCE: Final = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
_ARGMAX = "at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4, 4>"
ARGMAX_F32: Final = f"void at::native::reduce_kernel<512, 1, {_ARGMAX} >({_ARGMAX})"
_LIST = "at::native::(anonymous namespace)::TensorListMetadata<2>"
_AXPY = "at::native::(anonymous namespace)::BinaryOpListAlphaFunctor<c10::BFloat16, 2, 2, 0>, std::plus<float>, float"
FOREACH_ADD: Final = (
    f"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<{_LIST}, {_AXPY}>({_LIST}, {_AXPY})"
)
CONV_F32_SIMT: Final = (
    "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize128x32x8_stage3_warpsize2x2x1_g1_ffma_"
    "aligna4_alignc4_execute_kernel__5x_cudnn"
)
ROTARY: Final = (
    "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, c10::BFloat16*, "
    "c10::BFloat16 const*, int, long, long, long, int, int, int)"
)
SILU_MUL: Final = (
    "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 "
    "const&)), true>(c10::BFloat16*, c10::BFloat16 const*, int)"
)
