"""The findings of a trace, most to win first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Severity
from traceview.render.findings_text import finding_facts
from traceview.render.units import saving

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.dispatch import DispatchTable
    from traceview.findings import Finding
    from traceview.report import Report
    from traceview.timeline import Timeline
    from traceview.top_findings import RankedFinding

TOP: Final = 5


@dataclass(frozen=True, slots=True)
class FindingView:
    """One finding, in words.

    Attributes:
        code: Rule code.
        severity: ``error``, ``warning`` or ``info``.
        title: What is so.
        cost: What a fix can save at most; empty if that is not known.
        fix: What to do.
        trust: What limits the trust in its numbers; empty if nothing does.
        event: Id of the longest event that it speaks of; ``None`` if it speaks of none.
        details: Names and values: where, evidence, how it is known, when it is wrong.
    """

    code: str
    severity: str
    title: str
    cost: str
    fix: str
    details: tuple[tuple[str, str], ...]
    trust: str = ""
    event: int | None = None


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """By what a fix can save at most, then by severity; what cannot be told comes last."""
    order = list(Severity)
    return sorted(findings, key=lambda one: (-(one.cost_ns or 0), order.index(one.severity), one.code))


def finding_view(finding: Finding, table: DispatchTable) -> FindingView:
    """A finding in words."""
    cost = "" if finding.cost_ns is None else saving(finding.cost_ns, finding.cost_of, table.busy_ns, table.span_ns)
    return FindingView(
        code=finding.code,
        severity=finding.severity.value,
        title=finding.title,
        cost=cost,
        fix=finding.fix,
        details=_details(finding),
    )


def ranked_view(finding: RankedFinding, report: Report, timeline: Timeline | None = None) -> FindingView:
    """A finding of a report in words: what a fix can win is set against the time of its window.

    Args:
        finding: The finding.
        report: The report that it is of.
        timeline: The trace, to name an event that shows it.
    """
    facts = finding_facts(finding, report)
    return FindingView(
        code=finding.code,
        severity=finding.severity.value,
        title=finding.title,
        cost="" if finding.share is None else facts["to win"],
        fix=finding.fix,
        details=_details(finding),
        trust=_trust(finding, report),
        event=None if timeline is None else _longest(finding, timeline),
    )


def _longest(finding: Finding, timeline: Timeline) -> int | None:
    """The longest of the events that the rule named, of those that the timeline draws."""
    events = timeline.events[sorted(set(finding.event_ids))].filter(pl.col("kind") != "counter")
    longest = events.sort("dur_ns", "id", descending=[True, False])
    return int(longest["id"][0]) if longest.height else None


def to_do(findings: Sequence[RankedFinding], *, failed: bool) -> RankedFinding | None:
    """The finding whose fix comes first: if the check failed, what failed it; else where most can be won.

    Args:
        findings: Most to win first.
        failed: The check failed.
    """
    if failed:
        errors = [one for one in findings if one.severity is Severity.ERROR]
        if errors:
            return errors[0]
    return next((one for one in findings if one.share and one.fix), None)


def _trust(finding: RankedFinding, report: Report) -> str:
    """Why its numbers are limited; what the head of the page says of the whole trace is not said again."""
    said = {note.text for note in report.import_report.notes}
    reasons = [reason for reason in finding.limited_by if reason not in said]
    if not finding.limited_by:
        return ""
    return f"{finding.trust}: {' '.join(reasons)}" if reasons else f"{finding.trust}, see above."


def _details(finding: Finding) -> tuple[tuple[str, str], ...]:
    return (
        ("where", finding.where),
        *(("evidence" if at == 0 else "", line) for at, line in enumerate(finding.evidence)),
        ("known by", finding.confidence.value),
        ("false alarm if", finding.false_alarm_if),
    )
