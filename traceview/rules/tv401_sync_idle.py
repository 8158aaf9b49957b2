"""The host waited for the device, and the device then waited for the host.

What it finds
    Blocking calls (``item()``, ``nonzero``, ``.cpu()``, ``synchronize``) after which the device stood idle until the
    host had launched more work.

Why it costs
    A wait drains the queue. The device idles until the host has come back and launched again. In a training step one
    ``loss.item()`` is harmless at the end and costly in the middle.

Evidence it needs
    Runtime calls and device work linked to its launches. The idle time is measured, not the wait: waiting over a full
    queue costs nothing. All idle time that follows a wait is charged to it, as far as the host had waited: host work
    after it, too. ``traceview gaps`` tells that host work apart, so its figure for waits may be smaller.

When it is wrong
    The value is needed to decide what to run next. Each gap is charged at most the time that was waited, so a slow host
    is not blamed on the wait.

Fix
    Log values later and all at once, keep conditions on the device (``torch.where``), copy with ``non_blocking=True``
    to pinned memory, avoid boolean indexing.

Scope and sources
    CUDA and HIP, any version. Public cases: meta-pytorch/torchtune pull request #522, konstmish/prodigy issue #38.
    pytorch ``aten/src/ATen/native/cuda/CUDAScalar.cu`` (``_local_scalar_dense`` copies and synchronises), read in
    source code 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Confidence, CostOf, Finding, Severity
from traceview.gap_culprits import culprits
from traceview.knowledge.idle_causes import Cause
from traceview.quantities import milliseconds, percent
from traceview.rules.kernel_evidence import located, plural, together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV401"
NAME: Final = "sync-idle"
SEVERITY: Final = Severity.WARNING

SHARE_OF_SPAN: Final = 0.01
"""Of the time from the first to the last device work; less does not show in the wall time."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all waits."""
    causes = [Cause.SYNC.value, Cause.COPY_TO_HOST.value]
    waits = facts.idle.filter(pl.col("cause").cast(pl.String).is_in(causes)).with_columns(
        cost_ns=pl.col("end_ns") - pl.col("start_ns")
    )
    cost_ns = int(waits["cost_ns"].sum())
    if not cost_ns or cost_ns < SHARE_OF_SPAN * facts.span_ns:
        return
    yield Finding(
        code=CODE,
        severity=Severity.WARNING,
        title=f"{plural(waits['culprit_id'].n_unique(), 'wait')} of the host left the device idle: "
        f"{milliseconds(cost_ns)}{together(facts)}, {percent(cost_ns / facts.span_ns)} of the recorded span",
        **located(facts, waits.sort("cost_ns", descending=True)["culprit_id"].unique(maintain_order=True)),
        evidence=tuple(
            f"{one.count:,} × {one.words}: device idle for {milliseconds(one.ns)}"
            for one in culprits(facts.timeline, waits, most=5)
        ),
        cost_ns=cost_ns,
        cost_of=CostOf.IDLE,
        confidence=Confidence.INFERRED,
        fix="Read values later and together, keep conditions on the device, and copy without blocking.",
        false_alarm_if="the value decides what runs next, so that the host has to wait for it",
    )
