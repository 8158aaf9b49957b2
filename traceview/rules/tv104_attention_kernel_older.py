"""Attention ran the mem-efficient kernel on a Hopper or data-centre Blackwell GPU.

What it finds
    Half-precision mem-efficient attention (``fmha_cutlassF_*``) on a device of compute capability 9.x to 11.x.

Why it costs
    The newest of these kernels is written for sm80: it uses neither the asynchronous matrix instructions nor the
    copy engine of the later parts. Flash or cuDNN kernels for the same call are usually well ahead of it.

Evidence it needs
    The kernel name and the recorded compute capability.

When it is wrong
    A dense attention mask excludes flash, and a bias that needs a gradient excludes cuDNN: then this is the best
    fused kernel there is. The cost is the whole time of the kernels; a newer kernel still needs a part of it.

Fix
    Replace a dense mask by ``is_causal=True``, variable-length or FlexAttention, so that flash or cuDNN can be
    chosen, and see which of them the PyTorch version offers on this GPU.

Scope and sources
    PyTorch 2.0 and later and xformers, NVIDIA compute capability 9.x to 11.x. Kernel list of the torch 2.9.1 wheel
    (string found in a shipped binary: no name beyond ``sm80``); pytorch ``cuda/sdp_utils.cpp``, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Finding, Severity
from traceview.rules.kernel_evidence import WORTH_SHARE, Advice, kernel_finding, plural, share_of_busy
from traceview.rules.matrix_kernels import NEW_MATRIX_UNITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV104"
NAME: Final = "attention-kernel-older"
SEVERITY: Final = Severity.WARNING

_ADVICE: Final = Advice(
    code=CODE,
    fix="Drop the dense mask (is_causal, variable length, FlexAttention), so that flash or cuDNN can be chosen.",
    false_alarm_if="the call needs a dense mask or bias; the cost is the kernels' whole time, not the difference",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all such kernels."""
    rows = facts.work.filter(
        (pl.col("family") == "attention")
        & (pl.col("implementation") == "mem-efficient")
        & pl.col("precision").ne_missing("fp32")
        & NEW_MATRIX_UNITS
    )
    if share_of_busy(facts, rows) < WORTH_SHARE:
        return
    yield kernel_finding(
        facts,
        rows,
        f"{plural(rows.height, 'attention kernel')} of Ampere's generation ran on a newer GPU",
        _ADVICE,
        severity=Severity.WARNING,
    )
