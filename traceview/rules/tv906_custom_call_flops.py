"""Custom calls have no recorded floating-point operations, so FLOP rates are too low.

What it finds
    XLA custom calls (Pallas kernels among them) with no FLOPs or 0, 2 % or more of the busy time, in a trace that
    records FLOPs of other ops.

Why it costs
    Nothing by itself: the work was done, but XLA cannot count what a custom kernel computes. A sum of FLOPs, and with
    it the model FLOPs utilisation (MFU), leaves it out.

Evidence it needs
    FLOPs of XLA ops, and their category (or their name). A trace without any FLOPs is not judged.

When it is wrong
    The call only moves data, so that 0 is right.

Fix
    Give the kernel a cost estimate (``cost_estimate=pl.CostEstimate(…)`` in ``pallas_call``), or compute MFU from the
    model's own count of operations.

Scope and sources
    XLA on TPU and GPU. docs.jax.dev/en/latest/_autosummary/jax.experimental.pallas.CostEstimate.html, read 2026-11;
    that XLA counts nothing for a custom call without an estimate is general knowledge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Confidence, Finding, Severity
from traceview.quantities import milliseconds, percent
from traceview.rules.device_work import union_ns
from traceview.rules.hlo import CATEGORY_KEYS, with_detail
from traceview.rules.kernel_evidence import WORTH_SHARE, kernel_lines, located, plural, share_of_busy, together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV906"
NAME: Final = "custom-call-flops"
SEVERITY: Final = Severity.INFO

_NAMES: Final = r"^%?(tpu_)?custom[-_]call(\.\d+)?\b"


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all such calls."""
    ops = facts.work.filter(pl.col("kind") == "xla_op")
    ops = ops.with_columns(facts.timeline.events["flops"].gather(ops["id"]))
    counted = pl.col("flops").fill_null(0) > 0
    if not ops.filter(counted).height:
        return
    ops = with_detail(facts.timeline, ops, CATEGORY_KEYS, "category")
    rows = ops.filter(
        ~counted
        & ((pl.col("category") == "custom-call") | (pl.col("category").is_null() & pl.col("name").str.contains(_NAMES)))
    )
    share = share_of_busy(facts, rows)
    if not rows.height or share < WORTH_SHARE:
        return
    yield Finding(
        code=CODE,
        severity=Severity.INFO,
        title=f"{plural(rows.height, 'custom call')} with no FLOPs recorded: {milliseconds(union_ns(rows))}"
        f"{together(facts)}, {percent(share)} of busy time, are missing from every FLOP rate",
        **located(facts, rows.sort("dur_ns", descending=True)["id"]),
        evidence=kernel_lines(rows),
        cost_ns=None,
        confidence=Confidence.MEASURED,
        fix="Give the kernel a cost estimate, or compute MFU from the model's own count of operations.",
        false_alarm_if="the calls only move data",
    )
