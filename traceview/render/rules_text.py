"""Rules for a terminal, and as JSON documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from traceview.render.units import counted
from traceview.rules.base import HEADINGS
from traceview.rules.documentation import sections

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.render.page import Page
    from traceview.rules.base import Rule

KEYS: Final = {
    "What it finds": "finds",
    "Why it costs": "costs",
    "Evidence it needs": "evidence",
    "When it is wrong": "wrong_when",
    "Fix": "fix",
    "Scope and sources": "scope",
}
"""Heading of a rule's documentation to its key in JSON."""


def write_rule(rule: Rule, page: Page) -> None:
    """One rule: code, name, worst severity, then its documentation under its headings."""
    page.verdict(f"{rule.code} {rule.name}: {_spoken(rule.summary)}")
    page.facts([("severity", f"{rule.severity.value} at worst")])
    parts = sections(rule.doc)
    for heading in HEADINGS:
        page.heading(heading)
        for at, paragraph in enumerate(parts.get(heading, "").split("\n\n")):
            if at:
                page.blank()
            page.paragraph(_spoken(paragraph))


def write_rules(rules: Sequence[Rule], page: Page) -> None:
    """The list of rules."""
    width = max(len(rule.name) for rule in rules)
    page.facts(
        ((f"{rule.code}  {rule.severity.value:7}  {rule.name:{width}}", _spoken(rule.summary)) for rule in rules),
        blank=False,
    )
    page.blank()
    page.verdict(f"{counted(len(rules), 'rule')}; traceview rule CODE shows one", "dim")


def rule_document(rule: Rule) -> dict[str, Any]:
    """``traceview.rule/1``."""
    return {"schema": "traceview.rule/1", "rule": _rule(rule)}


def rules_document(rules: Sequence[Rule]) -> dict[str, Any]:
    """``traceview.rules/1``."""
    return {"schema": "traceview.rules/1", "rules": [_rule(rule) for rule in rules]}


def _rule(rule: Rule) -> dict[str, Any]:
    parts = sections(rule.doc)
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "summary": _spoken(rule.summary),
        **{key: _spoken(parts.get(heading, "")) for heading, key in KEYS.items()},
    }


def _spoken(text: str) -> str:
    """Docstring markup as plain text on one line."""
    return " ".join(text.split()).replace("``", "`")
