"""Half-precision matrix products ran without tensor cores.

What it finds
    Products of fp16 or bf16 data on kernels without tensor-core instructions (``ampere_fp16_sgemm``, ``hgemm``,
    ``f16f16 … ffma``) that are not matrix-vector products.

Why it costs
    The data is half precision, the arithmetic is the slow fp32 or fp16 units': an eighth or less of the rate.

Evidence it needs
    Kernel names.

When it is wrong
    Products inside unfused attention are left to TV101 and TV102, of which they are a part.
    Nearly vector-shaped products are bound by memory. GPUs before compute capability 7.0 have no tensor cores; where
    the capability is not recorded, nothing is said.

Fix
    Make the sizes and strides of the inner dimensions multiples of 8; check that the data pointer is 16-byte aligned
    (slices of a larger tensor often are not).

Scope and sources
    NVIDIA compute capability 7.0 and later. Kernel names of cuBLASLt 12.8: string found in a shipped binary. The
    rule of eight half-precision elements is general knowledge (NVIDIA matrix multiplication guide,
    docs.nvidia.com/deeplearning/performance).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Finding, Severity
from traceview.rules.device_work import OWN_FAULT
from traceview.rules.kernel_evidence import WORTH_SHARE, Advice, kernel_finding, plural, share_of_busy
from traceview.rules.matrix_kernels import HALF, MAIN_GEMM, VECTOR_PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV203"
NAME: Final = "gemm-half-simt"
SEVERITY: Final = Severity.WARNING

_FIRST_TENSOR_CORE: Final = 70
_ADVICE: Final = Advice(
    code=CODE,
    fix="Pad the inner dimensions and strides to multiples of 8, and align slices to 16 bytes.",
    false_alarm_if="the products are nearly matrix-vector products and wait for memory",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all such products."""
    rows = facts.work.filter(
        MAIN_GEMM
        & OWN_FAULT
        & ~pl.col("tensor_core")
        & pl.col("precision").is_in(HALF)
        & ~pl.col("implementation").is_in(VECTOR_PRODUCTS)
        & (pl.col("nvidia_cc") >= _FIRST_TENSOR_CORE)
    )
    if share_of_busy(facts, rows) < WORTH_SHARE:
        return
    yield kernel_finding(
        facts,
        rows,
        f"{plural(rows.height, 'half-precision product')} ran without tensor cores",
        _ADVICE,
        severity=Severity.WARNING,
    )
