"""The findings of a trace, most to win first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from traceview.findings import Severity
from traceview.render.units import saving

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.dispatch import DispatchTable
    from traceview.findings import Finding

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
        details: Names and values: where, evidence, how it is known, when it is wrong.
    """

    code: str
    severity: str
    title: str
    cost: str
    fix: str
    details: tuple[tuple[str, str], ...]


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
        details=(
            ("where", finding.where),
            *(("evidence" if at == 0 else "", line) for at, line in enumerate(finding.evidence)),
            ("known by", finding.confidence.value),
            ("false alarm if", finding.false_alarm_if),
        ),
    )


def to_do(findings: Sequence[Finding], *, failed: bool) -> Finding | None:
    """The finding whose fix comes first: if the check failed, what failed it; else where most can be won."""
    if failed:
        errors = [one for one in findings if one.severity is Severity.ERROR]
        if errors:
            return ranked(errors)[0]
    worth = [one for one in ranked(findings) if one.cost_ns and one.fix]
    return worth[0] if worth else None
