"""The words that ``dispatch.toml`` may use, and the nearest one to a word that it may not."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Final

from traceview.kernels import ATTENTION_IMPLEMENTATIONS, FUSED_ATTENTION, PRECISIONS, Family, Role, signatures

if TYPE_CHECKING:
    from collections.abc import Iterable

FLASH_ATTENTION: Final = ("flash-1", "flash-2", "flash-3", "flash-4", "cpu-flash", "aotriton", "ck", "aiter", "vendor")
"""What the word ``flash`` means: FlashAttention itself, the CPU's, and the ones that vendors build for their devices
(on ROCm the flash backend of PyTorch is AOTriton or CK)."""

ATTENTION_WORDS: Final = {"fused": FUSED_ATTENTION, "flash": FLASH_ATTENTION}
"""Words for several attention implementations."""

EXPECTABLE: Final = tuple(name for name in ATTENTION_IMPLEMENTATIONS if name not in ("unknown", "opaque"))
"""Attention implementations that can be expected or forbidden: what is not known cannot."""

FAMILIES: Final = tuple(family.value for family in Family if family is not Family.UNKNOWN)
"""Families of work that ``op`` may name."""

_ALIASES: Final = {
    "sdpa": "attention",
    "attn": "attention",
    "scaled_dot_product_attention": "attention",
    "matmul": "gemm",
    "mm": "gemm",
    "bmm": "gemm",
    "linear": "gemm",
    "convolution": "conv",
    "conv2d": "conv",
    "nccl": "collective",
    "allreduce": "collective",
    "layernorm": "norm",
    "rmsnorm": "norm",
    "copy": "memcpy",
    "efficient": "mem-efficient",
    "eager": "unfused",
    "flash_attention_2": "flash-2",
    "fa2": "flash-2",
    "fa3": "flash-3",
    "fa4": "flash-4",
    "cudnn-attention": "cudnn",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float": "fp32",
    "torch": "pytorch",
    "flash_attn": "flash-attn",
}
"""Common other words for the same thing."""


@cache
def implementations(family: str) -> tuple[str, ...]:
    """Implementation ids of a family, sorted; for attention also the words for several of them."""
    if family == "attention":
        return (*ATTENTION_WORDS, *EXPECTABLE)
    found = {
        signature.implementation
        for signature in signatures()
        if signature.family.value == family and signature.implementation and signature.role is Role.MAIN
    }
    return tuple(sorted(found))


@cache
def all_implementations() -> tuple[str, ...]:
    """Implementation ids of every family."""
    return tuple(dict.fromkeys(name for family in FAMILIES for name in implementations(family)))


@cache
def providers() -> tuple[str, ...]:
    """Providers that a kernel name can tell."""
    return tuple(sorted({signature.provider for signature in signatures() if signature.provider}))


def precisions() -> tuple[str, ...]:
    """Precision ids."""
    return PRECISIONS


def spelled_out(names: Iterable[str]) -> frozenset[str]:
    """Implementation ids with ``fused`` and ``flash`` replaced by what they mean."""
    return frozenset(one for name in names for one in ATTENTION_WORDS.get(name, (name,)))


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, ``None`` if nothing is near."""
    known = list(known)
    alias = _ALIASES.get(word.lower())
    if alias in known:
        return alias
    lower = {name.lower(): name for name in reversed(known)}
    with_digits = word.upper().replace("O", "0")  # TV1O1, the letter for the digit, is as near to TV121 else.
    if with_digits in known:
        return with_digits
    close = get_close_matches(word.lower().replace("_", "-"), [name.replace("_", "-") for name in lower], 1, 0.7)
    if not close:
        return None
    return next(name for folded, name in lower.items() if folded.replace("_", "-") == close[0])
