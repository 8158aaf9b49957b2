"""Copies between host and device used pageable memory, while nothing was computed.

What it finds
    Copies whose name says pageable memory, as far as no computation of the device hides them, for 2 % or more of the
    recorded span.

Why it costs
    The driver first copies pageable memory into a pinned buffer, piece by piece, and the call blocks the host even with
    ``non_blocking=True``: the copy cannot overlap with computation.

Evidence it needs
    The memory kinds in the copy's name (Kineto) or in its record (Nsight Systems).

When it is wrong
    A single small copy per step cannot be hidden anyway. On systems with one memory (GH200) pageable copies are fast.

Fix
    ``pin_memory=True`` in the data loader and ``non_blocking=True``; for results a pinned buffer that is filled without
    blocking.

Scope and sources
    CUDA and HIP. PyTorch performance tuning guide, docs.pytorch.org/tutorials, read 2026-11 (pinned memory); that
    the driver stages pageable memory is general knowledge; names: seen in a recorded trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview import intervals
from traceview.findings import Confidence, Finding, Severity
from traceview.quantities import milliseconds, percent
from traceview.rules.kernel_evidence import located, shortened, together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV501"
NAME: Final = "pageable-copy"
SEVERITY: Final = Severity.WARNING

SHARE_OF_SPAN: Final = 0.02
"""Less does not show in the wall time; the result of a program has to be copied once in any case."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for both directions."""
    copies = facts.work.filter((pl.col("kind") == "memcpy") & pl.col("name").str.contains("(?i)pageable"))
    if not copies.height:
        return
    cost_ns = _exposed_ns(facts.work, copies)
    if not cost_ns or cost_ns < SHARE_OF_SPAN * facts.span_ns:
        return
    groups = copies.group_by("name").agg(
        pl.len().alias("count"),
        pl.col("bytes").sum(),
        pl.col("dur_ns").sum(),
        known=pl.col("bytes").is_not_null().any(),
    )
    lines = [
        f"{row['count']:,} × {shortened(row['name'])}: {milliseconds(row['dur_ns'])}"
        + (f", {row['bytes'] / 1e6:,.1f} MB" if row["known"] else ", bytes not recorded")
        for row in groups.sort(["dur_ns", "name"], descending=[True, False]).iter_rows(named=True)
    ]
    count = copies.height
    yield Finding(
        code=CODE,
        severity=Severity.WARNING,
        title=f"{count:,} {'copy' if count == 1 else 'copies'} of pageable memory ran beside no computation: "
        f"{milliseconds(cost_ns)}{together(facts)}, {percent(cost_ns / facts.span_ns)} of the recorded span",
        **located(facts, copies.sort("dur_ns", descending=True)["id"]),
        evidence=tuple(lines),
        cost_ns=cost_ns,
        confidence=Confidence.MEASURED,
        fix="Use pin_memory=True and non_blocking=True, and pinned buffers for results.",
        false_alarm_if="the copies are few and needed at once, or the system has one memory",
    )


def _exposed_ns(work: pl.DataFrame, copies: pl.DataFrame) -> int:
    """Time in which one of the copies ran and nothing else than copies, device by device, ns."""
    total = 0
    for (device,), own in copies.group_by("device"):
        other = work.filter((pl.col("device") == device) & (pl.col("kind") != "memcpy"))
        total += intervals.total(*intervals.subtract(_intervals(own), _intervals(other)))
    return total


def _intervals(rows: pl.DataFrame) -> intervals.IntervalSet:
    starts = rows["start_ns"].to_numpy()
    return starts, starts + rows["dur_ns"].to_numpy()
