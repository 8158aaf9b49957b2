"""Kernel names are shortened so that they still say which kernel it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceview.render.names import kernel_name, kernel_names, middle_cut, plain

FLASH = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t, Flash_kernel_traits<64, 128, 128, 4, cutlass::bfloat16_t> >, false, true, false>(pytorch_flash::Flash_fwd_params)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)"
CUTLASS = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x64_32x4_nn_align8>(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x64_32x4_nn_align8::Params)"
SOFTMAX = "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float, c10::BFloat16, at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(c10::BFloat16*, c10::BFloat16 const*, int)"
COPY = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda(c10::BFloat16)#1}>(at::TensorIteratorBase&, int)::{lambda(int)#2}>(int, at::native::gpu_kernel_impl_nocast<int>)"
XMMA = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"


@pytest.mark.parametrize(
    ("name", "width", "shown"),
    [
        (FLASH, 400, FLASH),
        (FLASH, 80, "pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<...>, ...>"),
        (FLASH, 40, "pytorch_flash::flash_fwd_kernel<...>"),
        (FLASH, 32, "pytorch_flash::flash_fwd_kernel"),
        (FLASH, 24, "flash_fwd_kernel"),
        (ADD, 100, "vectorized_elementwise_kernel<4, CUDAFunctor_add<BFloat16>, array<char*, 3ul> >"),
        (ADD, 60, "vectorized_elementwise_kernel<CUDAFunctor_add<...>, ...>"),
        (ADD, 40, "vectorized_...kernel<CUDAFu..._add, ...>"),
        (CUTLASS, 90, "cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x64_32x4_nn_align8>"),
        (CUTLASS, 50, "cutlass_80_tensorop_bf16_s168...x64_32x4_nn_align8"),
        (SOFTMAX, 60, "cunn_SoftMaxForward<BFloat16, ...>"),
        (SOFTMAX, 30, "cunn_SoftMaxForward<...>"),
        (XMMA, 40, "sm90_xmma_gemm_bf16bf16...nel__5x_cublas"),
        ("std::enable_if<(((8)>(0))) && true, void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(int)", 60, "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>"),
        (COPY, 60, "elementwise_kernel<direct_copy_kernel_cuda, ...>"),
        ("attn_fwd.kd", 20, "attn_fwd.kd"),
        ("Memcpy HtoD (Pageable -> Device)", 32, "Memcpy HtoD (Pageable -> Device)"),
        ("aten::scaled_dot_product_attention", 20, "scaled_dot_...ention"),
    ],
)  # fmt: skip
def test_names_that_occur(name, width, shown):
    assert kernel_name(name, width) == shown


@given(st.text(alphabet="ab:<>(), _1-{}\x1b", max_size=80), st.integers(8, 60))
def test_any_name_fits_and_holds_nothing_a_terminal_obeys(name, width):
    shown = kernel_name(name, width)
    assert len(shown) <= width
    assert "\x1b" not in shown


def test_what_a_terminal_obeys_is_shown():
    assert plain("\x1b[31mred\u202e\n") == "\\x1b[31mred\\x202e\\x0a"


def test_a_cut_keeps_both_ends():
    assert middle_cut("abcdefghijklmnopqrstuvwxyz", 13) == "abcdef...wxyz"


def test_variants_that_would_shorten_alike_are_told_apart():
    dense = "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext"
    window = "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvSlidingOrChunkedCausalP16VarSeqQ128Kv128PersistentContext"
    one, other, third = kernel_names([dense, window, "short"], 60)
    assert "Causal" in one
    assert "Sliding" in other
    assert third == "short"
    assert max(map(len, (one, other))) <= 60
    assert kernel_names([dense, dense], 60) == [kernel_name(dense, 60)] * 2
