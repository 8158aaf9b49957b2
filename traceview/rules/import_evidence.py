"""From remarks of the import to findings: each remark that limits what the trace can tell belongs to one rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.findings import Confidence, Finding, Severity
from traceview.timeline import Trust

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from traceview.rules.base import Facts

RULE_OF_NOTE: Final = {
    "launch-without-work": "TV901",
    "work-without-launch": "TV902",
    "device-lane-without-process": "TV902",
    "truncated": "TV903",
    "damaged": "TV903",
    "unreadable-events": "TV903",
    "file-unreadable": "TV903",
    "device-work-lost": "TV903",
    "device-work-may-be-lost": "TV903",
    "table-unread": "TV903",
    "cupti-range-profiler": "TV904",
    "graph-without-work": "TV905",
}
"""Kind of remark to the rule that speaks of it. TV903 and TV905 look at the facts behind it instead."""

PROFILER: Final = "profiler-"
"""Kinds that begin like this are what a profiler says about its own record."""

ANY_OTHER: Final = "TV907"
"""The rule of every other kind, also of one that a parser of another package makes up."""


def rule_of_note(kind: str) -> str:
    """The code of the one rule that speaks of remarks of a kind."""
    return RULE_OF_NOTE.get(kind, "TV904" if kind.startswith(PROFILER) else ANY_OTHER)


def note_findings(facts: Facts, code: str, *, fix: str | Mapping[str, str], false_alarm_if: str) -> Iterator[Finding]:
    """One warning for each remark of a rule that leaves the trace with less than full trust.

    Args:
        facts: The trace.
        code: The rule.
        fix: What to do; by kind of remark, with ``""`` for every other kind.
        false_alarm_if: When it is wrong.
    """
    for note in facts.timeline.report.notes:
        if rule_of_note(note.kind) == code and note.trust is not Trust.GOOD:
            yield Finding(
                code=code,
                severity=Severity.WARNING,
                title=note.text.rstrip("."),
                where="the recording",
                evidence=(f"import remark {note.kind}, trust {note.trust.value}",),
                cost_ns=None,
                confidence=Confidence.MEASURED,
                fix=fix if isinstance(fix, str) else fix.get(note.kind, fix[""]),
                false_alarm_if=false_alarm_if,
            )
