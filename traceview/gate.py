"""Does what ran hold up: pass, fail, or not to be told.

The built-in policy, when no expectations are given: a proven slow attention path fails, a hint does not, and a trace
that cannot answer is inconclusive. An empty table never stands for "could not look".

With expectations the verdict is theirs: one violated fails, else one that cannot be told is inconclusive, else it
passes. Errors of the built-in policy still fail, unless the file says ``policy = "none"``, expects the implementation,
or accepts the finding.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.attention import INFERRED, SLOW, UNTOLD, Evidence
from traceview.dispatch import Dispatch, DispatchTable, dispatch_table
from traceview.errors import ExitCode
from traceview.expectations.accepting import Accepted, accept_findings, accept_results, unused
from traceview.expectations.circumstances import Circumstances
from traceview.expectations.judging import BLIND_SHARE, hidden_in_graphs, incomplete, judge_expect, judge_forbid, worst
from traceview.expectations.limits import judge_limit
from traceview.expectations.model import Context, ExpectationResult, Judgement, Policy, ResultKind, Verdict
from traceview.expectations.pieces import Pieces
from traceview.expectations.vocabulary import spelled_out
from traceview.findings import Finding, Severity
from traceview.losses import not_judged
from traceview.quantities import percent
from traceview.rules.base import Facts
from traceview.rules.catalogue import all_findings
from traceview.sdpa import version_conflicts
from traceview.stages import Staging, assign_stages, has_marks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import date

    from traceview.expectations.model import Accept, Expect, Expectations, Forbid, Wanted
    from traceview.stages import StagePattern
    from traceview.timeline import Timeline

__all__ = ["BLIND_SHARE", "CheckResult", "Verdict", "check"]

_SAYS_NOTHING: Final = ("unknown", "other")
"""Kernel families whose name does not say what was computed: an opaque program of an accelerator, a new kernel."""

_NO_ATTENTION: Final = ("hyper-connections", "linear-algebra", "media", "spin")
"""Kernels of those families that are known all the same: they wait, solve, decode images, but compute no attention."""

_FOUND_BY: Final = {"TV101": "unfused", "TV102": "math", "TV108": "unfused"}
"""Rules that report nothing but an attention implementation, which a file may expect on purpose."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What ``check-dispatch`` found.

    Attributes:
        verdict: See :class:`Verdict`.
        summary: The verdict in one sentence, with its number and its reason.
        table: Every dispatch of the trace.
        findings: Errors first, then by cost. Accepted ones are of severity info and say until when.
        expectations: Every expectation, prohibition and limit, judged; ``None`` if no file was given.
        expectations_path: The file they are from.
        context: Facts that the trace cannot hold.
        notes: Remarks on what is accepted.
    """

    verdict: Verdict
    summary: str
    table: DispatchTable
    findings: tuple[Finding, ...]
    expectations: tuple[ExpectationResult, ...] | None = None
    expectations_path: str | None = None
    context: Context = field(default_factory=Context)
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """The process exit code for the verdict."""
        return {
            Verdict.PASS: ExitCode.OK,
            Verdict.FAIL: ExitCode.VIOLATED,
            Verdict.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
        }[self.verdict]


def check(
    timeline: Timeline,
    expectations: Expectations | None = None,
    *,
    baseline: Sequence[Accept] = (),
    context: Context | None = None,
    today: date | None = None,
    stages: Sequence[StagePattern] = (),
    facts: Facts | None = None,
) -> CheckResult:
    """Judge a linked timeline.

    Args:
        timeline: With launches linked.
        expectations: What must hold; the built-in policy alone if not given.
        baseline: Accepted findings and violations besides those of ``expectations``.
        context: Facts that the trace cannot hold; those given here outweigh those of ``expectations``.
        today: The day on which accepted ones are still or no longer accepted; if not given, none has expired.
        stages: Stages of the user, before those of ``expectations``. Work is split by stage if any are given, if an
            expectation asks for one, or if the trace has explicit marks.
        facts: What was worked out of the timeline already, see :meth:`traceview.rules.base.Facts.of`. It is of no use
            where stages or versions make another answer.
    """
    stated = expectations.context if expectations else Context()
    context = merge_context(stated, context or Context())
    staging = _stage(timeline, expectations, stages)
    timeline = staging.timeline if staging else timeline
    if facts is None or facts.timeline is not timeline or context.torch or context.cudnn:
        facts = Facts(timeline, dispatch_table(timeline, torch=context.torch, cudnn=context.cudnn))
    table = facts.table
    found = _by_severity(all_findings(facts))
    accepts = (*(expectations.accepts if expectations else ()), *baseline)
    accepted_findings = accept_findings(found, accepts, today)
    counting = [one for one, known in zip(found, accepted_findings.accepted, strict=True) if not known]
    circumstances = Circumstances(timeline, context)
    why_no_stage = staging.why_none if staging else None
    results = judge(facts, expectations, counting, circumstances, why_no_stage=why_no_stage) if expectations else ()
    accepted_results = accept_results(results, accepts, today)
    findings = _by_severity(_expected(one, expectations, circumstances) for one in accepted_findings.kept)
    results = accepted_results.kept
    # Of what is accepted, only that matters here which would have failed the check.
    spared = sum(
        known and _expected(one, expectations, circumstances).severity is Severity.ERROR
        for one, known in zip(found, accepted_findings.accepted, strict=True)
    )
    verdict, summary = _weigh(timeline, table, expectations, findings, results, spared)
    if verdict is Verdict.PASS and (missing := not_judged(timeline)):
        summary = f"{summary}; {missing}"
    return CheckResult(
        verdict=verdict,
        summary=summary,
        table=table,
        findings=findings,
        expectations=results if expectations else None,
        expectations_path=expectations.path if expectations else None,
        context=context,
        notes=(
            *version_conflicts(timeline, {"torch": context.torch, "cudnn": context.cudnn, "cuda": context.cuda}),
            *_notes(accepts, accepted_findings, accepted_results),
            *(staging.notes if staging else ()),
        ),
    )


def _stage(timeline: Timeline, expectations: Expectations | None, stages: Sequence[StagePattern]) -> Staging | None:
    """The stages of the trace if somebody asks for them: rows that nobody asked to split would only be more rows."""
    given = (*stages, *(expectations.stages if expectations else ()))
    if given or (expectations is not None and expectations.asks_for_stages) or has_marks(timeline):
        return assign_stages(timeline, given)
    return None


def merge_context(stated: Context, given: Context) -> Context:
    """``given`` where it says something, else ``stated``."""
    values = {name: getattr(given, name) or getattr(stated, name) for name in Context.__slots__}
    return Context(**values)


def judge(
    facts: Facts,
    expectations: Expectations,
    findings: Sequence[Finding],
    circumstances: Circumstances,
    *,
    why_no_stage: str | None = None,
) -> tuple[ExpectationResult, ...]:
    """Judge everything that a file states, in the order of its lines; nothing is accepted yet."""
    pieces = Pieces(facts.timeline, facts.table, why_no_stage=why_no_stage, facts=facts)

    def expect(one: Expect) -> Judgement:
        return _unless_it_applies(one, circumstances) or judge_expect(one, pieces)

    def forbid(one: Forbid) -> Judgement:
        return _unless_it_applies(one, circumstances) or judge_forbid(one, pieces, findings)

    judged = [
        *((ResultKind.EXPECT, one.line, one.text, expect(one)) for one in expectations.expects),
        *((ResultKind.FORBID, one.line, one.text, forbid(one)) for one in expectations.forbids),
        *((ResultKind.LIMIT, one.line, one.text, judge_limit(one, pieces)) for one in expectations.limits),
    ]
    return tuple(
        ExpectationResult(kind, expectations.path, line, text, judgement.verdict, judgement.observed)
        for kind, line, text, judgement in sorted(judged, key=lambda one: one[1])
    )


def _unless_it_applies(stated: Expect | Forbid, circumstances: Circumstances) -> Judgement | None:
    """What to say of an expectation that is not meant for this trace, or perhaps not; ``None`` if it is."""
    applies = circumstances.applies(stated.when)
    if applies.holds is None:
        return Judgement(Verdict.INCONCLUSIVE, f"whether it applies cannot be told: {applies.why}")
    return None if applies.holds else Judgement(Verdict.SKIPPED, f"does not apply: {applies.why}")


def _by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    order = list(Severity)
    return tuple(sorted(findings, key=lambda one: (order.index(one.severity), -(one.cost_ns or 0), one.code)))


def _expected(finding: Finding, expectations: Expectations | None, circumstances: Circumstances) -> Finding:
    """A finding that does not count: the file asks for what it reports, or for no policy but its own."""
    if expectations is None or finding.severity is not Severity.ERROR:
        return finding
    if expectations.policy is Policy.NONE:
        why = f'not counted, {expectations.path} says policy = "none"'
    else:
        implementation = _FOUND_BY.get(finding.code)
        line = next(
            (
                one.line
                for one in expectations.expects
                if _is_of_all_attention(one.wanted)
                and implementation in spelled_out(one.wanted.implementation)
                and circumstances.applies(one.when).holds
            ),
            None,
        )
        if line is None:
            return finding
        why = f"expected by {expectations.path}:{line}"
    return replace(finding, severity=Severity.INFO, title=f"{why}: {finding.title}")


def _is_of_all_attention(wanted: Wanted) -> bool:
    """A rule reports all calls at once, so an expectation of some of them cannot stand for the rest."""
    return wanted.op == "attention" and wanted.stage is None and wanted.direction is None and not wanted.dtype


def _weigh(
    timeline: Timeline,
    table: DispatchTable,
    expectations: Expectations | None,
    findings: Sequence[Finding],
    results: Sequence[ExpectationResult],
    spared: int,
) -> tuple[Verdict, str]:
    """The verdict and why; ``spared`` findings would fail the check if they were not accepted."""
    errors = [finding.title for finding in findings if finding.severity is Severity.ERROR]
    if expectations is None or not expectations.states_something:
        return (Verdict.FAIL, "; ".join(errors)) if errors else _without_errors(timeline, table, spared)
    skipped = sum(one.verdict is Verdict.SKIPPED for one in results)
    if skipped == len(results):
        return _nothing_applies(timeline, table, expectations, errors, results, spared)
    verdict = worst([*(one.counts for one in results), *([Verdict.FAIL] if errors else [])])
    if verdict is Verdict.PASS:
        accepted = sum(one.accepted is not None for one in results)
        held = len(results) - skipped - accepted
        if skipped or accepted:
            text = f"{held} of {len(results)} expectations {'holds' if held == 1 else 'hold'}"
        else:
            text = f"all {held} expectations hold" if held > 1 else "the expectation holds"
        left = f"{skipped} {'do' if skipped > 1 else 'does'} not apply to this trace" if skipped else ""
        return verdict, "; ".join(part for part in (text, left, _only_accepted(spared, accepted)) if part)
    parts = []
    decisive = [one for one in results if one.counts is verdict]
    if decisive:
        what = "violated" if verdict is Verdict.FAIL else "not to be told from this trace"
        first = decisive[0]
        parts.append(
            f"{len(decisive)} of {len(results)} expectations {'is' if len(decisive) == 1 else 'are'} {what}: "
            f"{first.path}:{first.line}: {first.text} ({first.observed})"
        )
        # Expectations that are written in Python all stand on one line.
        others = list(dict.fromkeys(str(one.line) for one in decisive if one.line != first.line))
        if others:
            parts.append(f"also line{'s' if len(others) > 1 else ''} {', '.join(others)}")
    if verdict is Verdict.FAIL and errors:
        parts.append(f"built-in policy: {'; '.join(errors)}")
    return verdict, "; ".join(parts)


def _nothing_applies(
    timeline: Timeline,
    table: DispatchTable,
    expectations: Expectations,
    errors: Sequence[str],
    results: Sequence[ExpectationResult],
    spared: int,
) -> tuple[Verdict, str]:
    """No expectation is meant for this trace: the built-in policy alone counts, and without it nothing was judged."""
    first = results[0]
    said = (
        f"none of the {len(results)} expectations applies" if len(results) > 1 else "the expectation does not apply"
    ) + f" to this trace ({first.path}:{first.line}: {first.observed})"
    if expectations.policy is Policy.NONE:
        return Verdict.INCONCLUSIVE, f"{said}, so nothing was judged"
    verdict, summary = (Verdict.FAIL, "; ".join(errors)) if errors else _without_errors(timeline, table, spared)
    return verdict, f"{summary}; {said}"


def _notes(
    accepts: Sequence[Accept], findings: Accepted[Finding], results: Accepted[ExpectationResult]
) -> tuple[str, ...]:
    return (*findings.expired, *results.expired, *unused(accepts, findings, results))


def _without_errors(timeline: Timeline, table: DispatchTable, spared: int) -> tuple[Verdict, str]:
    """The built-in policy where nothing slow counts; what the file lost could hold the counter-example."""
    verdict, summary = _as_recorded(timeline, table)
    doubt = incomplete(timeline) or hidden_in_graphs(timeline)
    if verdict is Verdict.PASS and doubt:
        return Verdict.INCONCLUSIVE, f"{summary}; but {doubt}"
    if verdict is Verdict.PASS and spared:
        return verdict, f"{summary}; {_only_accepted(spared)}"
    return verdict, summary


def _only_accepted(findings: int, expectations: int = 0) -> str:
    """What would have failed; empty if nothing would."""
    accepted = {"expectation": expectations, "finding": findings}
    words = [f"{count:,} {what}{'s' if count > 1 else ''}" for what, count in accepted.items() if count]
    are = "is" if findings + expectations == 1 else "are"
    return f"it passes only because {' and '.join(words)} {are} accepted" if words else ""


def _doubt(inferred: list[Dispatch]) -> str:
    if all(row.evidence == Evidence.ORDER.value for row in inferred):
        return "only the order of kernels says so: no op and no shape is recorded that would prove it"
    return "products without batches around a softmax may as well be a soft lookup in a table: that is not proven"


def _as_recorded(timeline: Timeline, table: DispatchTable) -> tuple[Verdict, str]:
    total = sum(row.count for row in table.attention)
    untold = sum(row.count for row in table.attention if row.implementation in UNTOLD)
    if untold:
        return Verdict.INCONCLUSIVE, (
            f"{untold:,} of {total:,} attention calls cannot be judged: the trace does not tell what ran"
        )
    inferred = [row for row in table.attention if row.implementation in SLOW and row.evidence in INFERRED]
    if inferred:
        # Not proven, so it does not fail; but who reads "pass" would take it for proof of the opposite.
        count, share = sum(row.count for row in inferred), sum(row.share or 0 for row in inferred)
        of_busy = f" ({percent(share)} of busy time)" if share else ""
        return Verdict.INCONCLUSIVE, (
            f"{count:,} of {total:,} attention calls look unfused{of_busy}, but {_doubt(inferred)}"
        )
    if table.attention:
        return Verdict.PASS, _what_ran(table)
    kernel_ns = sum(row.device_ns for row in table.dispatches)
    if not table.device_events:
        host_ops = timeline.events.filter(pl.col("kind") == "op").height
        asks = "the only host op asks for no" if host_ops == 1 else f"none of the {host_ops:,} host ops asks for"
        return Verdict.INCONCLUSIVE, (
            f"no device kernel is recorded and {asks} attention, so there is nothing to judge"
        )
    blind = [row for row in table.dispatches if row.family in _SAYS_NOTHING and row.implementation not in _NO_ATTENTION]
    timeless, kernels = sum(_timeless(row) for row in blind), sum(row.count for row in table.dispatches)
    if timeless > BLIND_SHARE * kernels:
        return Verdict.INCONCLUSIVE, (
            f"no attention was found, but {timeless:,} of {kernels:,} kernels are not identified, and no time of "
            "theirs is recorded"
        )
    blind_ns = sum(row.device_ns for row in blind)
    if blind_ns > BLIND_SHARE * kernel_ns:
        longest = max(blind, key=lambda row: row.device_ns).kernels[0].name
        return Verdict.INCONCLUSIVE, (
            f"no attention was found, but {percent(blind_ns / kernel_ns)} of device time is in kernels that "
            f"are not identified (such as {longest[:80]})"
        )
    return Verdict.PASS, (
        "no attention ran: the only device event is no attention kernel, and no op asks for one"
        if table.device_events == 1
        else f"no attention ran: none of the {table.device_events:,} device events is an attention kernel, "
        "and no op asks for one"
    )


def _timeless(row: Dispatch) -> int:
    """How many kernels of a row have no duration at all, so that they weigh nothing in any share of time."""
    return sum(kernel.count for kernel in row.kernels if not kernel.device_ns)


def _what_ran(table: DispatchTable) -> str:
    counts: dict[str, int] = {}
    for row in table.attention:
        counts[row.implementation or "unknown"] = counts.get(row.implementation or "unknown", 0) + row.count
    ran = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))
    slow = sum(count for name, count in counts.items() if name in SLOW)
    if not slow:
        return f"every attention call ran fused ({ran})"
    total = sum(counts.values())
    return f"{slow:,} of {total:,} attention calls did not run fused ({ran})"
