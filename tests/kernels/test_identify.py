"""What names mean. Each case is a mistake that trace tools have made, or a spelling that profilers use."""

from __future__ import annotations

import polars as pl
import pytest

from traceview.kernels import identify, normalise
from traceview.knowledge.mangled import expand_mangled


def told(name: str) -> dict[str, object]:
    (row,) = identify(pl.Series([name])).iter_rows(named=True)
    return row


def what(name: str) -> tuple[object, object, object]:
    row = told(name)
    return row["family"], row["implementation"], row["provider"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("void f<(int)4, (bool)1>(int)", "f<4, 1>(int)"),
        ("void at::native::(anonymous namespace)::f<float>(float*)", "at::native::f<float>(float*)"),
        ("void at::native::<unnamed>::f(int)", "at::native::f(int)"),
        ("attn_fwd.kd", "attn_fwd"),
        ("void f<float>(float*) [clone .kd]", "f<float>(float*)"),
        ("attn_fwd [clone .kd]", "attn_fwd"),
        ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int>(int)", "internal::gemvx::kernel<int>(int)"),
        ("%all-reduce.1 = f32[8]{0} all-reduce(f32[8]{0} %p)", "all-reduce.1"),
        ("_ZN5aiter32fmha_fwd_hd192_hd128_bf16_causalE.kd", "aiter::fmha_fwd_hd192_hd128_bf16_causal"),
        ("ncclKernel(ncclDevKernelArgsStorage<(unsigned long)4096>)", "ncclKernel(ncclDevKernelArgsStorage<4096>)"),
    ],
)
def test_normalised_name(name: str, expected: str) -> None:
    assert normalise(pl.Series([name])).to_list() == [expected]


@pytest.mark.parametrize(
    ("mangled", "readable"),
    [
        (
            "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_4PipeIDF16bDF16_fEEEEEvv",
            "ck_tile::kentry<Rmsnorm2dFwd, Pipe, bfloat16_t, _Float16>",
        ),
        ("_ZN2ck6device12_GLOBAL__N_14convINS_4GemmELi16EEEvv", "ck::device::conv<Gemm>"),
        ("_Z27moe_align_block_size_kernelIiEvPKT_", "moe_align_block_size_kernel"),
        ("_ZN5aiter32fmha_fwd_hd192", "aiter::fmha_fwd_hd192"),
        ("_Z", "_Z"),
        ("not mangled", "not mangled"),
    ],
)
def test_mangled_name(mangled: str, readable: str) -> None:
    assert expand_mangled(mangled) == readable


ATTENTION = {
    # CUTLASS mem-efficient attention is fused, but it is not flash.
    "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>::Params)": (
        "mem-efficient",
        "pytorch",
    ),
    "fmha_cutlassB_f16_aligned_64x64_k64_sm80(AttentionBackwardKernel<cutlass::half_t>::Params)": (
        "mem-efficient",
        None,
    ),
    # One kernel, two builds.
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >": (
        "flash-2",
        "pytorch",
    ),
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4> >": ("flash-2", "flash-attn"),
    "flash_fwd_kernel": ("flash-2", None),
    "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2> > > >": (
        "flash-3",
        "flash-attn",
    ),
    "kernel_cutlass_kernel_flash_attncuteflash_fwd_sm100FlashAttentionForwardSm100_object_at__tensor0000o11101213_0": (
        "flash-4",
        "flash-attn",
    ),
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0": ("cudnn", "cudnn"),
    "attn_fwd.kd": ("aotriton", "pytorch"),
    "bwd_kernel_dk_dv": ("aotriton", "pytorch"),
    "kernel_unified_attention_2d": ("triton", "vllm"),
    "_fwd_grouped_kernel_stage1": ("triton", None),
    "_ZN5aiter31fmha_fwd_hd128_bf16_causal_rtneE.kd": ("aiter", "aiter"),
    "sage_fwd": ("aiter", "aiter"),
    "void ck_tile::kentry<256, 2, ck_tile::FmhaFwdKernel<ck_tile::Tile> >(Kargs)": ("ck", "ck"),
    "triton_tem_fused_flex_attention_0": ("flex", "inductor"),
    "void flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla<576, 64> >(Params)": ("mla", "flash-attn"),
    "RPA-bq_32-bkvp_64-p_64-.37": ("paged", None),
    "my_flash_attention_bwd_kernel": ("unknown", None),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name: str) -> None:
    assert what(name) == ("attention", *ATTENTION[name])
    assert told(name)["role"] == "main"


@pytest.mark.parametrize(
    "name",
    [
        "void pytorch_flash::flash_fwd_splitkv_combine_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 64> >(Params)",
        "void flash::flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<64, 128> >(Params)",
        "void flash::prepare_varlen_num_blocks_kernel<1, true>(int)",
        "void cutlass::device_kernel<flash::FlashAttnFwdCombine<cute::tuple<cute::C<8> > > >(Params)",
        "reduce_segments",
        "_fwd_kernel_stage2",
        "_attn_bwd_preprocess",
        "void vllm::paged_attention_v2_reduce_kernel<__half, 128, 128, 512>(__half*)",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float>(int)",
        "Cijk_B_PostGSU2",
        "void moe_align_block_size_kernel<int>(int const*)",
        "void cask_cudnn::computeOffsetsKernel<false, false>(cask_cudnn::ComputeOffsetsParams)",
    ],
)
def test_helpers_belong_to_another_kernel(name: str) -> None:
    assert told(name)["role"] == "helper"


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC(ncclSymkDevWorkArgs4K)",
        "ncclAllReduceRingLLKernel_sum_f32(ncclColl)",
        "void rcclGenericKernel<1, false>(ncclDevComm*)",
        "mscclKernel_Sum_half_Simple_false(ncclDevComm*, mscclAlgo*)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
        "void aiter::cross_device_reduce_2stage<__hip_bfloat16, 8, false>(int)",
        "void (anonymous namespace)::one_shot_all_reduce_kernel<float, 4>(float**)",
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
        "void deep_ep::intranode::dispatch<(int)2, (int)768, (int)8192>(int4*)",
        "void nvshmemi_alltoall_on_stream_kernel<int>(int)",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<2>(int)",
        "all-reduce-start.3",
        "psum.12",
    ],
)
def test_collectives(name: str) -> None:
    assert told(name)["family"] == "collective"


@pytest.mark.parametrize(
    "name",
    [
        "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN",
        "nvjet_sm100_qqtst_128x256_128x6_2x1_2cta_v_bz_bias_TNT",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x192x64_MI16x16x1_SN_LDSB1",
        "void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 4096u, 7168u>(float*)",
        "cutlass3x_sm100_tensorop_s128x256x8tf32gemm_f32_f32_f32_f32_f32_128x256x32_0_nnn_align4_2sm",
        "ampere_fp16_s16816gemm_fp16_128x64_ldg8_relu_f2f_stages_32x6_tn",
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4>(Params)",
        "_ZN2ck16tensor_operation6device37kernel_batched_gemm_xdlops_bwd_weightINS_4GemmEEEvv",
    ],
)
def test_matrix_units_used(name: str) -> None:
    assert told(name)["tensor_core"] is True


@pytest.mark.parametrize(
    "name",
    [
        "sm80_xmma_gemm_f16f16_f32f32_f32_nn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna2_alignc2_execute_kernel",
        "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nhwc_tilesize32x32x8_stage3_warpsize1x2x1_g1_ffma_x",
        "ampere_sgemm_128x64_nn",
        "ampere_fp16_sgemm_fp16_64x64_tn",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_nn_align1>(Params)",
        "void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 128, 16, 4, 4>(int)",
        "fmha_cutlassF_f32_notaligned_64x64_rf_sm75",
        "volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
        # Digits in template arguments are no instruction.
        "void at::native::vectorized_elementwise_kernel<884, at::native::CUDAFunctor_add<float>, std::array<char*, 16816ul> >(int)",
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(int)::{lambda(float)#1688}>(int)",
    ],
)
def test_matrix_units_not_used(name: str) -> None:
    assert told(name)["tensor_core"] is False


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", "bf16"),
        ("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNN", "fp16"),
        ("nvjet_sss_tf32_128x256_TNT", "tf32"),
        ("nvjet_sm100_qqtst_128x256_128x6_2x1_2cta_v_bz_bias_TNT", "fp8"),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize256x128x32_stage3_warpsize4x2x1_tensor16x8x8", "tf32"),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4>(Params)", "tf32"),
        ("cutlass_80_tensorop_s1688bf16gemm_128x128_32x3_tt_align1", "bf16"),
        ("Cijk_Alik_Bljk_F8B8BS_BH_Bias_HA_S_SAB_SAV_UserArgs_MT256x256x128_MI16x16x1", "fp8"),
        ("Cijk_Ailk_Bjlk_SB_Bias_AS_SAV_UserArgs_MT64x16x16_MI16x16x1_SN", "fp32"),
        ("bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3", "w4a8"),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1_swiglu", "w4a16"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16> >(int)", "bf16"),
        ("void softmax_warp_forward<c10::Half, float, float, 6, false, false>(float*)", "fp16"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<long> >(int)", None),
    ],
)
def test_precision(name: str, precision: str | None) -> None:
    assert told(name)["precision"] == precision


@pytest.mark.parametrize(
    ("name", "family"),
    [
        # Softmax between two products proves unfused attention; log-softmax proves nothing.
        ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, false, false>(float*)", "softmax"),
        ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, true, false>(float*)", "loss"),
        ("void <unnamed>::softmax_warp_forward<float, float, float, (int)9, (bool)1, (bool)0>(T2 *)", "loss"),
        (
            "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float, float, float, SoftMaxForwardEpilogue>(f)",
            "softmax",
        ),
        ("void cunn_SoftMaxForward<8, float, float, float, at::native::LogSoftMaxForwardEpilogue>(float*)", "loss"),
        ("void scaled_upper_triang_masked_softmax_warp_forward<__half, __half, float, 11>(__half*)", "softmax"),
        ("triton_per_fused__safe_softmax__to_copy_2", "softmax"),
        ("triton_red_fused__log_softmax_nll_loss_forward_1", "loss"),
        ("void topkGatingSoftmax<__nv_bfloat16, 8, 128, 4, 16>(__nv_bfloat16 const*)", "moe"),
        # The ops in an Inductor name say what was fused, not what the kernel is.
        ("triton_poi_fused_addmm_gelu_view_24", "elementwise"),
        ("triton_poi_fused__scaled_dot_product_efficient_attention_3", "elementwise"),
        ("triton_poi_fused_add_all_reduce_0", "elementwise"),
        ("triton_tem_fused_addmm_relu_3", "gemm"),
        ("triton_", "fusion"),
        # Words inside a name.
        ("loadmask_kernel(int)", "unknown"),
        ("Memcpy HtoD (Pageable -> Device)", "memcpy"),
        ("MemcpyD2H", "memcpy"),
        (
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 1, 128, 1>(float*)",
            "elementwise",
        ),
        # XLA.
        ("convolution_bitcast_fusion.63", "gemm"),
        ("gemm_fusion_dot_general_1.kd", "gemm"),
        ("loop_multiply_fusion_1", "elementwise"),
        ("input_add_reduce_fusion_6", "reduce"),
        ("copy-done.2", "memcpy"),
        ("fusion.12", "fusion"),
        # Somebody's own kernels.
        ("void clover::par_ranged2d_kernel<PdV_kernel(bool, int, int)>(clover::Range2d)", "unknown"),
        ("__missing__", "unknown"),
        ("my_kernel", "unknown"),
    ],
)
def test_family(name: str, family: str) -> None:
    assert told(name)["family"] == family


def test_a_name_of_megabytes_is_known_by_its_beginning() -> None:
    found = identify(pl.Series(["void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_f16" + "<float," * 1_000_000]))
    assert found["family"].to_list() == ["gemm"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("void vllm::act_and_mul_kernel<c10::BFloat16, true>(int)", ("elementwise", "activation", "vllm")),
        ("void flashinfer::activation::act_and_mul_kernel<half>(int)", ("elementwise", "activation", "flashinfer")),
        ("void vllm::moe::topkGating<8, 128>(float)", ("moe", "routing", "vllm")),
        ("void sgl_kernel::never_seen<float>(int)", ("unknown", None, "sglang")),
        # Somebody's own namespace tells nothing, nor does a namespace that only an argument names.
        ("void mine::act_and_mul_kernel<half>(int)", ("elementwise", "activation", None)),
        ("void never_seen<vllm::Op>(int)", ("unknown", None, None)),
    ],
)
def test_the_outermost_namespace_tells_the_provider(name: str, expected: tuple[object, object, object]) -> None:
    assert what(name) == expected
