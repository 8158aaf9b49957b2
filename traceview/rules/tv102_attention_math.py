"""PyTorch's SDPA fell back to its math path.

What it finds
    Calls of ``scaled_dot_product_attention`` that ran ``aten::_scaled_dot_product_attention_math``, or matrix products
    and a softmax under the op instead of a fused kernel.

Why it costs
    Math writes the whole score matrix to memory, and since PyTorch 2.5 it computes half-precision inputs in fp32: some
    fifteen kernels instead of one. PyTorch prints nothing when it falls back.

Evidence it needs
    The op ``aten::_scaled_dot_product_attention_math``, or the kernels under the SDPA op. An attention kernel that is
    not recognised is never taken for math.

When it is wrong
    Deliberate use of the math backend as a reference (``sdpa_kernel(SDPBackend.MATH)``), or inputs so small that no
    fused kernel would be faster.

Fix
    Give the call what a fused backend accepts: half precision, no dense mask (or ``is_causal=True``), equal head
    dimensions up to 256, last dimension contiguous. Where dims and dtypes are recorded, the finding names the rules of
    PyTorch that refused each fused backend and what meets them; ``traceview explain`` shows them with their sources.

Scope and sources
    PyTorch 2.0 and later, CUDA, ROCm and CPU. pytorch ``aten/src/ATen/native/transformers/attention.cpp`` and
    ``cuda/sdp_utils.cpp``, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.findings import Confidence, Finding, Severity
from traceview.reasons import Role, changes
from traceview.rules.attention_evidence import evidence_lines, timing, why_not_fused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV102"
NAME: Final = "attention-math"
SEVERITY: Final = Severity.ERROR

_MEET: Final = "Meet the conditions of one fused backend."
_GENERAL: Final = (
    "Give the call what a fused backend accepts (half precision, no dense mask, equal head dimensions up to 256); "
    "the recorded dims and dtypes show what it got."
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all math calls of the trace."""
    rows = [row for row in facts.table.attention if row.implementation == "math"]
    if not rows:
        return
    count = sum(row.count for row in rows)
    cost = timing(facts, rows)
    why = why_not_fused(rows)
    refused = any(reason.role is Role.CAUSE for row in rows for reason in row.reasons)
    to_change = changes(reason for row in rows for reason in row.reasons)
    yield Finding(
        code=CODE,
        severity=Severity.ERROR,
        title=f"{count:,} SDPA call{'s' if count != 1 else ''} fell back to math{cost.words}",
        where=cost.where or "no call stack recorded",
        event_ids=cost.event_ids,
        evidence=(*why, *evidence_lines(rows)),
        cost_ns=cost.device_ns or None,
        confidence=Confidence.MEASURED,
        fix=" ".join((_MEET, *to_change)) if refused else " ".join(to_change) or _GENERAL,
        false_alarm_if="the math backend was chosen on purpose, or the inputs are tiny",
    )
