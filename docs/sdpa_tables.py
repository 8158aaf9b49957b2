"""The generated tables of ``docs/eligibility.md``: rules, default orders and sources, from ``traceview/knowledge``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markdown_table import table

from traceview.knowledge import sdpa
from traceview.knowledge.releases import version_text
from traceview.knowledge.sdpa import RuleKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from traceview.knowledge.releases import Version
    from traceview.knowledge.sdpa import Order, Scope, SdpaRule, Source

_HEADS = {
    RuleKind.REFUSAL: "### Rules that refuse a backend",
    RuleKind.HIDDEN: "### Refusals that no trace can show",
    RuleKind.CONSEQUENCE: "### What it means that a backend ran",
}


def releases(since: Version | None, until: Version | None) -> str:
    """A range of releases in a few words."""
    if since is None and until is None:
        return "all"
    if since is None:
        return f"to {version_text(until or ())}"
    if until is None:
        return f"{version_text(since)} on"
    return version_text(since) if since == until else f"{version_text(since)} to {version_text(until)}"


def cited(sources: tuple[Source, ...]) -> str:
    """Links to the list of sources."""
    return ", ".join(f"[{source.id}](#{anchor(source)})" for source in sources)


def anchor(source: Source) -> str:
    """The anchor of a source in the list."""
    return "source-" + source.id.replace(".", "-")


def parameters(params: Mapping[str, object]) -> str:
    """The parameters of a predicate; a switch that is on is its name alone."""
    parts = []
    for key, value in params.items():
        name = key.replace("_", " ")
        shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        parts.append(name if value is True else f"{name} {shown}")
    return "; ".join(parts)


def gpus(sm: tuple[int | None, int | None] | None) -> str:
    """A range of compute capabilities."""
    if sm is None:
        return ""
    low, high = sm
    return f"sm{low} on" if high is None else f"sm{low}" if low == high else f"sm{low} to sm{high}"


def scope_row(rule: SdpaRule, scope: Scope, *, first: bool) -> tuple[str, ...]:
    """One scope; what belongs to the rule stands in its first row only."""
    where = ", ".join(scope.platforms) + (f", {gpus(scope.sm)}" if scope.sm else "")
    evidence = scope.evidence + ("" if scope.settled else ", not settled")
    what = rule.statement + (f" *“{rule.message}”*" if rule.message else "")
    return (
        f"**{rule.id}**" if first else "",
        what if first else "",
        ", ".join(scope.backends),
        where,
        releases(scope.since, scope.until),
        parameters(scope.params),
        f"{evidence}: {cited(scope.sources)}",
    )


def rules() -> Iterator[str]:
    """All rules, scope by scope."""
    head = ("rule", "says", "backends", "where", "releases", "parameters", "evidence")
    for kind, title in _HEADS.items():
        yield from (title, "")
        yield from table(
            head,
            (
                scope_row(rule, scope, first=scope is rule.scopes[0])
                for rule in sdpa.rules()
                if rule.kind is kind
                for scope in rule.scopes
            ),
        )
        yield ""


def condition(order: Order) -> str:
    """The conditions of an order in a few words."""
    parts = []
    if order.sm:
        parts.append("on " + ", ".join(f"sm{sm}" for sm in order.sm))
    if order.sm_min is not None:
        parts.append(f"from sm{order.sm_min} on")
    if order.cudnn_since is not None:
        parts.append(f"cuDNN {version_text(order.cudnn_since)} or newer ({order.cudnn_which})")
    if not order.settled:
        parts.append("not settled")
    return "; ".join(parts) or "otherwise"


def orders() -> Iterator[str]:
    """The default orders; the first row whose condition holds is used."""
    yield from table(
        ("where", "releases", "if", "order", "evidence"),
        (
            (
                ", ".join(order.platforms),
                releases(order.since, order.until),
                condition(order),
                ", ".join(order.backends),
                f"{order.evidence}: {cited(order.sources)}",
            )
            for order in sdpa.orders()
        ),
    )


def sources() -> Iterator[str]:
    """Every source that is cited."""
    for source in sdpa.sources().values():
        link = f" ([link]({source.url}))" if source.url else ""
        yield f'- <a id="{anchor(source)}"></a>**{source.id}**: {source.text}{link}. Read {source.checked}.'
