"""Ops that the device does not have ran on the CPU instead.

What it finds
    ``aten::_to_cpu`` inside an op: PyTorch's general CPU fallback, which copies every tensor argument to the host, runs
    the op there and copies the result back. It takes 2 % or more of the time in host ops.

Why it costs
    Each call drains the device's queue, moves its tensors twice and computes on the CPU; what was queued ahead is
    lost. Nothing is printed but one warning for each op, or nothing at all.

Evidence it needs
    Host ops, with ``aten::_to_cpu`` among them. The devices concerned (MPS, XLA, out-of-tree backends) often record
    no device work, so the cost is host time: it includes waiting for the device. A backend with a fallback of its own
    that does not call ``_to_cpu`` leaves only plain copies, and nothing is said.

When it is wrong
    The op is called on purpose where a value is needed on the host, like a metric that is logged.

Fix
    Replace the op named by one that the device has, do all of that part on the CPU with one copy, or update PyTorch:
    backends gain ops with each release. On MPS unset ``PYTORCH_ENABLE_MPS_FALLBACK`` to be told by an error.

Scope and sources
    PyTorch with MPS, XLA, lazy tensors and backends outside the tree. pytorch
    ``aten/src/ATen/native/CPUFallback.cpp`` (``cpu_fallback``), read in source code 2026-11; seen in a recorded trace
    of torch 2.13 with the lazy backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Confidence, CostOf, Finding, Severity
from traceview.host_calls import host_union_ns, named, outermost
from traceview.quantities import milliseconds, percent
from traceview.rules.kernel_evidence import WORTH_SHARE, located, on_the_host, plural, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV122"
NAME: Final = "cpu-fallback"
SEVERITY: Final = Severity.WARNING

_TO_HOST: Final = r"^aten::_to_cpu$"
_COPIES: Final = ("aten::copy_", "aten::_to_copy", "aten::to")
"""Some backends copy to the host through ``_to_cpu``: that is the copy that was asked for."""

_MOST_OPS: Final = 5


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all ops that fell back."""
    events = facts.timeline.events
    copies = named(facts.timeline, ("op",), _TO_HOST).filter(pl.col("parent_id").is_not_null())
    asked = events["op_id"].gather(copies["parent_id"]).drop_nulls().unique()
    ops = events.filter(pl.col("id").is_in(asked.implode())).with_columns(pl.col("name").cast(pl.String))
    ops = ops.filter(~pl.col("name").is_in(_COPIES))
    if not ops.height:
        return
    cost_ns = host_union_ns(ops)
    host_ns = host_union_ns(events.filter(pl.col("thread").is_not_null() & (pl.col("kind") == "op")))
    if not cost_ns or cost_ns < WORTH_SHARE * host_ns:
        return
    calls = outermost(facts.timeline, ops)
    groups = (
        calls.group_by("name")
        .agg(pl.len().alias("count"), pl.col("dur_ns").sum())
        .sort(["dur_ns", "name"], descending=[True, False])
    )
    lines = [
        f"{row['count']:,} × {shortened(row['name'])}: {milliseconds(row['dur_ns'])} on the host"
        for row in groups.head(_MOST_OPS).iter_rows(named=True)
    ]
    if groups.height > _MOST_OPS:
        lines.append(f"and {groups.height - _MOST_OPS:,} more ops")
    yield Finding(
        code=CODE,
        severity=Severity.WARNING,
        title=f"{plural(calls.height, 'op call')} fell back to the CPU: {milliseconds(cost_ns)} {on_the_host(calls)}, "
        f"{percent(cost_ns / host_ns)} of the time in ops",
        **located(facts, calls.sort("dur_ns", descending=True)["id"]),
        evidence=(*lines, "each holds aten::_to_cpu, which copies its tensors to the host"),
        cost_ns=cost_ns,
        cost_of=CostOf.HOST,
        confidence=Confidence.MEASURED,
        fix="Replace the op by one that the device has, keep that part on the CPU, or update PyTorch.",
        false_alarm_if="the value is needed on the host, like a metric that is logged",
    )
