"""The host waited for the device, and the device then waited for the host.

What it finds
    Blocking calls (``item()``, ``nonzero``, ``.cpu()``, ``synchronize``) after which the device stood idle until the
    host had launched more work.

Why it costs
    A wait drains the queue. The device idles until the host has come back and launched again. In a training step one
    ``loss.item()`` is harmless at the end and costly in the middle.

Evidence it needs
    Runtime calls and device work linked to its launches. The idle time is measured, not the wait: waiting over a full
    queue costs nothing.

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
from traceview.quantities import percent
from traceview.rules.kernel_evidence import milliseconds, places, plural
from traceview.rules.wait_costs import wait_costs

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
    costs = wait_costs(facts)
    cost_ns = int(costs["cost_ns"].sum())
    if not cost_ns or cost_ns < SHARE_OF_SPAN * facts.span_ns:
        return
    events = facts.timeline.events
    names = events.select(name=pl.col("name").cast(pl.String), wait_id="id", op_id="op_id")
    ops = events.select(op_id="id", op=pl.col("name").cast(pl.String))
    by_call = (
        costs.join(names, on="wait_id", how="left")
        .join(ops, on="op_id", how="left")
        .group_by("name", "op")
        .agg(pl.len().alias("count"), pl.col("cost_ns").sum())
        .sort(["cost_ns", "name", "op"], descending=[True, False, False])
    )
    lines = tuple(
        f"{row['count']:,} × {row['name']}{' in ' + row['op'] if row['op'] else ''}: "
        f"device idle for {milliseconds(row['cost_ns'])}"
        for row in by_call.head(5).iter_rows(named=True)
    )
    yield Finding(
        code=CODE,
        severity=Severity.WARNING,
        title=f"{plural(costs.height, 'wait')} of the host left the device idle: {milliseconds(cost_ns)}, "
        f"{percent(cost_ns / facts.span_ns)} of the recorded span",
        where=places(facts, costs.sort("cost_ns", descending=True)["wait_id"]),
        evidence=lines,
        cost_ns=cost_ns,
        cost_of=CostOf.IDLE,
        confidence=Confidence.INFERRED,
        fix="Read values later and together, keep conditions on the device, and copy without blocking.",
        false_alarm_if="the value decides what runs next, so that the host has to wait for it",
    )
