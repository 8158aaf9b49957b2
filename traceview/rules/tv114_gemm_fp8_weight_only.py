"""FP8 weights ran a weight-only kernel on a GPU that multiplies FP8 natively.

What it finds
    Marlin kernels whose template arguments name an 8-bit floating-point weight type, on compute capability
    8.9 or later.

Why it costs
    Marlin widens the weights and multiplies in half precision: it saves memory traffic but has half the matrix rate of
    a native FP8 product. vLLM chooses it for GPUs without FP8, or when a model or a flag rules the native path out.

Evidence it needs
    The kernel's template arguments, in which vLLM encodes the weight type, and the recorded compute capability.

When it is wrong
    A checkpoint with FP8 weights and 16-bit activations asks for exactly this. At small batch the product waits for
    memory, and both ways take the same time.

Fix
    Check that the checkpoint quantises activations too, unset ``VLLM_TEST_FORCE_FP8_MARLIN``, and read the start-up
    log, which names the kernel that was chosen and why.

Scope and sources
    vLLM and SGLang, compute capability 8.9 and later. vllm ``csrc/core/scalar_type.hpp`` (layout of the type id)
    and ``model_executor/kernels/linear/__init__.py`` (order of the kernels), read in source code 2026-11.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Confidence, Finding, Severity
from traceview.rules.kernel_evidence import WORTH_SHARE, Advice, kernel_finding, plural, share_of_busy
from traceview.rules.matrix_kernels import MAIN_GEMM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV114"
NAME: Final = "gemm-fp8-weight-only"
SEVERITY: Final = Severity.WARNING

SAVED_SHARE: Final = 0.5
"""A native FP8 product has twice the matrix rate of a half-precision one; the traffic is the same."""

_NATIVE_FP8: Final = 89
_TYPE_ID: Final = re.compile(r"\b(\d{12,20})[lL]?\b")
_ADVICE: Final = Advice(
    code=CODE,
    fix="Look at the server's start-up log for the kernel it chose and why; unset flags that force Marlin.",
    false_alarm_if="the checkpoint keeps 16-bit activations, or the batch is too small to be bound by matrix work",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all such products."""
    marlin = facts.work.filter(
        MAIN_GEMM & (pl.col("implementation") == "marlin") & (pl.col("nvidia_cc") >= _NATIVE_FP8)
    )
    names = [name for name in marlin["name"].unique() if any(_is_fp8(int(text)) for text in _TYPE_ID.findall(name))]
    rows = marlin.filter(pl.col("name").is_in(names))
    if share_of_busy(facts, rows) < WORTH_SHARE:
        return
    yield kernel_finding(
        facts,
        rows,
        f"{plural(rows.height, 'product')} with FP8 weights ran in half precision (Marlin)",
        _ADVICE,
        severity=Severity.WARNING,
        confidence=Confidence.SOURCED,
        saved_share=SAVED_SHARE,
    )


def _is_fp8(type_id: int) -> bool:
    """Whether a type id of vLLM is an 8-bit float: bits 0-7 exponent width, 8-15 mantissa width, 16 sign."""
    exponent, mantissa, signed = type_id & 0xFF, type_id >> 8 & 0xFF, type_id >> 16 & 1
    return (exponent, mantissa, signed) in {(4, 3, 1), (5, 2, 1)}
