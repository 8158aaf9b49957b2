"""Matrix products ran in fp32 without tensor cores.

What it finds
    fp32 matrix products on kernels without tensor-core instructions (``sgemm``, ``ffma``) on compute capability 8.0 or
    later, which could multiply in TF32: 2 % or more of the busy time, or, as a remark, a fifth of all kernels where
    copies fill the busy time.

Why it costs
    The fp32 units of an A100 reach an eighth of its TF32 rate. PyTorch uses TF32 for matrix products only when asked
    (off by default since 1.12) and does not mention it in eager mode.

Evidence it needs
    Kernel names, and the recorded compute capability or a name that says for which one it is written.

When it is wrong
    Products inside unfused attention are left to TV101 and TV102, of which they are a part.
    Exact fp32 is wanted, or the products are small. Products bound by memory gain little. The cost is the kernels'
    whole time.

Fix
    ``torch.set_float32_matmul_precision("high")``, or autocast to bf16. For SDPA's math path in PyTorch 2.9 and later
    also ``torch.backends.cuda.math_sdp.fp32_precision``.

Scope and sources
    NVIDIA compute capability 8.0 and later. Default: pytorch issues #67384 and #153195, read 2026-11. Rates: NVIDIA
    A100 data sheet (19.5 and 156 TFLOP/s), general knowledge. Kernel names of cuBLASLt 12.8: string found in a
    shipped binary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Finding, Severity
from traceview.rules.device_work import OWN_FAULT, union_ns
from traceview.rules.kernel_evidence import WORTH_SHARE, Advice, kernel_finding, plural, share_of_busy
from traceview.rules.matrix_kernels import CONVOLUTION_OP, MAIN_GEMM, VECTOR_PRODUCTS, least_capability

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV202"
NAME: Final = "gemm-fp32-simt"
SEVERITY: Final = Severity.WARNING

SHARE_OF_KERNELS: Final = 0.2
"""Where copies fill the busy time: a fifth of what is computed is worth a remark."""

_FIRST_TF32: Final = 80
_ADVICE: Final = Advice(
    code=CODE,
    fix='Call torch.set_float32_matmul_precision("high") (TF32), or use autocast to bf16.',
    false_alarm_if="exact fp32 results are wanted, or the products are bound by memory",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all such products."""
    rows = facts.work.filter(
        MAIN_GEMM
        & OWN_FAULT
        & ~pl.col("tensor_core")
        & (pl.col("precision") == "fp32")
        & ~pl.col("implementation").is_in(VECTOR_PRODUCTS)
        & (least_capability() >= _FIRST_TF32)
        & ~pl.col("op").str.contains(CONVOLUTION_OP).fill_null(value=False)
    )
    severity = Severity.WARNING
    if share_of_busy(facts, rows) < WORTH_SHARE:
        # Copies that nobody hides can fill the busy time; once they are gone, the products are what is left.
        kernels = facts.work.filter(~pl.col("kind").is_in(["memcpy", "memset"]))
        if not rows.height or union_ns(rows) < SHARE_OF_KERNELS * union_ns(kernels):
            return
        severity = Severity.INFO
    yield kernel_finding(
        facts,
        rows,
        f"{plural(rows.height, 'matrix product')} ran in fp32 without tensor cores",
        _ADVICE,
        severity=severity,
    )
