"""Why one call of scaled dot-product attention ran the backend it ran, as far as its record tells."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from traceview.eligibility.evaluate import BackendAnswer, Evaluation, RuleAnswer, State, Status, Trial, evaluate
from traceview.eligibility.facts import RECORDED_BY, Device
from traceview.eligibility.worlds import find_worlds, range_text
from traceview.knowledge.releases import parse_cudnn, parse_version

if TYPE_CHECKING:
    from traceview.capture_info import CaptureInfo
    from traceview.eligibility.calls import SdpaCall
    from traceview.knowledge.releases import Version
    from traceview.knowledge.sdpa import SdpaRule


class Comparison(StrEnum):
    """What ran against what the rules and the default order say."""

    EXPECTED = "expected"
    """It is the first of the default order and nothing refuses it."""
    EXPLAINED = "explained"
    """Every backend before it is refused by rules that hold on recorded facts."""
    POSSIBLE = "possible"
    """It fits, but something that is not recorded (a version, a dim, a stride) decides."""
    UNEXPLAINED = "unexplained"
    """A backend before it is allowed: only a setting that no trace records can be the reason."""
    CONTRADICTED = "contradicted"
    """A rule that holds on recorded facts refuses what ran: the record or the rulebook is wrong."""
    NOT_COMPARED = "not compared"
    """It is not known what ran, or it is none of PyTorch's backends."""


@dataclass(frozen=True, slots=True)
class NotExcluded:
    """A reason that can neither be shown nor ruled out, the backends it would concern, and what is known of it."""

    rule: SdpaRule
    backends: tuple[str, ...]
    known: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer for one call.

    Attributes:
        call: The call as recorded.
        device: Where it ran.
        releases: The PyTorch releases that are left; one if the version is known.
        platforms: The platforms that are left.
        backends: State and rules of each backend that exists there.
        orders: The default orders that are possible.
        expected: Backends that the default order can end in; one if it is certain.
        observed: The backend that ran, ``None`` if not known.
        comparison: See :class:`Comparison`.
        causes: The rules that certainly refuse a backend which is tried before the observed one. Only these may be
            named as the reason.
        also_refused: The rules that certainly refuse a backend which some of the possible orders try before the
            observed one, and others do not.
        open: Rules that would refuse a backend tried before the observed one, if something that is not recorded (or
            the release) were known.
        passed_over: Backends before the observed one that nothing recorded refuses.
        not_excluded: Settings that no trace records, for the backends tried before the observed one and not refused.
        excluded: The same settings where ``traceview.capture`` recorded that they refuse nothing.
        consequences: What it means that this backend ran.
        notes: Remarks on versions.
    """

    call: SdpaCall
    device: Device
    releases: tuple[Version, ...]
    platforms: tuple[str, ...]
    backends: tuple[BackendAnswer, ...]
    orders: tuple[tuple[str, ...], ...]
    expected: tuple[str, ...]
    observed: str | None
    comparison: Comparison
    causes: tuple[RuleAnswer, ...]
    also_refused: tuple[RuleAnswer, ...]
    open: tuple[RuleAnswer, ...]
    passed_over: tuple[str, ...]
    not_excluded: tuple[NotExcluded, ...]
    excluded: tuple[RuleAnswer, ...]
    consequences: tuple[RuleAnswer, ...]
    notes: tuple[str, ...]

    def backend(self, name: str) -> BackendAnswer | None:
        """The answer for one backend, ``None`` if no platform and release that is left has it."""
        return next((answer for answer in self.backends if answer.backend == name), None)

    @property
    def cause_ids(self) -> tuple[str, ...]:
        """Ids of the rules in ``causes``, each once, in the order of the backends."""
        return tuple(dict.fromkeys(answer.rule.id for answer in self.causes))

    @property
    def version_text(self) -> str:
        """The releases that are left, in words."""
        return range_text(self.releases)


def explain(
    call: SdpaCall,
    device: Device | None = None,
    *,
    observed: str | None = None,
    torch: str | None = None,
    cudnn: str | None = None,
    capture: CaptureInfo | None = None,
) -> Explanation:
    """Evaluate the rulebook on one call and compare with what ran.

    Args:
        call: The recorded call, see :func:`traceview.eligibility.read_call`.
        device: Where it ran; ``None`` if the trace does not tell.
        observed: The backend that ran: ``"flash"``, ``"efficient"``, ``"cudnn"`` or ``"math"``.
        torch: PyTorch version, if known.
        cudnn: cuDNN version (``"9.10.2"`` or ``"91002"``), if known.
        capture: The settings that ``traceview.capture`` recorded, if it did.

    Raises:
        ValueError: ``torch`` or ``cudnn`` is no version number.
    """
    device = device or Device()
    worlds = find_worlds(call, device, _stated(torch, "torch"))
    evaluation = evaluate(call, device, worlds, _stated(cudnn, "cudnn"), capture)
    before = _before(observed, evaluation.trials)
    known = [answer for answer in evaluation.backends if answer.backend in before]
    causes = tuple(rule for answer in known for rule in answer.refused_by)
    return Explanation(
        call=call,
        device=device,
        releases=worlds.releases,
        platforms=worlds.platforms,
        backends=evaluation.backends,
        orders=tuple(dict.fromkeys(trial.order for trial in evaluation.trials)),
        expected=_expected(evaluation.trials),
        observed=observed,
        comparison=_compare(
            observed, evaluation.trials, refused_before=any(answer.state is State.REFUSED for answer in known)
        ),
        causes=causes,
        also_refused=_also_refused(evaluation, observed, before),
        open=tuple(
            rule
            for answer in known
            if not answer.refused_by
            for rule in answer.with_status(Status.DEPENDS, Status.NOT_RECORDED)
        ),
        passed_over=tuple(answer.backend for answer in known if answer.state is State.ALLOWED),
        not_excluded=_not_excluded(evaluation, observed, before),
        excluded=_excluded(evaluation, observed, before),
        consequences=_consequences(evaluation, observed),
        notes=worlds.notes,
    )


def _stated(text: str | None, name: str) -> Version | None:
    if text is None:
        return None
    version = parse_cudnn(text) if name == "cudnn" else parse_version(text)
    if version is None:
        raise ValueError(f"{name} version {text!r} is no version number such as 2.9 or 9.10.2")
    return version


def _candidates(trial: Trial) -> tuple[str, ...]:
    """The backends in which the search can end in one trial: up to the first that is allowed."""
    found = []
    for backend in trial.order:
        state = trial.states.get(backend, State.ALLOWED)
        if state is State.REFUSED:
            continue
        found.append(backend)
        if state is State.ALLOWED:
            break
    return tuple(found)


def _expected(trials: tuple[Trial, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(backend for trial in trials for backend in _candidates(trial)))


def _before(observed: str | None, trials: tuple[Trial, ...]) -> tuple[str, ...]:
    """The backends that every possible order tries before the observed one."""
    orders = [trial.order for trial in trials if observed in trial.order]
    if observed is None or not orders:
        return ()
    first = [backend for backend in orders[0] if backend != observed]
    return tuple(
        backend
        for backend in first
        if all(backend in order and order.index(backend) < order.index(observed) for order in orders)
    )


def _also_refused(evaluation: Evaluation, observed: str | None, before: tuple[str, ...]) -> tuple[RuleAnswer, ...]:
    maybe = {
        backend
        for trial in evaluation.trials
        if observed in trial.order
        for backend in trial.order[: trial.order.index(observed)]
    }
    return tuple(
        rule
        for answer in evaluation.backends
        if answer.backend in maybe and answer.backend not in before
        for rule in answer.refused_by
    )


def _compare(observed: str | None, trials: tuple[Trial, ...], *, refused_before: bool) -> Comparison:
    """How what ran fits the trials.

    That a backend ran proves that nothing refused it: trials in which a rule does are not the real one, and what was
    undecided about it is decided.
    """
    tried = [trial for trial in trials if observed in trial.order]
    if observed is None or not tried:
        return Comparison.NOT_COMPARED
    real = [trial for trial in tried if trial.states.get(observed) is not State.REFUSED]
    if not real:
        return Comparison.CONTRADICTED
    ends = [_candidates(Trial(t.world, t.order, {**t.states, observed: State.ALLOWED})) for t in real]
    if not any(observed in end for end in ends):
        return Comparison.UNEXPLAINED
    if any(end != (observed,) for end in ends):
        return Comparison.POSSIBLE
    return Comparison.EXPLAINED if refused_before else Comparison.EXPECTED


def _concerned(evaluation: Evaluation, observed: str | None, before: tuple[str, ...]) -> list[str]:
    """The backends that could have run and did not."""
    return [
        answer.backend
        for answer in evaluation.backends
        if answer.state is not State.REFUSED and answer.backend != observed
        and (observed is None or answer.backend in before)
    ]  # fmt: skip


def _not_excluded(evaluation: Evaluation, observed: str | None, before: tuple[str, ...]) -> tuple[NotExcluded, ...]:
    """Hidden rules for the backends that could have run and did not."""
    concerned = _concerned(evaluation, observed, before)
    found: dict[str, NotExcluded] = {}
    for answer in evaluation.hidden:
        if answer.backend not in concerned or answer.status is not Status.NOT_RECORDED:
            continue
        earlier = found.get(answer.rule.id)
        backends = (*(earlier.backends if earlier else ()), answer.backend)
        known = answer.text if RECORDED_BY in answer.text else ""
        found[answer.rule.id] = NotExcluded(answer.rule, backends, (earlier.known if earlier else "") or known)
    return tuple(found.values())


def _excluded(evaluation: Evaluation, observed: str | None, before: tuple[str, ...]) -> tuple[RuleAnswer, ...]:
    """Hidden rules that do not refuse those backends, because the setting was recorded."""
    concerned = _concerned(evaluation, observed, before)
    return tuple(
        answer
        for answer in evaluation.hidden
        if answer.backend in concerned and answer.status is Status.ALLOWS and answer.by_capture
    )


def _consequences(evaluation: Evaluation, observed: str | None) -> tuple[RuleAnswer, ...]:
    return tuple(
        answer
        for answer in evaluation.consequences
        if answer.backend == observed and answer.status in (Status.REFUSES, Status.DEPENDS)
    )
