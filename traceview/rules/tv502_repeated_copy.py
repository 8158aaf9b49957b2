"""The same large set of tensors was copied to the device in every step.

What it finds
    Copies from host to device of the same sizes and counts in each steady step: at least eight of a megabyte or more.
    In a trace without devices the same of copies that ops like ``aten::to`` make in the host's memory.

Why it costs
    Data that does not change (weights, tables, masks) could stay on the device. A batch is a handful of tensors; many
    large ones of the same sizes are rather a model.

Evidence it needs
    Bytes of each copy, and at least two profiler steps after the first.

When it is wrong
    Offloading moves weights on purpose (FSDP CPU offload, DeepSpeed ZeRO), and some models have inputs of many tensors.

Fix
    Move modules and constant tensors to the device once, outside the loop.

Scope and sources
    CUDA and HIP, any version: general knowledge of training loops. Offloading by design: pytorch
    ``torch/distributed/fsdp/api.py`` (``CPUOffload``), read in source code 2026-11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Confidence, CostOf, Finding, Severity, Window
from traceview.quantities import milliseconds
from traceview.rules.device_work import union_ns
from traceview.rules.kernel_evidence import located, plural, together
from traceview.transfers import EXPLICIT_COPY, copies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV502"
NAME: Final = "repeated-copy"
SEVERITY: Final = Severity.WARNING

FEWEST_COPIES: Final = 8
"""Per step. An input batch is a handful of tensors."""

LARGE_BYTES: Final = 1 << 20
"""A mebibyte: smaller tensors are masks, labels and lengths that belong to a batch."""

FEWEST_STEPS: Final = 2
"""The same copies must come back."""

SHARE_OF_BUSY: Final = 0.01
"""Less is not worth a line."""


@dataclass(frozen=True, slots=True)
class RepeatedCopies:
    """Large copies that come back in the same sizes in every step past the warm-up.

    Attributes:
        rows: :data:`traceview.transfers.COPIES`, those of the steps past the warm-up.
        sizes: Number of different sizes.
        steps: Number of these steps, of all processes.
    """

    rows: pl.DataFrame
    sizes: int
    steps: int


def repeated_copies(facts: Facts) -> RepeatedCopies | None:
    """Copies that come back; ``None`` if fewer than two steps past the warm-up are recorded."""
    steady = facts.steady
    if steady is None or steady.steps["step"].n_unique() < FEWEST_STEPS:
        return None
    found = copies(facts.timeline)
    asked = facts.timeline.events["name"].gather(found["op_id"]).cast(pl.String).str.contains(EXPLICIT_COPY)
    chosen = (pl.col("kind") == "HtoD") | ((pl.col("kind") == "HtoH") & asked)
    large = steady.within(found.filter(chosen & (pl.col("bytes") >= LARGE_BYTES)))
    steps = steady.steps.select("process", "step").unique().height
    per_step = large.group_by("process", "bytes", "step").len()
    same = (
        per_step.group_by("process", "bytes")
        .agg(steps=pl.col("step").n_unique(), least=pl.col("len").min(), most=pl.col("len").max())
        .join(steady.steps.group_by("process").agg(all=pl.col("step").n_unique()), on="process")
        .filter((pl.col("steps") == pl.col("all")) & (pl.col("least") == pl.col("most")))
    )
    rows = large.join(same.select("process", "bytes"), on=["process", "bytes"], how="semi")
    return RepeatedCopies(rows, same.height, steps)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all copies that come back."""
    again, steady = repeated_copies(facts), facts.steady
    if again is None or steady is None:
        return
    rows, steps = again.rows, again.steps
    cost_ns = union_ns(rows)
    on_host = bool(rows.height) and rows["device"].null_count() == rows.height
    # XProf records copies to a TPU on the host's threads alone: no device row, and yet no copy within host memory.
    within_memory = bool(rows.height) and bool((rows["kind"] == "HtoH").all())
    whole_ns = steady.span_ns if on_host else facts.table.busy_ns
    where = "in host memory" if within_memory else "to the device"
    if rows.height < FEWEST_COPIES * steps or cost_ns < SHARE_OF_BUSY * whole_ns:
        return
    yield Finding(
        code=CODE,
        severity=Severity.WARNING,
        title=f"The same {rows.height // steps:,} copies {where} came back in each "
        f"of {steps:,} steps: {milliseconds(cost_ns)}{'' if on_host else together(facts)}",
        **located(facts, rows["id"]),
        evidence=(f"{int(rows['bytes'].sum()) / steps / 1e6:,.1f} MB per step, in {plural(again.sizes, 'size')}",),
        cost_ns=cost_ns,
        cost_of=CostOf.HOST if on_host else CostOf.DEVICE,
        window=Window.STEPS,
        confidence=Confidence.INFERRED,
        fix="Move or convert weights and constant tensors once, outside the loop.",
        false_alarm_if="weights are offloaded on purpose, or a batch consists of many tensors",
    )
