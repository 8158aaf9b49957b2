"""An XLA program spent its time rearranging data.

What it finds
    XLA ops of the category ``data formatting`` (transpose, copy, reshape), or named so where no category is recorded,
    that take 10 % or more of the busy time.

Why it costs
    They move data between layouts and compute nothing. The compiler adds them where producer and consumer
    disagree about the layout.

Evidence it needs
    The HLO category of the ops, or their names.

When it is wrong
    Waiting for an asynchronous copy is not counted here. Some transposes are the program's own purpose.

Fix
    Keep one layout along the chain: order einsum dimensions alike, avoid transposes between matrix products, donate
    buffers to avoid copies.

Scope and sources
    XLA on TPU and GPU. openxla/xla ``hlo_instruction.cc`` (``ToCategory``: transpose, copy and reshape are data
    formatting), read in source code 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Finding, Severity
from traceview.rules.hlo import CATEGORY_KEYS, with_detail, xla_rows
from traceview.rules.kernel_evidence import Advice, kernel_finding, plural, share_of_busy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV504"
NAME: Final = "data-formatting"
SEVERITY: Final = Severity.WARNING

SHARE_OF_BUSY: Final = 0.10
"""Every program rearranges a little."""

_NAMES: Final = r"^%?(copy|transpose|bitcast-convert|reshape)(\.\d+)?$|^%?(copy|transpose)_fusion"
_ADVICE: Final = Advice(
    code=CODE,
    fix="Keep one layout along the chain, and donate buffers.",
    false_alarm_if="the transposes are what the program is for",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all such ops."""
    ops = with_detail(facts.timeline, xla_rows(facts), CATEGORY_KEYS, "category")
    rows = ops.filter(
        (pl.col("category") == "data formatting") | (pl.col("category").is_null() & pl.col("name").str.contains(_NAMES))
    )
    if not rows.height or share_of_busy(facts, rows) < SHARE_OF_BUSY:
        return
    yield kernel_finding(
        facts, rows, f"{plural(rows.height, 'XLA op')} only rearranged data", _ADVICE, severity=Severity.WARNING
    )
