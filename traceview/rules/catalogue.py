"""All rules: one for each module of this package that is named ``tvNNN_name``."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from typing import TYPE_CHECKING, Final

from traceview import rules
from traceview.rules.base import Rule, rule_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.findings import Finding
    from traceview.rules.base import Facts

_MODULE: Final = re.compile(r"tv\d{3}_\w+")


def _modules() -> tuple[str, ...]:
    """Names of the rule modules, by code."""
    return tuple(sorted(one.name for one in pkgutil.iter_modules(rules.__path__) if _MODULE.fullmatch(one.name)))


RULES: Final[tuple[Rule, ...]] = tuple(rule_of(import_module(f"{rules.__name__}.{name}")) for name in _modules())
"""All rules, by code."""


def all_findings(facts: Facts) -> Iterator[Finding]:
    """What every rule finds, rule by rule."""
    return (finding for rule in RULES for finding in facts.found(rule))


def find_rule(code: str) -> Rule | None:
    """The rule with a code or a name, upper or lower case."""
    wanted = code.lower()
    return next((rule for rule in RULES if wanted in (rule.code.lower(), rule.name)), None)
