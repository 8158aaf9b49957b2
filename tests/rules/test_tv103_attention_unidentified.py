"""Attention that ran something unknown."""

from __future__ import annotations

from authored_timeline import op
from rules.rule_case import FLASH, found, ran
from traceview.findings import Severity


def test_positive_a_kernel_of_tomorrow() -> None:
    (finding,) = found("TV103", *ran("aten::scaled_dot_product_attention", "brand_new_kernel_2027", 0, 10, 1))
    assert (finding.severity, finding.cost_ns) == (Severity.WARNING, None)


def test_negative_flash() -> None:
    assert found("TV103", *ran("aten::scaled_dot_product_attention", FLASH, 0, 10, 1)) == []


def test_not_recorded_work_is_said_to_be_untold() -> None:
    (finding,) = found("TV103", op("aten::scaled_dot_product_attention", 0, 9))
    assert finding.title.startswith("1 attention call ran something the trace does not tell")
