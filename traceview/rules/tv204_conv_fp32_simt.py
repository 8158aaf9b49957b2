"""Convolutions ran in fp32 without tensor cores.

What it finds
    fp32 convolution kernels without tensor-core instructions (``scudnn``, ``ffma``, ``implicit_convolve_sgemm``,
    Winograd, FFT) on compute capability 8.0 or later.

Why it costs
    TF32 is on by default for convolutions, so an fp32 kernel means that it was switched off or that no tensor-core
    kernel took the shape.

Evidence it needs
    Kernel names, and the recorded compute capability or a name that says for which one it is written.

When it is wrong
    For few channels (first layers, depthwise) these kernels are the right choice, and Winograd saves arithmetic. The
    cost is the kernels' whole time.

Fix
    Do not switch ``torch.backends.cudnn.allow_tf32`` off; use channels last and channel counts that are multiples of 8;
    autocast to bf16.

Scope and sources
    NVIDIA cuDNN, compute capability 8.0 and later. Default in every header of torch 2.3 to 2.14 (read in shipped
    headers); names of cuDNN 9.10, ``aten/src/ATen/Context.h``, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Finding, Severity
from traceview.rules.kernel_evidence import WORTH_SHARE, Advice, kernel_finding, plural, share_of_busy
from traceview.rules.matrix_kernels import CONVOLUTION_OP, MAIN_GEMM, least_capability

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV204"
NAME: Final = "conv-fp32-simt"
SEVERITY: Final = Severity.WARNING

_FIRST_TF32: Final = 80
_PRODUCTS: Final = ("legacy", "simt", "xmma", "cutlass", "winograd", "fft")
_ADVICE: Final = Advice(
    code=CODE,
    fix="Leave cudnn.allow_tf32 on, use channels_last and channel counts that are multiples of 8, or autocast to bf16.",
    false_alarm_if="the layers have few channels, or exact fp32 is wanted",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all such convolutions."""
    rows = facts.work.filter(
        (
            ((pl.col("family") == "conv") & pl.col("implementation").is_in(_PRODUCTS))
            | (MAIN_GEMM & pl.col("op").str.contains(CONVOLUTION_OP))
        )
        & ~pl.col("tensor_core")
        & (pl.col("precision") == "fp32")
        & (least_capability() >= _FIRST_TF32)
    )
    if share_of_busy(facts, rows) < WORTH_SHARE:
        return
    yield kernel_finding(
        facts,
        rows,
        f"{plural(rows.height, 'convolution kernel')} ran in fp32 without tensor cores",
        _ADVICE,
        severity=Severity.WARNING,
    )
