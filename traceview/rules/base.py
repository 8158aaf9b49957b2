"""What a rule is."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

    from traceview.dispatch import DispatchTable
    from traceview.findings import Finding, Severity
    from traceview.timeline import Timeline

HEADINGS = (
    "What it finds",
    "Why it costs",
    "Evidence it needs",
    "When it is wrong",
    "Fix",
    "Scope and sources",
)
"""The headings of every rule's docstring, in order."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a rule may look at."""

    timeline: Timeline
    table: DispatchTable


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        code: ``"TV"`` and three digits; never reused.
        name: Kebab-case name.
        summary: One sentence.
        severity: The worst severity it can yield.
        check: Facts in, findings out.
        doc: The module's docstring, which is its documentation.
    """

    code: str
    name: str
    summary: str
    severity: Severity
    check: Callable[[Facts], Iterable[Finding]]
    doc: str


def rule_of(module: ModuleType) -> Rule:
    """Make the :class:`Rule` of a rule module from its ``CODE``, ``NAME``, ``SEVERITY``, ``check`` and docstring."""
    doc = inspect.cleandoc(module.__doc__ or "")
    return Rule(
        code=module.CODE,
        name=module.NAME,
        summary=doc.splitlines()[0],
        severity=module.SEVERITY,
        check=module.check,
        doc=doc,
    )
