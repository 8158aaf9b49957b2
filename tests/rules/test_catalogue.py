"""Every rule keeps the form that the docs and the renderers rely on."""

from __future__ import annotations

import re

import pytest

from traceview.rules import catalogue
from traceview.rules.base import HEADINGS, Rule


@pytest.mark.parametrize("rule", catalogue.RULES, ids=lambda rule: rule.code)
def test_documented_under_all_headings_in_order(rule: Rule) -> None:
    positions = [rule.doc.find(f"\n{heading}\n    ") for heading in HEADINGS]
    assert -1 not in positions, f"{rule.code} lacks {[h for h, p in zip(HEADINGS, positions, strict=True) if p < 0]}"
    assert positions == sorted(positions)
    assert rule.summary.endswith(".")


def test_codes_and_names_are_unique_and_well_formed() -> None:
    assert (
        len({rule.code for rule in catalogue.RULES})
        == len({rule.name for rule in catalogue.RULES})
        == len(catalogue.RULES)
    )
    assert all(re.fullmatch(r"TV\d{3}", rule.code) for rule in catalogue.RULES)
    assert all(re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", rule.name) for rule in catalogue.RULES)
    assert [rule.code for rule in catalogue.RULES] == sorted(rule.code for rule in catalogue.RULES)


def test_found_by_code_and_by_name() -> None:
    for rule in catalogue.RULES:
        assert catalogue.find_rule(rule.code.lower()) is rule
        assert catalogue.find_rule(rule.name) is rule
    assert catalogue.find_rule("TV000") is None
