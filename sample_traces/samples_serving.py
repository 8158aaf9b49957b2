"""The authored pair of a language-model server: decoding op by op, and the same with CUDA graphs.

Ranges, ops and kernels are those of vLLM: one iteration of the engine is a range that counts its requests and tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sample_traces import kernel_names as k
from sample_traces.authoring import H100, Dispatch, Tensor, Trace
from sample_traces.op_chains import BF16

if TYPE_CHECKING:
    from sample_traces.authoring import Thread

LAYERS: Final = 12
REQUESTS: Final = 8
PROMPT_TOKENS: Final = 2048
TOKENS: Final = 6
HIDDEN: Final = 2048


def _kernels(tokens: int) -> list[tuple[str, str, float]]:
    """Op, kernel and time of each part of one layer; a prompt is large, a decoded token small."""
    prompt = tokens > REQUESTS
    return [
        ("_C::fused_add_rms_norm", k.RMS_NORM, 14.8 if prompt else 2.3),
        ("aten::mm", k.GEMM_BF16_H100, 118.4 if prompt else 5.9),
        ("_C::rotary_embedding", k.ROTARY, 11.6 if prompt else 1.9),
        ("_C_cache_ops::reshape_and_cache_flash", k.CACHE_WRITE, 9.7 if prompt else 1.8),
        ("vllm::unified_attention_with_output", k.UNIFIED_2D, 161.2 if prompt else 7.4),
        ("aten::mm", k.GEMM_BF16_H100, 79.3 if prompt else 4.8),
        ("_C::fused_add_rms_norm", k.RMS_NORM, 14.9 if prompt else 2.3),
        ("aten::mm", k.GEMM_BF16_H100, 312.5 if prompt else 9.6),
        ("_C::silu_and_mul", k.SILU_MUL, 33.1 if prompt else 2.2),
        ("aten::mm", k.GEMM_BF16_H100, 158.6 if prompt else 8.1),
    ]


def _layer(t: Thread, tokens: int, phase: str) -> None:
    x, weight = Tensor(tokens, HIDDEN, dtype=BF16), Tensor(HIDDEN, HIDDEN, dtype=BF16)
    q = Tensor(tokens, 16, 128, dtype=BF16)
    for op, kernel, us in _kernels(tokens):
        t.call("aten::empty", [tokens, HIDDEN], 15, 0, None, None, None, us=2.4)
        if kernel == k.UNIFIED_2D:
            with t.op(op, q, q, q, q, us=13.6), t.dispatch("attention", "triton", "vllm", stage=phase):
                t.launch(kernel, us=us, api="cuLaunchKernelEx", api_us=6.1, grid=(tokens, 4, 1), regs=128)
        elif op == "aten::mm":
            with t.op(op, x, weight, us=9.8):
                t.launch(kernel, us=us, api="cuLaunchKernelEx", api_us=5.2, block=(384, 1, 1), regs=168)
        else:
            with t.op(op, x, x, us=6.7):
                t.launch(kernel, us=us, api_us=5.0, grid=(tokens, 1, 1))


def _sample(t: Thread, rows: int) -> None:
    logits, tokens = Tensor(rows, 32000), Tensor(rows, dtype="long int")
    with t.op("aten::argmax", logits, -1, False, us=9.0):
        t.launch(k.ARGMAX_F32, us=9.7)
    with t.op("aten::copy_", tokens, tokens, False, us=2.8):
        t.memcpy("DtoH", 8 * rows, us=1.4)
        t.sync()


def serving(*, graphs: bool) -> Trace:
    """One prompt of eight requests, then a few tokens for each; ``graphs``: decoding replays one CUDA graph a token."""
    how = "replays one CUDA graph a token" if graphs else "launches every kernel by itself and is bound by launches"
    trace = Trace(gpu=H100, note=f"A language-model server (vLLM): a prompt, then decoding, which {how}.",
                  extra={"torch_version": "2.13.0"})  # fmt: skip
    main = trace.thread()
    for _ in range(2):
        with main.range(f"execute_context_{REQUESTS}({PROMPT_TOKENS})_generation_0(0)"):
            for _ in range(LAYERS):
                _layer(main, PROMPT_TOKENS, "prefill")
            _sample(main, REQUESTS)
        main.idle(120)
        for _ in range(TOKENS):
            with main.range(f"execute_context_0(0)_generation_{REQUESTS}({REQUESTS})"):
                if graphs:
                    ids = Tensor(REQUESTS, dtype="long int")
                    with main.op("aten::copy_", ids, ids, True, us=3.4):
                        main.memcpy("HtoD", 8 * REQUESTS, us=1.3, pinned=True)
                    work = [(kernel, us) for _, kernel, us in _kernels(REQUESTS)] * LAYERS
                    for kernel in main.graph_launch(work):
                        if kernel.name == k.UNIFIED_2D:
                            said = Dispatch("attention", "triton", "vllm", "opaque", "decode", [kernel])
                            trace.dispatches.append(said)
                else:
                    for _ in range(LAYERS):
                        _layer(main, REQUESTS, "decode")
                _sample(main, REQUESTS)
            main.idle(120)
    return trace
