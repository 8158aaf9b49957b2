"""Ops of PyTorch that compute attention as products and a softmax themselves, and what makes them do so.

Calls found by their shape (:mod:`traceview.unfused`) under one of them were asked for by it; no model wrote them out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Wrapper:
    """One op.

    Attributes:
        so: Why nothing is fused, one clause.
        fix: What to do, one or two sentences.
        source: Where that is read.
    """

    so: str
    fix: str
    source: str


WRAPPERS: Final = {
    "aten::_native_multi_head_attention": Wrapper(
        so="nn.MultiheadAttention or nn.TransformerEncoderLayer took its fast path for inference, which on the CPU "
        "never fuses, and on a GPU only self-attention that flash or memory-efficient attention "
        "takes, without its weights (need_weights=False)",
        fix="Pass need_weights=False to nn.MultiheadAttention. If that is so already, or on the CPU, call "
        "torch.backends.mha.set_fastpath_enabled(False): the module then calls scaled_dot_product_attention.",
        source="pytorch aten/src/ATen/native/transformers/attention.cpp, cuda/attention.cu "
        "(native_multi_head_attention_cpu, native_multi_head_attention_cuda), torch/nn/modules/activation.py, read "
        "2026-11; recorded live with PyTorch 2.13 on the CPU",
    ),
    "FlexAttentionAutogradOp": Wrapper(
        so="flex_attention was called without torch.compile, so it computes all scores with ordinary operators",
        fix="Call torch.compile(flex_attention) once and use the result.",
        source="pytorch torch/_higher_order_ops/flex_attention.py, read 2026-11; recorded live with PyTorch 2.13 on "
        "the CPU",
    ),
}
"""Name of the op to what is known of it."""
