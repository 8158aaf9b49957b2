"""Attention over long sequences ran FlashAttention-2 on a Hopper or data-centre Blackwell GPU.

What it finds
    FlashAttention-2 kernels on a device of compute capability 9.x to 11.x, under an SDPA call whose recorded query is
    at least 1024 long.

Why it costs
    FlashAttention-2 is written for Ampere. On an H100 its successor is 1.5 to 2 times as fast from about a thousand
    positions on.

Evidence it needs
    Kernel name, compute capability, and the recorded dims of the SDPA op. Without dims nothing is said.

When it is wrong
    FlashAttention-3 or cuDNN may not be installed, or not support the head dimension or dropout of the call. It is a
    remark, not a fault.

Fix
    Use cuDNN attention (``sdpa_kernel(SDPBackend.CUDNN_ATTENTION)``), FlashAttention-3 or 4, or
    ``torch.nn.attention.activate_flash_attention_impl`` where the PyTorch version has it.

Scope and sources
    NVIDIA compute capability 9.x to 11.x, torch 2.2 and later. Speed: FlashAttention-3, arXiv 2407.08608, 1.5 to
    2.0 times in fp16 on an H100, hence at most half the time can be saved (read 2026-11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Confidence, Finding, Severity
from traceview.rules.kernel_evidence import HINT_SHARE, Advice, kernel_finding, plural, share_of_busy
from traceview.rules.matrix_kernels import NEW_MATRIX_UNITS
from traceview.rules.recorded_shapes import first_shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV105"
NAME: Final = "attention-flash2-long"
SEVERITY: Final = Severity.INFO

LONG_QUERY: Final = 1024
"""From about here on the published comparison shows the full difference (arXiv 2407.08608, figure 5)."""

SAVED_SHARE: Final = 0.5
"""Twice as fast is the most that the source measured."""

_DENSE_RANK: Final = 4
_ADVICE: Final = Advice(
    code=CODE,
    fix="Try cuDNN attention (SDPBackend.CUDNN_ATTENTION) or FlashAttention-3/4 for these calls.",
    false_alarm_if="no newer kernel supports the call, or none is installed",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all long calls."""
    rows = facts.work.filter(
        (pl.col("family") == "attention")
        & (pl.col("implementation") == "flash-2")
        & NEW_MATRIX_UNITS
        & pl.col("op").str.contains(r"^aten::_(scaled_dot_product_flash_attention|flash_attention_forward)$")
        & pl.col("dims").is_not_null()
    )
    keys = rows.select("op", "dims").unique()
    long = [(op, dims) for op, dims in keys.iter_rows() if _query_length(op, dims) >= LONG_QUERY]
    rows = rows.join(pl.DataFrame(long, schema=keys.schema, orient="row"), on=["op", "dims"], how="semi")
    if share_of_busy(facts, rows) < HINT_SHARE:
        return
    yield kernel_finding(
        facts,
        rows,
        f"{plural(rows.height, 'FlashAttention-2 kernel')} ran over long sequences on a GPU that has faster attention",
        _ADVICE,
        severity=Severity.INFO,
        confidence=Confidence.SOURCED,
        saved_share=SAVED_SHARE,
    )


def _query_length(op: str, dims: str) -> int:
    """Length of the query; 0 if the dims are not those of dense attention."""
    query = first_shape(dims)
    if query is None or len(query) != _DENSE_RANK:
        return 0
    # The inner op takes (batch, length, heads, head dimension), the outer one (batch, heads, length, head dimension).
    return query[1 if op.endswith("_flash_attention_forward") else 2]
