"""Op chains as PyTorch records them: each function writes one call with its children, launches and kernels.

The order of the ops follows real recordings: attention by math and the small ops as torch 2.13 records them on a
CPU (``torch-cpu-attention`` in this folder), flash and GEMM as public CUDA and ROCm traces have them. Kernel
times are arguments, chosen by the author of a sample.
"""

# ruff: noqa: SIM117 - one `with` a level, as the ops nest in the trace.
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from sample_traces import kernel_names as k
from sample_traces.authoring import Tensor

if TYPE_CHECKING:
    from sample_traces.authoring import Thread

BF16: Final = "c10::BFloat16"
F32: Final = "float"


def as_strided(t: Thread, parent: str, view: Tensor, *arguments: object, result: Tensor) -> None:
    """A view op and the ``as_strided`` it ends in."""
    with t.op(parent, view, *arguments, us=1.3):
        t.call("aten::as_strided", view, list(result.shape), list(result.strides), None, us=0.311)


def transpose(t: Thread, x: Tensor, a: int, b: int) -> Tensor:
    """``x.transpose(a, b)``."""
    result = x.swap(a, b)
    as_strided(t, "aten::transpose", x, a, b, result=result)
    return result


def empty_like(t: Thread, x: Tensor) -> None:
    """``torch.empty_like(x)``."""
    with t.op("aten::empty_like", x, None, None, None, None, None, us=2.9):
        t.call("aten::empty_strided", list(x.shape), list(x.strides), None, None, None, None, us=2.417)


def cast(t: Thread, x: Tensor, dtype: str, us: float) -> Tensor:
    """``x.to(dtype)``, one copy kernel."""
    code = {"float": 6, BF16: 15}[dtype]
    with t.op("aten::to", x, code, False, False, None, us=1.2):
        with t.op("aten::_to_copy", x, code, None, None, None, False, None, us=2.3):
            t.call("aten::empty_strided", list(x.shape), list(x.strides), code, None, None, None, us=2.618)
            with t.op("aten::copy_", x.to(dtype), x, False, us=2.2):
                t.launch(k.TO_F32 if dtype == "float" else k.TO_BF16, us=us, regs=24)
    return x.to(dtype)


def linear(
    t: Thread, x: Tensor, out: int, *, us: float, kernel: str = k.GEMM_BF16_H100, api: str = "cudaLaunchKernelExC"
) -> Tensor:
    """``torch.nn.functional.linear(x, weight, bias)``."""
    inner = x.shape[-1]
    rows = math.prod(x.shape[:-1])
    weight, bias = Tensor(out, inner, dtype=x.dtype), Tensor(out, dtype=x.dtype)
    flat, result = Tensor(rows, inner, dtype=x.dtype), Tensor(rows, out, dtype=x.dtype)
    with t.op("aten::linear", x, weight, bias, us=3.8):
        t.call("aten::view", x, [rows, inner], us=0.8)
        with t.op("aten::t", weight, us=1.1):
            transpose(t, weight, 0, 1)
        with t.op("aten::addmm", bias, flat, weight.swap(0, 1), 1, 1, us=9.7):
            as_strided(t, "aten::expand", bias, [rows, out], False, result=result)
            t.launch(kernel, us=us, api=api, grid=(132, 1, 1), block=(384, 1, 1), regs=168, smem=214016)
        t.call("aten::view", result, [*x.shape[:-1], out], us=0.6)
    return Tensor(*x.shape[:-1], out, dtype=x.dtype)


def layer_norm(t: Thread, x: Tensor, *, us: float) -> None:
    """``torch.nn.functional.layer_norm`` over the last dimension."""
    size = x.shape[-1]
    weight = Tensor(size, dtype=x.dtype)
    with t.op("aten::layer_norm", x, [size], weight, weight, 1e-05, True, us=2.2):
        with t.op("aten::native_layer_norm", x, [size], weight, weight, 1e-05, us=6.1):
            for _ in range(3):
                t.call("aten::empty", list(x.shape), 15, 0, None, False, None, us=1.9)
            t.launch(k.LAYER_NORM_BF16, us=us, grid=(x.shape[-2], 1, 1), regs=32)


def elementwise(t: Thread, op: str, *inputs: object, kernel: str, us: float) -> None:
    """An op of one kernel."""
    with t.op(op, *inputs, us=3.4):
        t.launch(kernel, us=us, regs=24)


def heads(t: Thread, x: Tensor, count: int, dim: int) -> Tensor:
    """``x.view(batch, seq, heads, dim).transpose(1, 2)``."""
    batch, seq = x.shape[0], x.shape[1]
    t.call("aten::view", x, [batch, seq, count, dim], us=0.9)
    return transpose(t, Tensor(batch, seq, count, dim, dtype=x.dtype), 1, 2)


def matmul(t: Thread, a: Tensor, b: Tensor, *, kernel: str, us: float) -> Tensor:
    """A batched ``a @ b`` of two 4-D tensors through ``aten::bmm``."""
    batch = a.shape[0] * a.shape[1]
    flat = [Tensor(batch, *x.shape[2:], dtype=x.dtype, strides=x.strides[1:]) for x in (a, b)]
    result = Tensor(batch, a.shape[2], b.shape[3], dtype=a.dtype)
    with t.op("aten::matmul", a, b, us=4.6):
        for x, y in zip((a, b), flat, strict=True):
            as_strided(t, "aten::expand", x, list(x.shape), False, result=x)
            with t.op("aten::reshape", x, list(y.shape), us=1.2):
                t.call("aten::view", x, list(y.shape), us=0.5)
        with t.op("aten::bmm", *flat, us=8.9):
            t.launch(kernel, us=us, grid=(a.shape[2] // 32, b.shape[3] // 32, batch), block=(256, 1, 1), regs=122)
        t.call("aten::_unsafe_view", result, [*a.shape[:3], b.shape[3]], us=1.1)
    return Tensor(*a.shape[:3], b.shape[3], dtype=a.dtype)


def flash_forward(
    t: Thread, q: Tensor, kv: Tensor, *, us: float, kernel: str, scale: float, rocm: bool = False
) -> None:
    """What ``aten::_scaled_dot_product_flash_attention`` does: three transposes, one fused kernel."""
    with t.op("aten::_scaled_dot_product_flash_attention", q, kv, kv, 0.0, False, False, scale, us=4.1):
        for x in (q, kv, kv):
            transpose(t, x, 1, 2)
        qt, kt = q.swap(1, 2), kv.swap(1, 2)
        rest = (None, None, q.shape[2], kv.shape[2], 0.0, False, False, scale, None, None, None, None)
        with t.op("aten::_flash_attention_forward", qt, kt, kt, *rest, us=11.2):
            if rocm:
                t.api("hipGetDevice", us=0.152)
            empty_like(t, qt)
            t.call("aten::empty", [*q.shape[:3]], 6, 0, None, None, None, us=2.1)
            if rocm:
                t.launch(kernel, us=us, api="hipModuleLaunchKernel", grid=(q.shape[2] // 128, q.shape[1], q.shape[0]))
            else:
                t.api("cudaStreamIsCapturing", us=1.07)
                t.call("aten::empty", [2], 4, None, None, None, None, us=1.6)
                t.api("cudaFuncSetAttribute", us=1.133)
                grid = (q.shape[2] // 128 or 1, q.shape[0], q.shape[1])
                t.launch(kernel, us=us, grid=grid, regs=255, smem=49152)
            t.call("aten::empty", [0], 15, 0, None, None, None, us=1.4)
        transpose(t, qt, 1, 2)


def sdpa_flash(
    t: Thread, q: Tensor, kv: Tensor, *, us: float, gqa: bool = False, kernel: str = "", rocm: bool = False
) -> None:
    """``scaled_dot_product_attention`` that PyTorch hands to FlashAttention-2 (AOTriton on ROCm)."""
    name = kernel or k.flash2("pytorch_flash", q.shape[3], "bfloat16_t" if q.dtype == BF16 else "half_t")
    with t.op("aten::scaled_dot_product_attention", q, kv, kv, None, 0.0, False, None, gqa, us=5.3):
        flash_forward(t, q, kv, us=us, kernel=name, scale=q.shape[3] ** -0.5, rocm=rocm)


def sdpa_efficient(t: Thread, q: Tensor, kv: Tensor, mask: Tensor, *, us: float) -> None:
    """``scaled_dot_product_attention`` with a mask that PyTorch hands to the memory-efficient kernel."""
    full = Tensor(q.shape[0], q.shape[1], q.shape[2], kv.shape[2], dtype=mask.dtype, strides=(0, 0, kv.shape[2], 1))
    with t.op("aten::scaled_dot_product_attention", q, kv, kv, mask, 0.0, False, None, False, us=6.0):
        as_strided(t, "aten::expand", mask, list(full.shape), False, result=full)
        arguments = (full, False, 0.0, False, q.shape[3] ** -0.5)
        with t.op("aten::_scaled_dot_product_efficient_attention", q, kv, kv, *arguments, us=4.4):
            for x in (q, kv, kv):
                transpose(t, x, 1, 2)
            qt, kt = q.swap(1, 2), kv.swap(1, 2)
            with t.op("aten::_efficient_attention_forward", qt, kt, kt, full, None, None, None, None, 0.0, 0, us=10.4):
                t.call("aten::empty", list(qt.shape), 6, 0, None, None, None, us=2.2)
                t.api("cudaFuncSetAttribute", us=1.133)
                grid = (q.shape[2] // 64, q.shape[1], q.shape[0])
                t.launch(k.MEM_EFFICIENT_F32, us=us, grid=grid, block=(32, 4, 1), regs=168, smem=36864)
            transpose(t, qt, 1, 2)


def sdpa_cudnn(t: Thread, q: Tensor, kv: Tensor, *, us: float) -> None:
    """``scaled_dot_product_attention`` that PyTorch hands to cuDNN; the launch goes through the driver API."""
    scale = q.shape[3] ** -0.5
    with t.op("aten::scaled_dot_product_attention", q, kv, kv, None, 0.0, False, None, False, us=5.1):
        arguments = (None, False, 0.0, False, False, scale)
        with t.op("aten::_scaled_dot_product_cudnn_attention", q, kv, kv, *arguments, us=3.9):
            rest = (None, None, None, q.shape[2], kv.shape[2], False, 0.0, False, False, scale)
            with t.op("aten::_cudnn_attention_forward", q, kv, kv, *rest, us=24.7):
                empty_like(t, q)
                grid = (q.shape[2] // 128, q.shape[1], q.shape[0])
                t.launch(
                    k.CUDNN_SDPA, us=us, api="cuLaunchKernelEx", grid=grid, block=(384, 1, 1), regs=168, smem=212992
                )


def flash_attn_package(t: Thread, q: Tensor, kv: Tensor, *, us: float) -> None:
    """``flash_attn_func`` of the flash-attn package; no ``aten::scaled_dot_product_attention`` above it."""
    with t.op("FlashAttnFunc", us=7.7):
        rest = (0.0, q.shape[3] ** -0.5, True, -1, -1, 0.0, None, False)
        with t.op("flash_attn::_flash_attn_forward", q, kv, kv, *rest, us=14.8):
            empty_like(t, q)
            t.call("aten::empty", [q.shape[0], q.shape[2], q.shape[1]], 6, None, None, None, None, us=1.8)
            t.api("cudaFuncSetAttribute", us=1.133)
            kernel = k.flash2("flash", q.shape[3], "half_t", causal=True)
            t.launch(kernel, us=us, grid=(q.shape[1] // 128, q.shape[0], q.shape[2]), regs=255, smem=65536)


def repeat_interleave(t: Thread, x: Tensor, times: int, *, us: float) -> Tensor:
    """Key or value heads repeated for grouped queries: one strided copy."""
    b, h, s, d = x.shape
    five = Tensor(b, h, 1, s, d, dtype=x.dtype)
    wide = Tensor(b, h, times, s, d, dtype=x.dtype, strides=(h * s * d, s * d, 0, d, 1))
    dense = Tensor(b, h, times, s, d, dtype=x.dtype)
    with t.op("aten::repeat_interleave", x, times, -3, None, us=3.6):
        as_strided(t, "aten::unsqueeze", x, 2, result=five)
        as_strided(t, "aten::expand", five, [b, h, times, s, d], False, result=wide)
        with t.op("aten::clone", wide, 0, us=2.0):
            with t.op("aten::empty_like", wide, None, None, None, None, 0, us=2.2):
                t.call("aten::empty", [b, h, times, s, d], 6, 0, None, False, 0, us=2.3)
            with t.op("aten::copy_", dense, wide, False, us=2.4):
                t.launch(k.COPY_F32, us=us, regs=28)
        with t.op("aten::flatten", dense, 1, 2, us=1.0):
            t.call("aten::view", dense, [b, h * times, s, d], us=0.5)
    return Tensor(b, h * times, s, d, dtype=x.dtype)


def scale_by(t: Thread, x: Tensor, factor: float, *, us: float, kernel: str = k.MUL_F32) -> None:
    """``x * factor``."""
    with t.op("aten::mul", x, factor, us=1.3):
        with t.op("aten::mul", x, Tensor(dtype="double"), us=3.6):
            t.launch(kernel, us=us, regs=24)


def safe_softmax(t: Thread, scores: Tensor, *, us: tuple[float, float, float, float]) -> None:
    """``aten::_safe_softmax``: softmax, then rows that are all minus infinity become zero."""
    soft, isinf, every, where = us
    rows = Tensor(*scores.shape[:-1], 1, dtype="bool")
    with t.op("aten::_safe_softmax", scores, -1, None, us=3.1):
        with t.op("aten::softmax", scores, -1, None, us=1.7):
            with t.op("aten::_softmax", scores, -1, False, us=5.2):
                t.launch(
                    k.softmax_block("float", 4), us=soft, grid=(math.prod(scores.shape[:-1]), 1, 1), block=(1024, 1, 1)
                )
        elementwise(t, "aten::isneginf", scores, kernel=k.ISNEGINF_F32, us=isinf)
        with t.op("aten::all", scores.to("bool"), -1, True, us=8.3):
            t.launch(k.ALL_BOOL, us=every, block=(32, 16, 1), regs=32)
        with t.op("aten::scalar_tensor", 0.0, 6, 0, None, None, us=4.0):
            t.call("aten::empty", [], 6, 0, None, None, None, us=1.9)
            elementwise(t, "aten::fill_", Tensor(), 0.0, kernel=k.FILL_F32, us=1.216)
        elementwise(t, "aten::where", rows, Tensor(), scores, kernel=k.WHERE_F32, us=where)


def sdpa_math_gqa(
    t: Thread, q: Tensor, kv: Tensor, *, bmm_us: float, softmax_us: tuple[float, float, float, float]
) -> None:
    """``scaled_dot_product_attention(…, enable_gqa=True)`` in float32: every fused kernel refuses, math runs."""
    times = q.shape[1] // kv.shape[1]
    root = q.shape[3] ** -0.25
    with t.op("aten::scaled_dot_product_attention", q, kv, kv, None, 0.0, False, None, True, us=5.6):
        with t.op("aten::_scaled_dot_product_attention_math", q, kv, kv, None, 0.0, False, None, None, True, us=7.2):
            scale_by(t, q, root, us=21.5)
            keys = repeat_interleave(t, kv, times, us=17.3)
            values = repeat_interleave(t, kv, times, us=17.2)
            keys_t = transpose(t, keys, 2, 3)
            scale_by(t, keys_t, root, us=21.6)
            scores = matmul(t, q, keys_t, kernel=k.GEMM_F32_SIMT_QK, us=bmm_us)
            safe_softmax(t, scores, us=softmax_us)
            t.call("aten::to", scores, 6, False, False, None, us=0.7)
            matmul(t, scores, values, kernel=k.GEMM_F32_SIMT_PV, us=bmm_us)
            t.call("aten::to", q, 6, False, False, None, us=0.5)
