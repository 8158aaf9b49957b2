"""Does what ran hold up: pass, fail, or not to be told.

The built-in policy, when no expectations are given: a proven slow attention path fails, a hint does not, and a trace
that cannot answer is inconclusive. An empty table never stands for "could not look".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.attention import UNTOLD
from traceview.dispatch import DispatchTable, dispatch_table
from traceview.errors import ExitCode
from traceview.findings import Finding, Severity
from traceview.rules.base import Facts
from traceview.rules.catalogue import RULES

if TYPE_CHECKING:
    from traceview.timeline import Timeline

BLIND_SHARE: Final = 0.05
"""More device time than this in kernels without a known identity could hide an attention kernel."""


class Verdict(StrEnum):
    """Outcome of a check."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What ``check-dispatch`` found.

    Attributes:
        verdict: See :class:`Verdict`.
        summary: The verdict in one sentence, with its number and its reason.
        table: Every dispatch of the trace.
        findings: Errors first, then by cost.
    """

    verdict: Verdict
    summary: str
    table: DispatchTable
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> ExitCode:
        """The process exit code for the verdict."""
        return {
            Verdict.PASS: ExitCode.OK,
            Verdict.FAIL: ExitCode.VIOLATED,
            Verdict.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
        }[self.verdict]


def check(timeline: Timeline) -> CheckResult:
    """Judge a linked timeline by the built-in policy."""
    table = dispatch_table(timeline)
    facts = Facts(timeline, table)
    order = list(Severity)
    findings = tuple(
        sorted(
            (finding for rule in RULES for finding in rule.check(facts)),
            key=lambda finding: (order.index(finding.severity), -(finding.cost_ns or 0), finding.code),
        )
    )
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        return CheckResult(Verdict.FAIL, "; ".join(finding.title for finding in errors), table, findings)
    verdict, summary = _without_errors(timeline, table)
    return CheckResult(verdict, summary, table, findings)


def _without_errors(timeline: Timeline, table: DispatchTable) -> tuple[Verdict, str]:
    untold = sum(row.count for row in table.attention if row.implementation in UNTOLD)
    if untold:
        total = sum(row.count for row in table.attention)
        return Verdict.INCONCLUSIVE, (
            f"{untold:,} of {total:,} attention calls cannot be judged: the trace does not tell what ran"
        )
    if table.attention:
        return Verdict.PASS, _what_ran(table)
    kernel_ns = sum(row.device_ns for row in table.dispatches)
    if not table.device_events:
        host_ops = timeline.events.filter(pl.col("kind") == "op").height
        return Verdict.INCONCLUSIVE, (
            f"no device kernel is recorded and none of the {host_ops:,} host ops asks for attention, "
            "so there is nothing to judge"
        )
    if table.unknown_ns > BLIND_SHARE * kernel_ns:
        return Verdict.INCONCLUSIVE, (
            f"no attention was found, but {table.unknown_ns / kernel_ns:.1%} of device time is in kernels that are "
            f"not identified (such as {table.unknown_names[0][:80]})"
        )
    return Verdict.PASS, (
        f"no attention ran: none of the {table.device_events:,} device events is an attention kernel, "
        "and no op asks for one"
    )


def _what_ran(table: DispatchTable) -> str:
    counts: dict[str, int] = {}
    for row in table.attention:
        counts[row.implementation or "unknown"] = counts.get(row.implementation or "unknown", 0) + row.count
    inferred = counts.pop("unfused", 0)
    parts = [f"{count:,} {name}" for name, count in sorted(counts.items(), key=lambda item: -item[1])]
    text = f"every attention call whose path is proven ran fused ({', '.join(parts)})" if parts else ""
    if inferred:
        hint = f"{inferred:,} seem unfused from the order of kernels alone"
        text = f"{text}; {hint}" if text else f"no slow path is proven; {hint}"
    return text
