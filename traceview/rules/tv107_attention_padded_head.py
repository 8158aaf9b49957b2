"""Attention ran a kernel made for a larger head dimension than the call has.

What it finds
    FlashAttention-2 kernels whose name says one head dimension (``kHeadDim``) under a call whose recorded head
    dimension is smaller.

Why it costs
    The kernels exist for a few head dimensions (32, 64, 96, 128, 192, 256). A head of 72 runs in the kernel for 96: a
    quarter of the matrix work multiplies padding.

Evidence it needs
    The kernel's template arguments and the recorded dims of the op that asked.

When it is wrong
    Short calls are bound by memory or by launches, not by matrix work. The model's shape may not be yours to choose.

Fix
    Choose a head dimension that a kernel exists for (64, 96, 128), or a library with a kernel for this one.

Scope and sources
    PyTorch 2.2 and later and flash-attn 2. Kernel traits: flash-attention ``csrc/flash_fwd_launch_template.h``,
    read in source code 2026-11. Share of padding = 1 - recorded / kernel head dimension.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from traceview.findings import Confidence, Finding, Severity
from traceview.name_numbers import read_number
from traceview.quantities import percent
from traceview.rules.attention_evidence import evidence_lines, timing
from traceview.rules.kernel_evidence import WORTH_SHARE, plural
from traceview.rules.recorded_shapes import first_shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.dispatch import Dispatch
    from traceview.rules.base import Facts

CODE: Final = "TV107"
NAME: Final = "attention-padded-head"
SEVERITY: Final = Severity.INFO

_FEWEST_DIMENSIONS: Final = 3
_KERNEL_HEAD: Final = re.compile(r"Flash_(?:fwd|bwd)_kernel_traits<(?:\(int\))?(\d+)")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding per pair of recorded and kernel head dimension."""
    pairs: dict[tuple[int, int], list[Dispatch]] = {}
    for row in facts.table.attention:
        recorded, kernel = _recorded_head(row), _kernel_head(row)
        if recorded and kernel and recorded < kernel:
            pairs.setdefault((recorded, kernel), []).append(row)
    for (recorded, kernel), rows in sorted(pairs.items()):
        cost = timing(facts, rows)
        padding_ns = round(cost.device_ns * (1 - recorded / kernel))
        if padding_ns < WORTH_SHARE * facts.table.busy_ns:
            continue
        count = sum(row.count for row in rows)
        yield Finding(
            code=CODE,
            severity=Severity.INFO,
            title=f"{plural(count, 'attention call')} with head dimension {recorded} "
            f"ran the kernel for {kernel}{cost.words}",
            where=cost.where or "no call stack recorded",
            event_ids=cost.event_ids,
            evidence=evidence_lines(rows),
            cost_ns=padding_ns,
            confidence=Confidence.SOURCED,
            fix="Choose a head dimension with a kernel of its own: "
            f"{percent(1 - recorded / kernel)} of the work is lost.",
            false_alarm_if="the calls are too short to be bound by matrix work",
        )


def _recorded_head(row: Dispatch) -> int | None:
    query = first_shape(row.inputs["dims"] if row.inputs else None)
    return query[-1] if query and len(query) >= _FEWEST_DIMENSIONS else None


def _kernel_head(row: Dispatch) -> int | None:
    found = (_KERNEL_HEAD.search(kernel.name) for kernel in row.kernels)
    return next((read_number(match[1]) for match in found if match), None)
