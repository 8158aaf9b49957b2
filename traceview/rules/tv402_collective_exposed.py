"""Communication between devices was not hidden behind computation.

What it finds
    Collective kernels that ran while nothing else was computed, for 10 % or more of the device's recorded span.

Why it costs
    The device computes nothing in that time.

Evidence it needs
    Collective kernels, told apart by name, and the other work of the same device.

When it is wrong
    A collective also waits for the slowest rank. Then that rank is the cause, and only the traces of all ranks show it:
    TV405 tells waiting from transfer where they are given.

Fix
    Overlap: larger gradient buckets or ``bucket_cap_mb`` tuning in DDP, prefetching in FSDP, fewer and larger messages;
    look at the other ranks for a late one.

Scope and sources
    NCCL, RCCL and custom all-reduce kernels, any version. General knowledge; terms and arithmetic are those of
    TraceLens (github.com/AMD-AGI/TraceLens).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.busy import busy
from traceview.findings import Confidence, Finding, Severity
from traceview.quantities import milliseconds, percent
from traceview.rules.kernel_evidence import kernel_lines, located, together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV402"
NAME: Final = "collective-exposed"
SEVERITY: Final = Severity.INFO

SHARE_OF_SPAN: Final = 0.10
"""Some communication is always exposed, at the ends of a step at least."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all devices of the trace."""
    rows = facts.work.filter(pl.col("kind") == "collective")
    if not rows.height:
        return
    devices = busy(facts.timeline)
    cost_ns = sum(device.exposed_communication_ns for device in devices)
    span_ns = sum(device.span_ns for device in devices)
    if not cost_ns or cost_ns < SHARE_OF_SPAN * span_ns:
        return
    total_ns = sum(device.communication_ns for device in devices)
    yield Finding(
        code=CODE,
        severity=Severity.INFO,
        title=f"Communication ran beside no computation for {milliseconds(cost_ns)}{together(facts)}, "
        f"{percent(cost_ns / span_ns)} of the recorded span",
        **located(facts, rows["id"]),
        evidence=(
            f"{percent(cost_ns / total_ns)} of {milliseconds(total_ns)} of communication",
            *_waiting(facts),
            *kernel_lines(rows),
        ),
        cost_ns=cost_ns,
        confidence=Confidence.MEASURED,
        fix="Overlap communication with computation (bucket sizes, prefetching), and look for a late rank.",
        false_alarm_if="the collective waits for a rank that is late for another reason",
    )


def _waiting(facts: Facts) -> Iterator[str]:
    """How much of the communication is waiting for a late rank, or why that cannot be told."""
    skew = facts.skew
    if skew.why_none:
        yield f"how much of it is waiting for a late rank cannot be told: {skew.why_none}"
    elif skew.waits.height:
        matched = milliseconds(int(skew.waits["dur_ns"].sum()))
        yield f"of {matched} that could be matched between ranks, {milliseconds(skew.wait_ns)} are waiting"
