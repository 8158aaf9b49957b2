"""An attention call ran something that cannot be told from the trace.

What it finds
    Attention ops under which no known attention kernel, no math op and no softmax is recorded.

Why it costs
    It may not: this says that the check is blind there. A fallback could hide behind it.

Evidence it needs
    The attention op is recorded and what ran under it is not recognised or not recorded.

When it is wrong
    A new fused kernel whose name is not in the signature table yet is harmless; please report the name.

Fix
    Record the trace with device activities and without dropping events; run once without graph capture. If the kernel
    is new, add its signature.

Scope and sources
    Every format and version: it is a statement about the trace, not about the program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.attention import UNTOLD
from traceview.findings import Confidence, Finding, Severity
from traceview.rules.attention_evidence import evidence_lines, timing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV103"
NAME: Final = "attention-unidentified"
SEVERITY: Final = Severity.WARNING


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all calls whose implementation is not told."""
    rows = [row for row in facts.table.attention if row.implementation in UNTOLD]
    if not rows:
        return
    count = sum(row.count for row in rows)
    cost = timing(facts, rows)
    yield Finding(
        code=CODE,
        severity=Severity.WARNING,
        title=f"{count:,} attention call{'s' if count != 1 else ''} ran something the trace does not tell{cost.words}",
        where=cost.where or "no call stack recorded",
        event_ids=cost.event_ids,
        evidence=evidence_lines(rows),
        cost_ns=None,
        confidence=Confidence.MEASURED,
        fix="Record device activities for the whole call, once without graph capture; report kernels that are new.",
        false_alarm_if="the kernel is a fused one that the signature table does not know yet",
    )
