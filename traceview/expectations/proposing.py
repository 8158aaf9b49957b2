"""Write a ``dispatch.toml`` from a good trace: what held in it, so that the next one must hold it too.

Everything that is written as an expectation was judged on the trace first and holds there. What does not hold, or
cannot be told, is said in a comment and not stated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from traceview.attention import UNTOLD
from traceview.expectations.judging import incomplete, judge_expect, judge_forbid, least_share, split_scope
from traceview.expectations.limits import LIMITS
from traceview.expectations.model import Expect, Forbid, Verdict, Wanted
from traceview.expectations.pieces import Pieces
from traceview.expectations.vocabulary import FAMILIES
from traceview.expectations.writing import accept_lines, comment, listed, quoted
from traceview.findings import Severity
from traceview.kernels import FUSED_ATTENTION

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from traceview.dispatch import DispatchTable
    from traceview.findings import Finding
    from traceview.timeline import Timeline

LEAST_SHARE: Final = 0.5
"""What holds for less of the time is no habit of the program and is not written."""

SHARE_MARGIN: Final = 0.02
"""Shares vary from run to run; this much less is asked than was observed."""

_LIMIT_HINTS: Final = ("idle_share", "exposed_communication_share", "exposed_copy_share", "unidentified_share")


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The user's word that a slow path in the example is known: why, and until when (``None``: without end)."""

    reason: str
    expires: date | None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A file to write.

    Attributes:
        text: The file; empty if ``why_not`` says why there is none.
        stated: Texts of the expectations and prohibitions that it states.
        accepted: How many known findings and violations it accepts.
        why_not: Why the trace cannot serve as an example, ``None`` if it can.
        slow: The reason is a proven slow path, which the user may accept.
    """

    text: str
    stated: tuple[str, ...]
    accepted: int
    why_not: str | None = None
    slow: bool = False


@dataclass(slots=True)
class _Draft:
    """The file so far, block by block."""

    pieces: Pieces
    acceptance: Acceptance | None
    blocks: list[list[str]] = field(default_factory=list)
    stated: list[str] = field(default_factory=list)
    violated: list[str] = field(default_factory=list)

    def expect(self, wanted: Wanted, *, remarks: Sequence[str] = (), min_count: int | None = None) -> bool:
        """State an expectation if it holds on the trace, with the share for which it is proven; say it otherwise."""
        scope = self.pieces.in_scope(wanted)
        least = least_share(split_scope(scope, wanted)) if wanted.demands and scope else 1.0
        min_share = 1.0 if least == 1.0 else int((least - SHARE_MARGIN) * 100) / 100
        expect = Expect(0, wanted, max(min_share, 0.01), min_count)
        judgement = judge_expect(expect, self.pieces)
        if judgement.verdict is not Verdict.PASS or least < LEAST_SHARE:
            judgement = judge_expect(Expect(0, wanted), self.pieces)
            self.remark(f"Not stated: {wanted.scope}, {', '.join(wanted.demands)}. Observed: {judgement.observed}.")
            return False
        self._write(expect, judgement.observed, remarks)
        return True

    def goal(self, wanted: Wanted) -> None:
        """State what should hold; if it does not, it is accepted for now."""
        expect = Expect(0, wanted, min_count=1)
        judgement = judge_expect(expect, self.pieces)
        self._write(expect, judgement.observed, ["It does not hold yet and is accepted below."])
        if judgement.verdict is not Verdict.PASS:
            self.violated.append(expect.text)

    def forbid(self, implementation: str) -> None:
        """Forbid an implementation that did not run, if that is proven."""
        forbid = Forbid(0, Wanted(op="attention", implementation=(implementation,)))
        if judge_forbid(forbid, self.pieces, ()).verdict is Verdict.PASS:
            self.stated.append(forbid.text)
            self.blocks.append(["[[forbid]]", 'op = "attention"', f"implementation = {quoted(implementation)}"])

    def remark(self, text: str) -> None:
        """A comment of its own."""
        self.blocks.append(comment(text))

    def _write(self, expect: Expect, observed: str, remarks: Sequence[str]) -> None:
        wanted = expect.wanted
        lines = [line for text in (f"Observed: {observed}.", *remarks) for line in comment(text)]
        lines += ["[[expect]]", f"op = {quoted(wanted.op or '')}"]
        lines += [f"direction = {quoted(wanted.direction)}"] if wanted.direction else []
        lines += [f"implementation = {listed(wanted.implementation)}"] if wanted.implementation else []
        lines += ["tensor_core = true"] if wanted.tensor_core else []
        lines += [f"min_share = {expect.min_share:g}"] if wanted.demands and expect.min_share < 1 else []
        lines += [f"min_count = {expect.min_count}"] if expect.min_count else []
        self.blocks.append(lines)
        self.stated.append(expect.text)


def propose(
    timeline: Timeline, table: DispatchTable, findings: Sequence[Finding], acceptance: Acceptance | None
) -> Proposal:
    """Make a file from a trace.

    Args:
        timeline: Linked timeline of a run that is as it should be.
        table: Its dispatch table.
        findings: Findings of the built-in rules.
        acceptance: Lets a trace with proven slow paths serve; they are written as accepted.
    """
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors and acceptance is None:
        return Proposal("", (), 0, why_not="; ".join(finding.title for finding in errors), slow=True)
    pieces = Pieces(timeline, table)
    doubt = incomplete(timeline)
    if doubt:
        return Proposal("", (), 0, why_not=doubt)
    draft = _Draft(pieces, acceptance)
    _attention(draft, slow=bool(errors))
    for family in ("gemm", "conv"):
        if pieces.in_scope(Wanted(op=family)):
            draft.expect(Wanted(op=family, tensor_core=True))
    if not draft.stated:
        _whatever_ran(draft)
    if not draft.stated:
        return Proposal("", (), 0, why_not="nothing in it can be told well enough to be expected of another trace")
    accepts = _accepts(draft, errors)
    blocks = [_head(timeline), *draft.blocks, _limits(pieces), *accepts]
    text = "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
    return Proposal(text, tuple(draft.stated), len(accepts))


def _head(timeline: Timeline) -> list[str]:
    devices = sorted({name for name in timeline.devices["name"].drop_nulls().to_list() if name})
    source = " + ".join(dict.fromkeys(run.producer for run in timeline.runs))
    where = f" on {', '.join(devices[:4])}" if devices else ""
    return [
        *comment("What must dispatch. Check a trace with: traceview check-dispatch TRACE --expect THIS-FILE"),
        *comment(f"Written by `traceview init-expectations` from a trace of {source}{where}. Edit it freely."),
        "schema = 1",
        "",
        "# Facts that a trace does not hold; the reasons that check-dispatch gives depend on them.",
        "# [context]",
        '# torch = "2.9"',
        '# cudnn = "9.10"',
    ]


def _attention(draft: _Draft, *, slow: bool) -> None:
    pieces = draft.pieces
    if not pieces.calls:
        draft.remark("No attention call was found in the trace, so nothing is expected of attention.")
        return
    hint = 'Any fused kernel will do? Then write implementation = "fused".'
    directions = sorted({piece.row.direction for piece in pieces.calls}, reverse=True)
    for direction in directions:
        named = direction if len(directions) > 1 else None
        ran = _fused(pieces, direction)
        wanted = Wanted(op="attention", direction=named, implementation=ran or ("fused",))
        if slow:
            draft.goal(wanted)
        elif ran:
            draft.expect(wanted, remarks=[hint], min_count=1)
        else:
            draft.remark(f"What ran as attention ({direction}) cannot be told, so nothing is expected of it.")
    for implementation in ("math", "unfused"):
        draft.forbid(implementation)


def _fused(pieces: Pieces, direction: str) -> tuple[str, ...]:
    ran = {
        piece.implementation
        for piece in pieces.calls
        if piece.row.direction == direction and piece.implementation not in UNTOLD and not piece.is_inferred
    }
    return tuple(name for name in FUSED_ATTENTION if name in ran)


def _whatever_ran(draft: _Draft) -> None:
    """Neither attention nor matrix work: state at least that the most costly family occurs."""
    cost = dict.fromkeys(FAMILIES, 0)
    for piece in draft.pieces.work:
        if piece.family in cost:
            cost[piece.family] += piece.device_ns
    family, device_ns = max(cost.items(), key=lambda item: item[1])
    if device_ns:
        draft.expect(Wanted(op=family), min_count=1)


def _limits(pieces: Pieces) -> list[str]:
    """Limits as comments: how much is too much is for the reader to say."""
    lines = ["# Limits of the whole trace. Choose what is too much and remove the #.", "# [limits]"]
    for key in _LIMIT_HINTS:
        measure = LIMITS[key].measure(pieces)
        if measure.value is not None:
            lines += [f"# {key} = 0.1", *(f"#   {line[2:]}" for line in comment(f"observed: {measure.words}"))]
    return lines if len(lines) > 2 else []


def _accepts(draft: _Draft, errors: Sequence[Finding]) -> list[list[str]]:
    if draft.acceptance is None:
        return []
    reason, expires = draft.acceptance.reason, draft.acceptance.expires
    blocks = [
        [
            *comment(finding.title),
            *accept_lines(rule=finding.code, expectation=None, where=finding.where, reason=reason, expires=expires),
        ]
        for finding in errors
    ]
    blocks += [
        accept_lines(rule=None, expectation=text, where=None, reason=reason, expires=expires) for text in draft.violated
    ]
    return blocks
