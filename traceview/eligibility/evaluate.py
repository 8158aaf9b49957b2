"""Every rule for every backend, in every world that is left, and what all worlds agree on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Final

from traceview.eligibility.facts import Answer, Facts, Truth
from traceview.eligibility.predicates import PREDICATES
from traceview.eligibility.worlds import World, Worlds, possible_orders, range_text
from traceview.knowledge import sdpa
from traceview.knowledge.sdpa import RuleKind, Scope, SdpaRule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.capture_info import CaptureInfo
    from traceview.eligibility.calls import SdpaCall
    from traceview.eligibility.facts import Device
    from traceview.knowledge.releases import Version

FUSED: Final = ("flash", "efficient", "cudnn")
"""Backends that a rule can refuse; ``math`` takes everything."""


_STRENGTH: Final = {Truth.NO: 0, Truth.UNKNOWN: 1, Truth.YES: 2}


class Status(StrEnum):
    """What a rule says about a backend, over all worlds that are left."""

    REFUSES = "refuses"
    """It holds on the recorded facts, in every release that is left."""
    ALLOWS = "allows"
    """It does not hold."""
    NOT_RECORDED = "not recorded"
    """A fact it needs is not recorded, or it is not established whether the release has the rule."""
    DEPENDS = "depends on version"
    """It holds in some of the releases (or platforms) that are left."""


class State(StrEnum):
    """What all rules together say about a backend."""

    REFUSED = "refused"
    ALLOWED = "allowed"
    """Nothing that is recorded refuses it. Settings that no trace records still may."""
    UNDECIDED = "undecided"
    DEPENDS = "depends on version"


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """One rule on one backend.

    Attributes:
        rule: The rule.
        backend: The backend.
        status: See :class:`Status`.
        text: The recorded facts it rests on, or what is missing.
        releases: Where it holds, if it depends on the release.
        scope: The scope that spoke, with evidence and sources; of several the first.
        by_capture: It rests on a setting that ``traceview.capture`` recorded.
    """

    rule: SdpaRule
    backend: str
    status: Status
    text: str
    releases: tuple[Version, ...]
    scope: Scope
    by_capture: bool = False


@dataclass(frozen=True, slots=True)
class BackendAnswer:
    """One backend: its state, and the rules that speak about it, refusals first."""

    backend: str
    state: State
    rules: tuple[RuleAnswer, ...]

    def with_status(self, *statuses: Status) -> tuple[RuleAnswer, ...]:
        """The rules of some status."""
        return tuple(answer for answer in self.rules if answer.status in statuses)

    @property
    def refused_by(self) -> tuple[RuleAnswer, ...]:
        """The rules that certainly refuse it."""
        return self.with_status(Status.REFUSES)


@dataclass(frozen=True, slots=True)
class Trial:
    """One world with one possible order, and the state of each backend in it."""

    world: World
    order: tuple[str, ...]
    states: dict[str, State]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All backends, the worlds' trials, and the rules that are not about refusal."""

    backends: tuple[BackendAnswer, ...]
    trials: tuple[Trial, ...]
    hidden: tuple[RuleAnswer, ...]
    consequences: tuple[RuleAnswer, ...]


@dataclass(frozen=True, slots=True)
class _Spoken:
    """What one rule says about one backend in one world."""

    world: World
    answer: Answer
    scope: Scope


def evaluate(
    call: SdpaCall, device: Device, worlds: Worlds, cudnn: Version | None, capture: CaptureInfo | None = None
) -> Evaluation:
    """Evaluate the whole rulebook for one call."""
    places = [_Place(world, Facts(call, device, world.platform, world.release, cudnn, capture)) for world in worlds.all]
    kinds: dict[RuleKind, list[RuleAnswer]] = {kind: [] for kind in RuleKind}
    answers = []
    speak = _Speaker()
    for backend in (*FUSED, "math"):
        homes = [place for place in places if any(backend in order for order in place.orders)]
        if not homes:
            continue
        spoken: dict[str, list[_Spoken]] = {}
        for place in homes:
            state = State.ALLOWED
            for rule, scopes in _rules_of(backend, place.world.platform, place.world.release):
                said = speak(rule, scopes, place)
                spoken.setdefault(rule.id, []).append(said)
                if rule.kind is RuleKind.REFUSAL or _is_refusal_by_setting(rule, said):
                    state = _worse(state, said)
            place.states[backend] = state
        refusals = []
        for rule in sdpa.rules():
            if rule.id in spoken:
                merged = _merged(rule, backend, homes, spoken[rule.id])
                kinds[rule.kind].append(merged)
                if rule.kind is RuleKind.REFUSAL or any(_is_refusal_by_setting(rule, one) for one in spoken[rule.id]):
                    refusals.append(merged)
        joint = _joint_state([place.states[backend] for place in homes])
        answers.append(BackendAnswer(backend, joint, _sorted(refusals)))
    trials = tuple(Trial(place.world, order, place.states) for place in places for order in place.orders)
    return Evaluation(tuple(answers), trials, tuple(kinds[RuleKind.HIDDEN]), tuple(kinds[RuleKind.CONSEQUENCE]))


def _is_refusal_by_setting(rule: SdpaRule, said: _Spoken) -> bool:
    """A setting refuses that other traces do not hold: recorded, it is a rule like any other."""
    return rule.kind is RuleKind.HIDDEN and said.answer.by_capture and said.answer.truth is Truth.YES


class _Place:
    """One world while it is evaluated."""

    def __init__(self, world: World, facts: Facts) -> None:
        self.world = world
        self.facts = facts
        self.orders = possible_orders(facts)
        self.states: dict[str, State] = {}


@cache
def _rules_of(backend: str, platform: str, release: Version) -> tuple[tuple[SdpaRule, tuple[Scope, ...]], ...]:
    """The rules that speak about a backend in one world, with the scopes that do."""
    found = []
    for rule in sdpa.rules():
        scopes = tuple(scope for scope in rule.scopes if scope.covers(backend, platform, release))
        if scopes:
            found.append((rule, scopes))
    return tuple(found)


class _Speaker:
    """Asks predicates. What they answer depends on the scope and the platform, not on the release: asked once each."""

    def __init__(self) -> None:
        self._asked: dict[tuple[int, str], Answer] = {}

    def __call__(self, rule: SdpaRule, scopes: tuple[Scope, ...], place: _Place) -> _Spoken:
        """The strongest answer of the scopes of a rule."""
        said = [_Spoken(place.world, self._ask(rule, scope, place.facts), scope) for scope in scopes]
        return said[0] if len(said) == 1 else max(said, key=lambda one: _STRENGTH[one.answer.truth])

    def _ask(self, rule: SdpaRule, scope: Scope, facts: Facts) -> Answer:
        key = (id(scope), facts.platform)
        if key not in self._asked:
            self._asked[key] = _in_scope(rule, scope, facts)
        return self._asked[key]


def _in_scope(rule: SdpaRule, scope: Scope, facts: Facts) -> Answer:
    answer = PREDICATES[rule.predicate](facts, scope.params)
    if answer.truth is Truth.NO:
        return answer
    if scope.sm is not None:
        low, high = scope.sm
        if facts.sm is None:
            return Answer(Truth.UNKNOWN, f"compute capability of the GPU ({answer.text})")
        if facts.sm < (low or 0) or (high is not None and facts.sm > high):
            return Answer(Truth.NO, f"does not concern sm{facts.sm}")
    if answer.truth is Truth.YES and not scope.settled:
        return Answer(Truth.UNKNOWN, f"whether this release has the rule ({answer.text})")
    return answer


def _merged(rule: SdpaRule, backend: str, homes: Sequence[_Place], said: Sequence[_Spoken]) -> RuleAnswer:
    """What all worlds agree on; a world that does not know the rule is one in which it does not hold."""
    holds = [one for one in said if one.answer.truth is Truth.YES]
    unknown = [one for one in said if one.answer.truth is Truth.UNKNOWN]
    if len(holds) == len(homes):
        first, by_capture = holds[0], holds[0].answer.by_capture
        return RuleAnswer(rule, backend, Status.REFUSES, first.answer.text, (), first.scope, by_capture)
    if holds:
        first, by_capture = holds[0], holds[0].answer.by_capture
        return RuleAnswer(
            rule, backend, Status.DEPENDS, _where(holds, homes), _releases(holds), first.scope, by_capture
        )
    if unknown:
        return RuleAnswer(rule, backend, Status.NOT_RECORDED, unknown[0].answer.text, (), unknown[0].scope)
    first = next((one for one in said if one.answer.by_capture), said[0])
    return RuleAnswer(rule, backend, Status.ALLOWS, first.answer.text, (), first.scope, first.answer.by_capture)


def _releases(spoken: Iterable[_Spoken]) -> tuple[Version, ...]:
    return tuple(sorted({one.world.release for one in spoken}))


def _where(holds: Sequence[_Spoken], homes: Sequence[_Place]) -> str:
    """In which of the worlds that are left a rule holds, in words."""
    parts = []
    if {place.world.release for place in homes} != set(_releases(holds)):
        parts.append(range_text(_releases(holds)))
    platforms = list(dict.fromkeys(one.world.platform for one in holds))
    if {place.world.platform for place in homes} != set(platforms):
        parts.append(" or ".join(platforms))
    where = f"holds for {' on '.join(parts) or range_text(_releases(holds))}"
    return f"{holds[0].answer.text}; {where}" if holds[0].answer.text else where


def _worse(state: State, said: _Spoken) -> State:
    """The state of a backend in one world after one more rule."""
    if said.answer.truth is Truth.NO or state is State.REFUSED:
        return state
    return State.REFUSED if said.answer.truth is Truth.YES else State.UNDECIDED


def _joint_state(states: Sequence[State]) -> State:
    distinct = set(states)
    if len(distinct) == 1:
        return distinct.pop()
    return State.UNDECIDED if State.UNDECIDED in distinct else State.DEPENDS


def _sorted(answers: Iterable[RuleAnswer]) -> tuple[RuleAnswer, ...]:
    ranks = {Status.REFUSES: 0, Status.DEPENDS: 1, Status.NOT_RECORDED: 2, Status.ALLOWS: 3}
    return tuple(sorted(answers, key=lambda answer: ranks[answer.status]))
