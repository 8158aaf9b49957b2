"""The dtype of an attention call's inputs as far as the names of its kernels prove it.

A fused kernel names the type that it was compiled for, and that is the type of query, key and value. The math path is
less plain: for half-precision inputs PyTorch computes in float32 by default and converts before and after. So its
float32 products prove float32 inputs only where no kernel of the call can have converted or names another type.

Sources: ``_scaled_dot_product_attention_math`` in pytorch aten/src/ATen/native/transformers/attention.cpp, and the
documentation of ``allow_fp16_bf16_reduction_math_sdp`` (2.5); ``gpu_kernel_impl_nocast`` in
aten/src/ATen/native/cuda/CUDALoops.cuh runs only where no operand has to be converted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.kernels import identify

if TYPE_CHECKING:
    from collections.abc import Iterable

_FUSED: Final = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_PROVEN_FUSED: Final = ("flash-1", "flash-2", "flash-3", "flash-4", "mem-efficient")
"""Implementations that name the type of their inputs; cuDNN writes ``f16`` for both half types."""

_SINGLE: Final = ("fp32", "tf32")
_CONVERTS: Final = "copy|cast|convert|fusion|unknown"
_COMPILED: Final = "^triton_"
"""Inductor's names list the ops that were fused, not the types."""

_NO_CAST: Final = "gpu_kernel_impl_nocast"


def proven_dtype(implementation: str | None, kernels: Iterable[str]) -> str | None:
    """PyTorch's name of the dtype of query, key and value; ``None`` where the names do not prove it.

    Args:
        implementation: Implementation id of what ran.
        kernels: Names of all kernels of the call.
    """
    names = pl.Series("name", list(kernels), dtype=pl.String)
    if not len(names):
        return None
    told = identify(names)
    if implementation in _PROVEN_FUSED:
        main = told.filter((pl.col("family") == "attention") & (pl.col("role") == "main"))
        precisions = set(main["precision"])
        return _FUSED.get(str(precisions.pop())) if len(precisions) == 1 else None
    return "float32" if implementation == "math" and _all_single(told) else None


def _all_single(told: pl.DataFrame) -> bool:
    """All products are of float32, nothing names another type, and nothing can have converted."""
    products = told.filter(pl.col("family") == "gemm")
    if products.is_empty() or not products["precision"].is_in(_SINGLE).fill_null(value=False).all():
        return False
    if not told["precision"].fill_null("fp32").is_in(_SINGLE).all():
        return False
    what = pl.concat_str(pl.col("family"), pl.col("implementation").fill_null(""), separator=" ")
    converts = what.str.contains(_CONVERTS) | pl.col("name").str.contains(_COMPILED)
    return told.filter(converts & ~pl.col("name").str.contains(_NO_CAST)).is_empty()
