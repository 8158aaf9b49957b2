"""Reasons of a dispatch row: why an implementation was or was not chosen, one sentence each."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from traceview.eligibility import Comparison, State, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from traceview.eligibility import Explanation, NotExcluded, RuleAnswer
    from traceview.knowledge.sdpa import Scope, Source

_BACKENDS: Final = {"flash": "flash", "efficient": "memory-efficient", "cudnn": "cuDNN", "math": "math"}
_INPUTS: Final = "recorded inputs: "


class Role(StrEnum):
    """What a reason is in the story of a call: asked, got, refused, what is open, what it means."""

    OBSERVED = "observed"
    """What the trace itself shows."""
    CAUSE = "cause"
    """Refuses a backend that is certainly tried before the one that ran."""
    ALSO = "also refused"
    """Refuses a backend that may or may not be tried before the one that ran."""
    ORDER = "order"
    """What the default order says about what ran."""
    OPEN = "open"
    """Would refuse a backend, if something that is not recorded were known."""
    ALLOWED = "allowed"
    """No rule refuses the backend."""
    NOT_EXCLUDED = "not excluded"
    """A setting that no trace records."""
    MEANS = "means"
    """What it means that this backend ran."""


@dataclass(frozen=True, slots=True)
class Detail:
    """The parts of a reason's sentence.

    Attributes:
        backends: Names of the backends concerned.
        facts: The recorded facts, or what is missing; empty if it rests on none.
        statement: The rule in one sentence; empty if it is no rule.
        fix: What to change; empty if there is nothing.
        evidence_class: Class of the rule's evidence, see :data:`EVIDENCE_CLASSES`; empty if it is no rule.
        sources: Where the rule was read.
    """

    backends: tuple[str, ...] = ()
    facts: str = ""
    statement: str = ""
    fix: str = ""
    evidence_class: str = ""
    sources: tuple[Source, ...] = ()


EVIDENCE_CLASSES: Final = {
    "B": "text in a shipped binary",
    "S": "source read",
    "H": "shipped header read",
    "T": "trace, log, live run, or the maintainers' own words",
    "I": "inferred",
    "U": "not confirmed",
}
"""Evidence classes of the rulebook in words."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an implementation was or was not chosen.

    Attributes:
        rule: Rule id of the eligibility rulebook; ``"observed"`` for what the trace itself shows, ``"eligible"`` for
            a backend that no rule refuses, ``"order"`` for what the default order says about what ran.
        status: ``"refuses"``, ``"allows"``, ``"not recorded"`` or ``"observed"``.
        text: One sentence.
        evidence: What in the trace shows it.
        source: Where the rule comes from.
        role: What it is in the story of the call.
        detail: The parts of the sentence.
    """

    rule: str
    status: str
    text: str
    evidence: str = ""
    source: str = ""
    role: Role = Role.OBSERVED
    detail: Detail = field(default_factory=Detail)


def eligibility_reasons(explanation: Explanation) -> tuple[Reason, ...]:
    """The reasons of one explained call: causes first, then what is open, what is allowed, and what cannot be seen."""
    return (
        *(_refusal(answer) for answer in explanation.causes),
        *(_also_refused(answer, explanation) for answer in explanation.also_refused),
        _verdict(explanation),
        *(_open(answer) for answer in explanation.open),
        *_allowed(explanation),
        *(_excluded(answer) for answer in explanation.excluded),
        *(_not_excluded(one) for one in explanation.not_excluded),
        *(_consequence(answer) for answer in explanation.consequences),
    )


def changes(reasons: Iterable[Reason]) -> tuple[str, ...]:
    """What to change so that a faster backend takes a call: one line per backend, with the rules it meets then.

    Where no rule refuses and none is open, the settings that no trace records are what is left to look at.

    Args:
        reasons: Those of one call, or of several.
    """
    given = list(reasons)
    by_backend: dict[str, dict[str, str]] = {}
    for reason in given:
        if reason.role is Role.CAUSE and reason.detail.fix:
            by_backend.setdefault(reason.detail.backends[0], {})[reason.rule] = reason.detail.fix.rstrip(".")
    if by_backend:
        return tuple(
            f"{backend}: {'; '.join(f'{fix} ({rule})' for rule, fix in fixes.items())}."
            for backend, fixes in by_backend.items()
        )
    if any(one.role is Role.OPEN for one in given):
        return ()
    hidden = {one.rule: one.detail.fix for one in given if one.role is Role.NOT_EXCLUDED}
    return tuple(f"{fix.rstrip('.')} ({rule})." for rule, fix in hidden.items() if fix)


def _names(backends: tuple[str, ...]) -> str:
    return ", ".join(_BACKENDS[backend] for backend in backends)


def _source(scope: Scope) -> str:
    return f"evidence {scope.evidence}: " + "; ".join(
        f"{source.text} ({source.url})" if source.url else source.text for source in scope.sources
    )


def _detail(answer: RuleAnswer) -> Detail:
    return Detail(
        backends=(_BACKENDS[answer.backend],),
        facts=answer.text,
        statement=answer.rule.statement,
        fix=answer.rule.fix,
        evidence_class=answer.scope.evidence,
        sources=answer.scope.sources,
    )


def _by_setting(answer: RuleAnswer, role: Role) -> Reason:
    """A rule about a setting that was recorded. Its own sentence says what may be, so it is not repeated."""
    backend, refuses = _BACKENDS[answer.backend], role is Role.CAUSE
    return Reason(
        rule=answer.rule.id,
        status="refuses" if refuses else "allows",
        text=f"{backend} {'is refused' if refuses else 'is not refused'} by {answer.rule.id}: {answer.text}",
        evidence=answer.text,
        source=_source(answer.scope),
        role=role,
        detail=Detail(
            backends=(backend,),
            facts=answer.text,
            fix=answer.rule.fix if refuses else "",
            evidence_class=answer.scope.evidence,
            sources=answer.scope.sources,
        ),
    )


def _excluded(answer: RuleAnswer) -> Reason:
    return _by_setting(answer, Role.ALLOWED)


def _refusal(answer: RuleAnswer) -> Reason:
    if answer.by_capture:
        return _by_setting(answer, Role.CAUSE)
    return Reason(
        rule=answer.rule.id,
        status="refuses",
        text=f"{_BACKENDS[answer.backend]} is refused: {answer.text}. {answer.rule.statement}",
        evidence=_INPUTS + answer.text,
        source=_source(answer.scope),
        role=Role.CAUSE,
        detail=_detail(answer),
    )


def _also_refused(answer: RuleAnswer, explanation: Explanation) -> Reason:
    backend, ran = _BACKENDS[answer.backend], _BACKENDS[explanation.observed or ""]
    return Reason(
        rule=answer.rule.id,
        status="refuses",
        text=f"{backend}, if it is tried before {ran}, is refused too: {answer.text}. {answer.rule.statement}",
        evidence=_INPUTS + answer.text,
        source=_source(answer.scope),
        role=Role.ALSO,
        detail=_detail(answer),
    )


def _open(answer: RuleAnswer) -> Reason:
    what = "depends on the release" if answer.status is Status.DEPENDS else "cannot be told, not recorded"
    return Reason(
        rule=answer.rule.id,
        status="not recorded",
        text=f"whether {_BACKENDS[answer.backend]} is refused {what}: {answer.text}. {answer.rule.statement}",
        source=_source(answer.scope),
        role=Role.OPEN,
        detail=_detail(answer),
    )


def _allowed(explanation: Explanation) -> Iterator[Reason]:
    """One reason for each backend that nothing recorded refuses, of those that were passed over or ran."""
    for backend in (*explanation.passed_over, *((explanation.observed,) if explanation.observed else ())):
        answer = explanation.backend(backend)
        if answer is None or answer.state is not State.ALLOWED or not answer.rules:
            continue
        yield Reason(
            rule="eligible",
            status="allows",
            text=f"{_BACKENDS[backend]} is allowed: none of its {len(answer.rules)} rules refuses this call",
            evidence=f"judged for {explanation.version_text}",
            role=Role.ALLOWED,
            detail=Detail(backends=(_BACKENDS[backend],)),
        )


def _not_excluded(one: NotExcluded) -> Reason:
    scope = one.rule.scopes[0]
    known = one.known[:1].upper() + one.known[1:]
    return Reason(
        rule=one.rule.id,
        status="not recorded",
        text=f"not excluded for {_names(one.backends)}: {one.rule.statement}" + (f" {known}." if known else ""),
        source=_source(scope),
        role=Role.NOT_EXCLUDED,
        detail=Detail(
            backends=tuple(_BACKENDS[backend] for backend in one.backends),
            facts=one.known,
            statement=one.rule.statement,
            fix=one.rule.fix,
            evidence_class=scope.evidence,
            sources=scope.sources,
        ),
    )


def _consequence(answer: RuleAnswer) -> Reason:
    return Reason(
        rule=answer.rule.id,
        status="observed",
        text=answer.rule.statement,
        evidence=answer.text,
        source=_source(answer.scope),
        role=Role.MEANS,
        detail=_detail(answer),
    )


def _what_decides(explanation: Explanation) -> str:
    if explanation.open:
        return "what is listed as open decides"
    deciding = (
        ("the PyTorch release", len(explanation.releases) > 1),
        ("the platform", len(explanation.platforms) > 1),
        ("the cuDNN version", "cuda" in explanation.platforms and len(explanation.orders) > 1),
    )
    return f"{' or '.join(name for name, open_ in deciding if open_) or 'something'} decides and is not recorded"


def _verdict(explanation: Explanation) -> Reason:
    """What the default order says about what ran."""
    ran = _BACKENDS.get(explanation.observed or "", "")
    expected = _names(explanation.expected)
    scope = "; ".join((explanation.version_text, *explanation.notes))
    status, text = {
        Comparison.EXPECTED: ("allows", f"{ran} is what the default order chooses for this call"),
        Comparison.EXPLAINED: (
            "allows",
            f"{ran} is what is left: every backend that is tried before it is refused by a rule that holds",
        ),
        Comparison.POSSIBLE: (
            "not recorded",
            f"{ran} fits, but by default this call can end in {expected}: {_what_decides(explanation)}",
        ),
        Comparison.UNEXPLAINED: (
            "not recorded",
            (
                f"not explained by the recorded inputs: {_names(explanation.passed_over) or 'another backend'} would "
                f"be chosen before {ran}; only a setting that no trace records can be the reason"
            ),
        ),
        Comparison.CONTRADICTED: (
            "observed",
            f"{ran} ran although a rule refuses it: the record or the rulebook is wrong here",
        ),
        Comparison.NOT_COMPARED: ("not recorded", f"by default {expected or 'nothing'} would be chosen"),
    }[explanation.comparison]
    return Reason(rule="order", status=status, text=text, evidence=f"judged for {scope}", role=Role.ORDER)
