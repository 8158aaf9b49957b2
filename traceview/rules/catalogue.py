"""The list of all rules: grep for a code here to find its file."""

from __future__ import annotations

from typing import Final

from traceview.rules import (
    tv101_attention_unfused,
    tv102_attention_math,
    tv103_attention_unidentified,
)
from traceview.rules.base import Rule, rule_of

RULES: Final[tuple[Rule, ...]] = tuple(
    rule_of(module)
    for module in (
        tv101_attention_unfused,
        tv102_attention_math,
        tv103_attention_unidentified,
    )
)
"""All rules, by code."""


def find_rule(code: str) -> Rule | None:
    """The rule with a code or a name, upper or lower case."""
    wanted = code.lower()
    return next((rule for rule in RULES if wanted in (rule.code.lower(), rule.name)), None)
