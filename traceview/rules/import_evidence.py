"""From remarks of the import to findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.findings import Confidence, Finding, Severity
from traceview.timeline import Trust

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts


def note_findings(
    facts: Facts, code: str, kinds: tuple[str, ...], *, fix: str, false_alarm_if: str
) -> Iterator[Finding]:
    """One warning for each remark of some kinds that leaves the trace with less than full trust."""
    for note in facts.timeline.report.notes:
        if note.kind in kinds and note.trust is not Trust.GOOD:
            yield Finding(
                code=code,
                severity=Severity.WARNING,
                title=note.text.rstrip("."),
                where="the recording",
                evidence=(f"import remark {note.kind}, trust {note.trust.value}",),
                cost_ns=None,
                confidence=Confidence.MEASURED,
                fix=fix,
                false_alarm_if=false_alarm_if,
            )
