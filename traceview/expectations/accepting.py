"""Known findings and violations that do not count for now: what each ``[[accept]]`` covers, and when it ends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Generic, TypeVar

from traceview.expectations.model import ExpectationResult, Verdict
from traceview.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from traceview.expectations.model import Accept

_Kept = TypeVar("_Kept")


@dataclass(frozen=True, slots=True)
class Accepted(Generic[_Kept]):
    """What is left after accepting.

    Attributes:
        kept: Everything, accepted ones marked.
        accepted: For each of ``kept`` whether it is accepted.
        used: The ``[[accept]]`` that cover something, expired ones too.
        expired: A sentence for each thing that an expired one would cover.
    """

    kept: tuple[_Kept, ...]
    accepted: tuple[bool, ...]
    used: frozenset[Accept]
    expired: tuple[str, ...]


def accept_findings(findings: Sequence[Finding], accepts: Sequence[Accept], today: date | None) -> Accepted[Finding]:
    """Turn accepted findings to severity info; the title says until when and why."""
    kept, accepted, used, expired = [], [], set(), []
    for finding in findings:
        covering = [one for one in accepts if covers_finding(one, finding)]
        used.update(covering)
        current = _current(covering, today)
        if current:
            finding = replace(finding, severity=Severity.INFO, title=f"{_until(current)}: {finding.title}")
        elif covering:
            expired.append(_expired(covering[-1], f"{finding.code} counts again"))
            finding = replace(finding, title=f"{finding.title} (no longer accepted: expired {covering[-1].expires})")
        kept.append(finding)
        accepted.append(current is not None)
    return Accepted(tuple(kept), tuple(accepted), frozenset(used), tuple(expired))


def accept_results(
    results: Sequence[ExpectationResult], accepts: Sequence[Accept], today: date | None
) -> Accepted[ExpectationResult]:
    """Mark what is not satisfied but accepted. What holds needs no acceptance and is not marked."""
    kept, accepted, used, expired = [], [], set(), []
    for result in results:
        covering = [one for one in accepts if covers_result(one, result)]
        if result.verdict is Verdict.SKIPPED:
            # It may be needed where the expectation applies.
            used.update(covering)
        elif covering and result.verdict is not Verdict.PASS:
            used.update(covering)
            current = _current(covering, today)
            if current:
                result = replace(result, accepted=_until(current))
            else:
                expired.append(_expired(covering[-1], f"line {result.line} counts again"))
        kept.append(result)
        accepted.append(result.accepted is not None)
    return Accepted(tuple(kept), tuple(accepted), frozenset(used), tuple(expired))


def unused(accepts: Sequence[Accept], *outcomes: Accepted[Finding] | Accepted[ExpectationResult]) -> tuple[str, ...]:
    """A sentence for each ``[[accept]]`` that covers nothing: what it was written for is gone, or it is misspelt."""
    used: frozenset[Accept] = frozenset().union(*(one.used for one in outcomes))
    return tuple(
        f"{one.path}:{one.line}: [[accept]] of {one.rule or one.expectation} covers nothing in this trace. "
        "Remove it if this trace is meant to show it."
        for one in accepts
        if one not in used
    )


def covers_finding(accept: Accept, finding: Finding) -> bool:
    """It was written for this finding, whether expired or not."""
    if accept.rule != finding.code:
        return False
    return accept.where is None or accept.where == finding.where or fnmatchcase(finding.where, accept.where)


def covers_result(accept: Accept, result: ExpectationResult) -> bool:
    """It was written for this expectation, whether expired or not."""
    text = accept.expectation
    return text is not None and (text == result.text or fnmatchcase(result.text, text))


def is_current(accept: Accept, today: date) -> bool:
    """It still counts; its last day is the last on which it does."""
    return accept.expires is None or today <= accept.expires


def _current(covering: Sequence[Accept], today: date | None) -> Accept | None:
    return next((one for one in covering if today is None or is_current(one, today)), None)


def _until(accept: Accept) -> str:
    until = "without end" if accept.expires is None else f"until {accept.expires}"
    return f"accepted {until} ({accept.reason})"


def _expired(accept: Accept, what: str) -> str:
    return (
        f"{accept.path}:{accept.line}: [[accept]] expired on {accept.expires}, so {what}. Reason then: {accept.reason}"
    )
