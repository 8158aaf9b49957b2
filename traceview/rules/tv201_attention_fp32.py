"""Fused attention ran in fp32, where half precision could use flash.

What it finds
    Mem-efficient attention kernels for fp32 inputs (``fmha_cutlassF_f32_*``) on a GPU that has flash attention.

Why it costs
    Flash and cuDNN attention take fp16 and bf16 only, so fp32 inputs leave one fused kernel, which moves twice the
    bytes at an eighth or less of the matrix rate of half precision.

Evidence it needs
    The kernel name and the recorded compute capability (8.0 or later).

When it is wrong
    The model needs fp32 attention for accuracy. The cost is the kernels' whole time; flash needs a part of it.

Fix
    Run attention under ``torch.autocast`` or cast q, k and v to bf16. Often only a rotary embedding or a norm in fp32
    lifts q and k: cast them back before the call.

Scope and sources
    PyTorch 2.0 and later, NVIDIA compute capability 8.0 and later. pytorch ``cuda/sdp_utils.cpp``
    (``check_dtypes_low_precision``), read in source code 2026-11; a public case: huggingface/transformers issue #36217.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Finding, Severity
from traceview.rules.kernel_evidence import WORTH_SHARE, Advice, kernel_finding, plural, share_of_busy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV201"
NAME: Final = "attention-fp32"
SEVERITY: Final = Severity.WARNING

_FLASH_CAPABILITY: Final = 80
_ADVICE: Final = Advice(
    code=CODE,
    fix="Use autocast or cast q, k and v to bf16 before the call; look for a rotary embedding or norm that upcasts.",
    false_alarm_if="the model needs fp32 attention for accuracy",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all fp32 attention kernels."""
    rows = facts.work.filter(
        (pl.col("family") == "attention")
        & (pl.col("implementation") == "mem-efficient")
        & (pl.col("precision") == "fp32")
        & (pl.col("nvidia_cc") >= _FLASH_CAPABILITY)
    )
    if share_of_busy(facts, rows) < WORTH_SHARE:
        return
    yield kernel_finding(
        facts,
        rows,
        f"{plural(rows.height, 'attention kernel')} ran in fp32, which rules out flash attention",
        _ADVICE,
        severity=Severity.WARNING,
    )
