"""XLA ops that rearrange data."""

from __future__ import annotations

from authored_timeline import kernel
from rules.rule_case import found

OPS = [kernel("fusion.1", 0, 20, kind="xla_op"), kernel("fusion.2", 20, 100, kind="xla_op")]


def test_positive_by_category() -> None:
    category = {"hlo_category": {"fusion.1": '"data formatting"', "fusion.2": '"loop fusion"'}}
    (finding,) = found("TV504", *OPS, text_details=category)
    assert finding.cost_ns == 20_000


def test_positive_by_name_where_no_category_is_recorded() -> None:
    (finding,) = found("TV504", kernel("transpose.7", 0, 20, kind="xla_op"), OPS[1])
    assert finding.cost_ns == 20_000


def test_negative_other_categories() -> None:
    category = {"hlo_category": {"fusion.1": '"loop fusion"', "fusion.2": '"loop fusion"'}}
    assert found("TV504", *OPS, text_details=category) == []


def test_not_recorded_category() -> None:
    assert found("TV504", *OPS) == []
