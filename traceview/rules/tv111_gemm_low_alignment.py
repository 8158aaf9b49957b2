"""Half-precision matrix products ran kernels for unaligned operands.

What it finds
    Half-precision tensor-core kernels whose name says an alignment of one or two elements (``align1``, ``align2``,
    ``ldg1``), written for the generation of the GPU or not saying (older ones are TV110).

Why it costs
    Tensor cores are fed in 16-byte pieces. Operands that are not aligned to 8 half-precision elements are loaded
    element by element, and the load instead of the product sets the pace.

Evidence it needs
    The kernel name.

When it is wrong
    Products bound by memory for other reasons. The cost is the kernels' whole time; aligned ones need a part of it.

Fix
    Make the sizes and strides of the inner dimensions multiples of 8, for example the vocabulary 50257 to 50304.

Scope and sources
    NVIDIA compute capability 7.0 and later. Kernel names of cuBLASLt 12.8: string found in a shipped binary. The
    rule of eight half-precision elements is general knowledge (NVIDIA matrix multiplication guide,
    docs.nvidia.com/deeplearning/performance).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Finding, Severity
from traceview.rules.kernel_evidence import WORTH_SHARE, Advice, kernel_finding, plural, share_of_busy
from traceview.rules.matrix_kernels import HALF, MAIN_GEMM, kernel_generation, low_alignment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV111"
NAME: Final = "gemm-low-alignment"
SEVERITY: Final = Severity.WARNING

_TURING: Final = 75
_AMPERE: Final = 80
_ADVICE: Final = Advice(
    code=CODE,
    fix="Pad the inner dimensions and strides to multiples of 8.",
    false_alarm_if="the products are bound by memory anyway; the cost is the kernels' whole time",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all such products."""
    older = (kernel_generation() <= _TURING) & (pl.col("nvidia_cc") >= _AMPERE)
    rows = facts.work.filter(
        MAIN_GEMM
        & pl.col("tensor_core")
        & pl.col("precision").is_in(HALF)
        & low_alignment()
        & ~older.fill_null(value=False)
    )
    if share_of_busy(facts, rows) < WORTH_SHARE:
        return
    yield kernel_finding(
        facts,
        rows,
        f"{plural(rows.height, 'half-precision product')} ran kernels for unaligned operands",
        _ADVICE,
        severity=Severity.WARNING,
    )
