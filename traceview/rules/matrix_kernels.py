"""What the names of matrix kernels say beyond their family: for which generation they are written, how aligned."""

from __future__ import annotations

from typing import Final

import polars as pl

MAIN_GEMM: Final = (pl.col("family") == "gemm") & (pl.col("role") == "main")
"""Matrix products, without their reductions and set-up kernels."""

VECTOR_PRODUCTS: Final = ("gemv", "small", "split-k", "blas-1", "skinny")
"""Implementations for products that are a vector or nearly one: they need no tensor core, they wait for memory."""

CONVOLUTION_OP: Final = r"(?i)convolution|conv\dd"
"""Ops under which a matrix product is part of a convolution."""

NEW_MATRIX_UNITS: Final = pl.col("nvidia_cc").is_between(90, 119)
"""Hopper and data-centre Blackwell, whose matrix units older kernels cannot use. Consumer Blackwell (12.x) has Ampere's
kind of instructions, so that kernels for 8.0 are at home there."""

HALF: Final = ("fp16", "bf16")

_CODE_NAMES: Final = {"maxwell": 50, "pascal": 60, "volta": 70, "turing": 75, "ampere": 80, "hopper": 90}

_LOW_ALIGNMENT: Final = r"_align[12]\b|_align[12]_|aligna[12]_|alignb[12]_|_ldg[12]_"


def kernel_generation() -> pl.Expr:
    """Compute capability times ten that a kernel is written for, from ``name``; null if the name does not say."""
    code_name = pl.col("name").str.extract(r"\b(maxwell|pascal|volta|turing|ampere|hopper)_")
    return pl.coalesce(
        pl.col("name").str.extract(r"\bcutlass(?:3x)?_(?:sm)?(\d{2,3})_").cast(pl.Int32, strict=False),
        pl.col("name").str.extract(r"\bsm(\d{2,3})_xmma_").cast(pl.Int32, strict=False),
        code_name.replace_strict(_CODE_NAMES, default=None, return_dtype=pl.Int32),
    )


def least_capability() -> pl.Expr:
    """Compute capability times ten: the recorded one, else the least that a name proves; null if neither tells.

    Code for 8.0 runs on nothing older, and some recordings leave the device undescribed.
    """
    return pl.coalesce(pl.col("nvidia_cc"), kernel_generation())


def low_alignment() -> pl.Expr:
    """Whether ``name`` says that the operands are aligned to one or two elements only."""
    return pl.col("name").str.contains(_LOW_ALIGNMENT)
