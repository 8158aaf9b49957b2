"""f32 products at the default precision of a device."""

from __future__ import annotations

import pytest

from authored_timeline import kernel
from rules.rule_case import found

DOT = kernel("fusion.1", 0, 60, kind="xla_op")


def recorded(types: str, asked: str) -> dict[str, dict[str, str]]:
    return {"dot_types": {"fusion.1": f'"{types}"'}, "dot_precision": {"fusion.1": f'"{asked}"'}}


def test_positive_tf32_on_an_h100() -> None:
    (finding,) = found("TV208", DOT, text_details=recorded("f32,f32->f32", "default"))
    assert finding.title.startswith("1 f32 product had the operands rounded to TF32, the default of the device")
    assert finding.severity.value == "info"


@pytest.mark.parametrize(
    ("types", "asked", "capability"),
    [
        ("bf16,bf16->f32", "default", (9, 0)),
        ("f32,f32->f32", "highest", (9, 0)),
        ("f32,f32->f32", "default", (7, 0)),  # a V100 has no TF32
    ],
)
def test_negative_half_operands_or_highest_or_no_tf32(types, asked, capability) -> None:
    assert found("TV208", DOT, capability=capability, text_details=recorded(types, asked)) == []


def test_not_recorded_types_or_device() -> None:
    assert found("TV208", DOT) == []
    assert found("TV208", DOT, capability=None, text_details=recorded("f32,f32->f32", "default")) == []
