"""PyTorch's backend choice for scaled dot-product attention, as data: rules, default order, argument order."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from traceview.knowledge.releases import Version, parse_version, within

if TYPE_CHECKING:
    from collections.abc import Mapping


class RuleKind(StrEnum):
    """What a rule does."""

    REFUSAL = "refusal"
    """Refuses a backend when its predicate holds."""
    HIDDEN = "hidden"
    """Refuses a backend on a fact that no trace records: it can be listed, never concluded."""
    CONSEQUENCE = "consequence"
    """What it means that a backend ran; refuses nothing."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a fact was read.

    Attributes:
        id: Key in the data file.
        text: What it is, with function or file and commit, wheel or pull request.
        url: Address, empty for a local observation.
        checked: Date on which it was read, ISO 8601.
    """

    id: str
    text: str
    url: str
    checked: str


@dataclass(frozen=True, slots=True)
class Scope:
    """Where and how one rule holds.

    Attributes:
        backends: Backends it refuses here.
        platforms: ``"cuda"``, ``"rocm"``, ``"cpu"``.
        since: First PyTorch release, ``None`` for the first that has the backend.
        until: Last PyTorch release (with its patch releases), ``None`` for all newer ones.
        sm: Lowest and highest compute capability × 10 (``None``: open), or ``None`` if it holds on all.
        settled: ``False`` where the source does not show whether these releases have the rule. A refusal is then only
            reported as not established.
        params: Arguments of the predicate.
        evidence: ``B`` text in a shipped binary, ``S`` source read, ``H`` shipped header, ``T`` trace, log, live run
            or the maintainers' own thread, ``I`` inferred, ``U`` not confirmed.
        sources: Where it was read.
    """

    backends: tuple[str, ...]
    platforms: tuple[str, ...]
    since: Version | None
    until: Version | None
    sm: tuple[int | None, int | None] | None
    settled: bool
    params: Mapping[str, Any]
    evidence: str
    sources: tuple[Source, ...]

    def covers(self, backend: str, platform: str, version: Version) -> bool:
        """Whether the scope speaks about a backend on a platform in a release."""
        return backend in self.backends and platform in self.platforms and within(version, self.since, self.until)


@dataclass(frozen=True, slots=True)
class SdpaRule:
    """One rule of the rulebook.

    Attributes:
        id: Stable id, never reused.
        kind: See :class:`RuleKind`.
        statement: One sentence.
        predicate: Name of the predicate that evaluates it, see :mod:`traceview.eligibility.predicates`.
        message: The start of PyTorch's own message, printed only when no backend is left; empty if it has none.
        fix: What to change.
        scopes: Where it holds.
    """

    id: str
    kind: RuleKind
    statement: str
    predicate: str
    message: str
    fix: str
    scopes: tuple[Scope, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """A default order in which the backends are tried; the first row whose conditions hold is used.

    Attributes:
        platforms: As in :class:`Scope`.
        since: First PyTorch release.
        until: Last PyTorch release.
        sm: Compute capabilities × 10 it is for, empty for all.
        sm_min: Lowest compute capability × 10, ``None`` for all.
        cudnn_since: It needs this cuDNN version, ``None`` if it does not.
        cudnn_which: ``"built with"`` or ``"runtime"``, which version that is.
        settled: ``False`` where the source does not show whether these releases have this order.
        backends: The order; ``"math"`` is always allowed, so what follows it is never reached by default.
        evidence: As in :class:`Scope`.
        sources: Where it was read.
    """

    platforms: tuple[str, ...]
    since: Version | None
    until: Version | None
    sm: tuple[int, ...]
    sm_min: int | None
    cudnn_since: Version | None
    cudnn_which: str
    settled: bool
    backends: tuple[str, ...]
    evidence: str
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """The arguments of one op, in order; ``takes_mask`` says whether a mask is among them."""

    op: str
    arguments: tuple[str, ...]
    backend: str | None
    counts: Mapping[int, tuple[Version | None, Version | None]] = field(default_factory=dict)

    @property
    def takes_mask(self) -> bool:
        """Whether the op has a mask argument."""
        return "attn_mask" in self.arguments


def _load(name: str) -> dict[str, Any]:
    return tomllib.loads(files("traceview.knowledge").joinpath(name).read_text(encoding="utf-8"))


def _version(text: str | None) -> Version | None:
    return None if text is None else parse_version(text)


@cache
def sources() -> Mapping[str, Source]:
    """All sources by id."""
    table = _load("sdpa_rules.toml")
    return MappingProxyType(
        {
            key: Source(key, row["text"], row.get("url", ""), row.get("checked", table["checked"]))
            for key, row in table["source"].items()
        }
    )


def _sources(ids: list[str]) -> tuple[Source, ...]:
    return tuple(sources()[key] for key in ids)


@cache
def rules() -> tuple[SdpaRule, ...]:
    """All rules, in the order of the data file."""
    return tuple(
        SdpaRule(
            id=row["id"],
            kind=RuleKind(row.get("kind", "refusal")),
            statement=row["statement"],
            predicate=row["predicate"],
            message=row.get("message", ""),
            fix=row["fix"],
            scopes=tuple(_scope(scope) for scope in row["scope"]),
        )
        for row in _load("sdpa_rules.toml")["rule"]
    )


def _scope(row: dict[str, Any]) -> Scope:
    low_high = row.get("sm")
    return Scope(
        backends=tuple(row["backends"]),
        platforms=tuple(row["platforms"]),
        since=_version(row.get("since")),
        until=_version(row.get("until")),
        sm=None if low_high is None else tuple(bound or None for bound in low_high),  # type: ignore[arg-type]
        settled=row.get("settled", True),
        params=MappingProxyType(row.get("params", {})),
        evidence=row["evidence"],
        sources=_sources(row["sources"]),
    )


@cache
def orders() -> tuple[Order, ...]:
    """Default orders; for one platform and release the first row whose conditions hold is used."""
    return tuple(
        Order(
            platforms=tuple(row["platforms"]),
            since=_version(row.get("since")),
            until=_version(row.get("until")),
            sm=tuple(row.get("sm", ())),
            sm_min=row.get("sm_min"),
            cudnn_since=_version(row.get("cudnn_since")),
            cudnn_which=row.get("cudnn_which", "runtime"),
            settled=row.get("settled", True),
            backends=tuple(row["order"]),
            evidence=row["evidence"],
            sources=_sources(row["sources"]),
        )
        for row in _load("sdpa_priorities.toml")["order"]
    )


@cache
def releases() -> tuple[Version, ...]:
    """The PyTorch releases that the rulebook tells apart, oldest first."""
    found = (parse_version(text) for text in _load("sdpa_priorities.toml")["releases"])
    return tuple(version for version in found if version is not None)


@cache
def signatures() -> Mapping[str, Signature]:
    """Argument order by op name."""
    table = {}
    for row in _load("sdpa_priorities.toml")["signature"]:
        counts = {
            int(count): (_version(bounds.get("since")), _version(bounds.get("until")))
            for count, bounds in row.get("counts", {}).items()
        }
        table[row["op"]] = Signature(row["op"], tuple(row["arguments"]), row.get("backend"), MappingProxyType(counts))
    return MappingProxyType(table)


def signature_of(op: str) -> Signature | None:
    """The arguments of an op of scaled dot-product attention, ``None`` for any other name."""
    return signatures().get(op)
