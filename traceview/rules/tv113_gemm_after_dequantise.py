"""Quantised weights were unpacked to memory before each product.

What it finds
    Kernels that write dequantised weights (bitsandbytes, AWQ, GPTQ/exllama), each followed on its stream by an ordinary
    matrix product.

Why it costs
    The weights are read packed, written unpacked and read again: more traffic than with weights that were never
    quantised. Kernels that unpack inside the product (Marlin, Machete, tinygemm) avoid the detour.

Evidence it needs
    Kernel names and their order on a stream.

When it is wrong
    For large batches (prefill) unpacking first is deliberate and cheap against the product.

Fix
    Use a format and library whose kernel unpacks in place: Marlin or Machete in vLLM, torchao int4 with tinygemm.

Scope and sources
    NVIDIA and AMD. Kernel names of vLLM 0.33 and bitsandbytes: vllm ``csrc/quantization/awq/gemm_kernels.cu``,
    bitsandbytes ``csrc/kernels.cu`` (string found in a shipped binary; read in source code 2026-11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Finding, Severity
from traceview.rules.kernel_evidence import WORTH_SHARE, Advice, kernel_finding, plural, share_of_busy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV113"
NAME: Final = "gemm-after-dequantise"
SEVERITY: Final = Severity.WARNING

_BITSANDBYTES: Final = "kDequantizeBlockwise"
_ADVICE: Final = Advice(
    code=CODE,
    fix="Use a weight format whose kernel unpacks inside the product (Marlin, Machete, tinygemm).",
    false_alarm_if="the batch is large, so that unpacking first is cheap against the product",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all unpacking kernels with a product right behind them."""
    after = pl.col("family").shift(-1).over("device", "stream")
    rows = facts.work.with_columns(next_family=after).filter(
        (pl.col("family") == "quantize")
        & (
            (pl.col("implementation") == "dequantise-weights")
            | pl.col("name").str.contains(_BITSANDBYTES, literal=True)
        )
        & (pl.col("next_family") == "gemm")
    )
    if share_of_busy(facts, rows) < WORTH_SHARE:
        return
    yield kernel_finding(
        facts,
        rows,
        f"{plural(rows.height, 'time')} quantised weights were unpacked to memory before a product",
        _ADVICE,
        severity=Severity.WARNING,
    )
