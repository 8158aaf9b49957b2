"""Most matrix time went into matrix-vector products.

What it finds
    Kernels for one or a few columns (``gemv``, ``gemmSN``, ``gemmk1``) that make up over 30 % of the matrix time.

Why it costs
    Each of them reads a whole weight matrix for a few results. The device waits for memory, and serving several
    requests together would cost hardly more.

Evidence it needs
    Kernel names.

When it is wrong
    Decoding for a single user is like this by nature; then quantised weights, not batching, are the remedy.

Fix
    Batch requests (continuous batching, speculative decoding), or use weights with fewer bits.

Scope and sources
    NVIDIA cuBLAS, any version. Kernel names of cuBLASLt 12.8: string found in a shipped binary;
    ``gemv2T_kernel_val`` and its kin wait for memory: general knowledge (see docs.nvidia.com/cuda/cublas).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Finding, Severity
from traceview.rules.device_work import union_ns
from traceview.rules.kernel_evidence import HINT_SHARE, Advice, kernel_finding, plural, share_of_busy
from traceview.rules.matrix_kernels import MAIN_GEMM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV112"
NAME: Final = "gemm-vector-products"
SEVERITY: Final = Severity.INFO

SHARE_OF_PRODUCTS: Final = 0.30
"""Below it they are the odd layer, not the way the model runs."""

_ADVICE: Final = Advice(
    code=CODE,
    fix="Batch more requests together, or use weights with fewer bits.",
    false_alarm_if="one request at a time is what is wanted",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all vector products."""
    products = facts.work.filter(MAIN_GEMM)
    rows = products.filter(pl.col("implementation").is_in(["gemv", "small"]))
    if share_of_busy(facts, rows) < HINT_SHARE or union_ns(rows) < SHARE_OF_PRODUCTS * union_ns(products):
        return
    yield kernel_finding(
        facts,
        rows,
        f"{plural(rows.height, 'product')} had a vector, or nearly one, as operand",
        _ADVICE,
        severity=Severity.INFO,
    )
