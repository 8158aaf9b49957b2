"""Reasons of a dispatch row: why an implementation was or was not chosen, one sentence each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from traceview.eligibility import Comparison, State, Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.eligibility import Explanation, NotExcluded, RuleAnswer
    from traceview.knowledge.sdpa import Scope

_BACKENDS: Final = {"flash": "flash", "efficient": "memory-efficient", "cudnn": "cuDNN", "math": "math"}
_INPUTS: Final = "recorded inputs: "


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
    """

    rule: str
    status: str
    text: str
    evidence: str = ""
    source: str = ""


def eligibility_reasons(explanation: Explanation) -> tuple[Reason, ...]:
    """The reasons of one explained call: causes first, then what is open, what is allowed, and what cannot be seen."""
    return (
        *(_refusal(answer) for answer in explanation.causes),
        _verdict(explanation),
        *(_open(answer) for answer in explanation.open),
        *_allowed(explanation),
        *(_not_excluded(one) for one in explanation.not_excluded),
        *(_consequence(answer) for answer in explanation.consequences),
    )


def _names(backends: tuple[str, ...]) -> str:
    return ", ".join(_BACKENDS[backend] for backend in backends)


def _source(scope: Scope) -> str:
    return f"evidence {scope.evidence}: " + "; ".join(
        f"{source.text} ({source.url})" if source.url else source.text for source in scope.sources
    )


def _refusal(answer: RuleAnswer) -> Reason:
    return Reason(
        rule=answer.rule.id,
        status="refuses",
        text=f"{_BACKENDS[answer.backend]} is refused: {answer.text}. {answer.rule.statement}",
        evidence=_INPUTS + answer.text,
        source=_source(answer.scope),
    )


def _open(answer: RuleAnswer) -> Reason:
    what = "depends on the release" if answer.status is Status.DEPENDS else "cannot be told, not recorded"
    return Reason(
        rule=answer.rule.id,
        status="not recorded",
        text=f"whether {_BACKENDS[answer.backend]} is refused {what}: {answer.text}. {answer.rule.statement}",
        source=_source(answer.scope),
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
        )


def _not_excluded(one: NotExcluded) -> Reason:
    return Reason(
        rule=one.rule.id,
        status="not recorded",
        text=f"not excluded for {_names(one.backends)}: {one.rule.statement}",
        source=_source(one.rule.scopes[0]),
    )


def _consequence(answer: RuleAnswer) -> Reason:
    return Reason(
        rule=answer.rule.id, status="observed", text=answer.rule.statement, evidence=answer.text,
        source=_source(answer.scope),
    )  # fmt: skip


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
    return Reason(rule="order", status=status, text=text, evidence=f"judged for {scope}")
