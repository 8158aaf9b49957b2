"""The optimizer updated one tensor at a time.

What it finds
    ``Optimizer.step`` ranges that launch a hundred or more element-wise kernels and none that works on many tensors.

Why it costs
    A few tiny kernels per parameter: each costs a launch, and the device runs dry between them.

Evidence it needs
    The ``Optimizer.step#…`` range, which PyTorch records, and the launches inside it.

When it is wrong
    A model with few, large parameters loses nothing. The cost is the time from the first to the last kernel of each
    step; a fused optimizer still has to read and write the parameters.

Fix
    ``fused=True`` or ``foreach=True`` for the optimizers of ``torch.optim``; fused optimizers of other libraries.

Scope and sources
    PyTorch 1.8 and later. pytorch ``torch/optim/optimizer.py`` (range name, torch 2.13), read in source code
    2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import MOST_EVENTS, Confidence, CostOf, Finding, Severity
from traceview.host_calls import innermost, named
from traceview.quantities import milliseconds
from traceview.rules.kernel_evidence import WORTH_SHARE, kernel_lines, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV120"
NAME: Final = "optimizer-per-tensor"
SEVERITY: Final = Severity.WARNING

FEWEST_KERNELS: Final = 100
"""Per step. A fused or foreach step of a large model stays below it, a per-tensor step of 50 tensors exceeds it."""

_RANGE: Final = r"^Optimizer\.step#"


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all steps."""
    ranges = named(facts.timeline, ("annotation",), _RANGE)
    if not ranges.height or not facts.work.height:
        return
    inside = facts.work.with_columns(window=innermost(facts.timeline, facts.work["launch_id"], ranges["id"])).filter(
        pl.col("window").is_not_null() & (pl.col("kind") == "kernel")
    )
    windows = inside.group_by("window").agg(
        pl.len().alias("kernels"),
        many=(pl.col("family") == "optimizer").any(),
        span_ns=(pl.col("start_ns") + pl.col("dur_ns")).max() - pl.col("start_ns").min(),
    )
    slow = windows.filter((pl.col("kernels") >= FEWEST_KERNELS) & ~pl.col("many"))
    cost_ns = int(slow["span_ns"].sum())
    if cost_ns < WORTH_SHARE * facts.table.busy_ns or not slow.height:
        return
    rows = inside.join(slow.select("window"), on="window", how="semi")
    yield Finding(
        code=CODE,
        severity=Severity.WARNING,
        title=f"{plural(slow.height, 'optimizer step')} launched {rows.height / slow.height:,.0f} kernels each: "
        f"{milliseconds(cost_ns)} from the first to the last",
        where=str(ranges["name"][0]),
        event_ids=tuple(rows["id"].head(MOST_EVENTS).to_list()),
        evidence=kernel_lines(rows),
        cost_ns=cost_ns,
        cost_of=CostOf.WALL,
        confidence=Confidence.MEASURED,
        fix="Pass fused=True or foreach=True to the optimizer.",
        false_alarm_if="the kernels are long, so that the number of launches does not matter",
    )
