"""A Volta or Turing GPU did its matrix work in fp32, without its tensor cores.

What it finds
    fp32 matrix products and convolutions on compute capability 7.0 to 7.5 that take a fifth of the busy time.

Why it costs
    The tensor cores of these parts take half precision only, so fp32 training leaves them idle: a V100 has eight times
    the rate in fp16.

Evidence it needs
    Kernel names and the recorded compute capability.

When it is wrong
    Training may need fp32, or the model may be bound by memory. It is a remark, not a fault.

Fix
    ``torch.autocast`` with fp16 and a gradient scaler (these parts have no fast bf16).

Scope and sources
    NVIDIA compute capability 7.0 to 7.5. Rates: NVIDIA V100 data sheet (15.7 and 125 TFLOP/s), general knowledge;
    remedy: PyTorch performance tuning guide, docs.pytorch.org/tutorials, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Finding, Severity
from traceview.rules.kernel_evidence import Advice, kernel_finding, plural, share_of_busy
from traceview.rules.matrix_kernels import VECTOR_PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV206"
NAME: Final = "tensor-cores-unused"
SEVERITY: Final = Severity.INFO

SHARE_OF_BUSY: Final = 0.20
"""Mixed precision is a change of the training recipe; less than a fifth of the time would not be worth it."""

_VOLTA: Final = 70
_TURING: Final = 75
_ADVICE: Final = Advice(
    code=CODE,
    fix="Use torch.autocast with fp16 and a gradient scaler.",
    false_alarm_if="the training needs fp32, or the kernels wait for memory; the cost is the kernels' whole time",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all such kernels."""
    rows = facts.work.filter(
        pl.col("family").is_in(["gemm", "conv"])
        & (pl.col("role") == "main")
        & ~pl.col("tensor_core")
        & (pl.col("precision") == "fp32")
        & ~pl.col("implementation").is_in(["layout", "helper", "offsets", "bias", *VECTOR_PRODUCTS])
        & pl.col("nvidia_cc").is_between(_VOLTA, _TURING)
    )
    if share_of_busy(facts, rows) < SHARE_OF_BUSY:
        return
    yield kernel_finding(
        facts,
        rows,
        f"{plural(rows.height, 'matrix or convolution kernel')} ran in fp32 beside idle tensor cores",
        _ADVICE,
        severity=Severity.INFO,
    )
