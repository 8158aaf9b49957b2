"""Authored samples about attention: the fast path asked for and refused, written by hand, and side by side."""

# ruff: noqa: SIM117 - one `with` a level, as the ops nest in the trace.
from __future__ import annotations

from typing import TYPE_CHECKING

from sample_traces import kernel_names as k
from sample_traces import op_chains as ops
from sample_traces.authoring import A100, H100, Tensor, Trace
from sample_traces.op_chains import BF16

if TYPE_CHECKING:
    from sample_traces.authoring import Thread


def _text_encoder(t: Thread) -> None:
    x = Tensor(1, 256, 1024, dtype=BF16)
    with t.range("text_encoder"):
        ops.layer_norm(t, x, us=2.9)
        q = ops.heads(t, ops.linear(t, x, 1024, us=6.4), 16, 64)
        with t.dispatch("attention", "flash-2", "pytorch", stage="text_encoder"):
            ops.sdpa_flash(t, q, q, us=11.7)
        ops.linear(t, x, 1024, us=6.3)
        h = ops.linear(t, x, 4096, us=14.2)
        ops.elementwise(t, "aten::gelu", h, "none", kernel=k.GELU_BF16, us=3.1)
        ops.linear(t, h, 1024, us=14.9)


def _denoise_layer(t: Thread, *, upcast: bool) -> None:
    x = Tensor(1, 4096, 1024, dtype=BF16)
    ops.layer_norm(t, x, us=9.3)
    q = ops.heads(t, ops.linear(t, x, 1024, us=27.5), 16, 64)
    kv = ops.heads(t, ops.linear(t, x, 512, us=15.1), 4, 64)
    if upcast:  # Cast for the rotary embedding, and never back.
        q, kv = ops.cast(t, q, "float", 12.4), ops.cast(t, kv, "float", 4.2)
        with t.dispatch("attention", "math", "pytorch", stage="denoise"):
            ops.sdpa_math_gqa(t, q, kv, bmm_us=704.3, softmax_us=(803.8, 441.6, 118.9, 788.2))
        ops.cast(t, q, BF16, 12.3)
    else:
        with t.dispatch("attention", "flash-2", "pytorch", stage="denoise"):
            ops.sdpa_flash(t, q, kv, us=171.4, gqa=True)
    ops.linear(t, x, 1024, us=27.4)
    h = ops.linear(t, x, 4096, us=96.6)
    ops.elementwise(t, "aten::gelu", h, "none", kernel=k.GELU_BF16, us=25.2)
    ops.linear(t, h, 1024, us=98.1)
    ops.elementwise(t, "aten::add", x, x, 1, kernel=k.ADD_BF16, us=10.7)


def _vae_decode(t: Thread) -> None:
    with t.range("vae_decode"):
        for channels, us in ((64, 402.6), (64, 811.5), (32, 395.7)):
            x, w = Tensor(1, 64, 512, 512, dtype=BF16), Tensor(channels, 64, 3, 3, dtype=BF16)
            bias = Tensor(channels, dtype=BF16)
            with t.op("aten::conv2d", x, w, bias, [1, 1], [1, 1], [1, 1], 1, us=2.4):
                rest = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
                with t.op("aten::convolution", x, w, bias, *rest, us=2.8):
                    with t.op("aten::_convolution", x, w, bias, *rest, False, False, True, True, us=3.3):
                        with t.op(
                            "aten::cudnn_convolution", x, w, [1, 1], [1, 1], [1, 1], 1, False, False, True, us=18.2
                        ):
                            t.launch(k.CONV_BF16, us=us, api="cudaLaunchKernelExC", block=(384, 1, 1), regs=168)
                        ops.elementwise(t, "aten::add_", x, bias, 1, kernel=k.ADD_BF16, us=us / 8)
        with t.op("aten::to", Tensor(1, 3, 512, 512, dtype=BF16), 15, False, False, None, us=1.3):
            with t.op("aten::_to_copy", Tensor(1, 3, 512, 512, dtype=BF16), 15, us=2.7):
                with t.op("aten::copy_", Tensor(1, 3, 512, 512, dtype=BF16), us=3.0):
                    t.memcpy("DtoH", 3 * 512 * 512 * 2, us=132.7)
                    t.sync()


def flash_requested(*, upcast: bool) -> Trace:
    """A diffusion transformer that was told ``flash_attn=True``: three steps, two layers, grouped queries."""
    note = (
        "flash_attn=True was set, and float32 queries made PyTorch run its math path." if upcast else
        "The same program with bfloat16 queries: FlashAttention-2 runs."
    )  # fmt: skip
    trace = Trace(gpu=H100, note=note, extra={"torch_version": "2.13.0"})
    main = trace.thread()
    for step in range(3):
        with main.step(step):
            _text_encoder(main)
            with main.range("denoise"):
                for _ in range(2):
                    _denoise_layer(main, upcast=upcast)
            _vae_decode(main)
    return trace


def _eager_attention(t: Thread, q: Tensor, *, stage: str) -> None:
    """``eager_attention_forward`` of a model zoo: matmul, scale, mask, softmax in float32, matmul."""
    scores = Tensor(q.shape[0], q.shape[1], q.shape[2], q.shape[2], dtype=BF16)
    mask = Tensor(1, 1, q.shape[2], q.shape[2], dtype=BF16)
    with t.python("transformers/integrations/eager_paged.py(14): eager_attention_forward"):
        with t.dispatch("attention", "unfused", None, stage=stage):
            key_t = ops.transpose(t, q, 2, 3)
            ops.matmul(t, q, key_t, kernel=k.GEMM_BF16_A100, us=88.3)
            ops.scale_by(t, scores, q.shape[3] ** -0.5, us=74.9, kernel=k.MUL_BF16)
            ops.elementwise(t, "aten::add", scores, mask, 1, kernel=k.ADD_BF16, us=81.2)
            with t.op("aten::softmax", scores, -1, 6, us=2.1):
                with t.op("aten::_softmax", scores, -1, True, us=5.6):
                    rows = q.shape[0] * q.shape[1] * q.shape[2]
                    kernel = k.softmax_warp("c10::BFloat16", "float", 10)
                    t.launch(kernel, us=139.6, grid=(rows // 4, 1, 1), block=(32, 4, 1), regs=40)
            ops.cast(t, scores.to("float"), BF16, 121.5)
            t.call("aten::dropout", scores, 0.0, False, us=0.6)
            ops.matmul(t, scores, q, kernel=k.GEMM_BF16_A100, us=90.4)


def unfused_by_hand() -> Trace:
    """A language model whose config fell back to the eager attention function. No SDPA op anywhere."""
    trace = Trace(gpu=A100, note="Attention written as matmul, softmax, matmul; no fused kernel was ever asked for.")
    main = trace.thread()
    x = Tensor(4, 1024, 1024, dtype=BF16)
    gemm = {"kernel": k.GEMM_BF16_A100, "api": "cudaLaunchKernel"}
    for step in range(2):
        with main.step(step), main.range("prefill"):
            with main.python("model.py(41): forward"):
                for layer in range(2):
                    with main.python(f"nn.Module: DecoderLayer_{layer}"):
                        ops.layer_norm(main, x, us=13.8)
                        with main.python(f"nn.Module: Attention_{layer}"):
                            q = ops.heads(main, ops.linear(main, x, 1024, us=49.7, **gemm), 16, 64)
                            _eager_attention(main, q, stage="prefill")
                            ops.linear(main, x, 1024, us=49.5, **gemm)
                        h = ops.linear(main, x, 4096, us=176.3, **gemm)
                        ops.elementwise(main, "aten::gelu", h, "none", kernel=k.GELU_BF16, us=50.3)
                        ops.linear(main, h, 1024, us=178.8, **gemm)
            main.sync("cudaDeviceSynchronize")
    return trace


def mixed_backends() -> Trace:
    """Four attention implementations in one step, each in its own range."""
    trace = Trace(gpu=H100, note="Flash-2, memory-efficient, cuDNN and the flash-attn package in one program.",
                  extra={"torch_version": "2.13.0"})  # fmt: skip
    main = trace.thread()
    for step in range(2):
        with main.step(step):
            half = Tensor(2, 16, 2048, 64, dtype=BF16)
            with main.range("encoder"):
                for _ in range(2):
                    with main.dispatch("attention", "flash-2", "pytorch", stage="encoder"):
                        ops.sdpa_flash(main, half, half, us=93.2)
            single = Tensor(2, 16, 1024, 64)
            with main.range("refiner"), main.dispatch("attention", "mem-efficient", "pytorch", stage="refiner"):
                ops.sdpa_efficient(main, single, single, Tensor(1, 1, 1, 1024), us=211.9)
            wide = Tensor(2, 8, 2048, 128, dtype=BF16)
            with main.range("decoder"):
                for _ in range(3):
                    with main.dispatch("attention", "cudnn", "cudnn", stage="decoder"):
                        ops.sdpa_cudnn(main, wide, wide, us=71.6)
            package = Tensor(2, 2048, 8, 128, dtype="c10::Half")
            with main.range("adapter"), main.dispatch("attention", "flash-2", "flash-attn", stage="adapter"):
                ops.flash_attn_package(main, package, package, us=64.4)
            main.sync()
    return trace
