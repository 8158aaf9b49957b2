"""FlashAttention-2 over long sequences on newer GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.rule_case import FLASH, found, ran
from traceview.findings import Severity

if TYPE_CHECKING:
    from authored_timeline import Event


def call(length: int | None) -> list[Event]:
    shape = None if length is None else [[2, 16, length, 128]] * 3
    return ran("aten::_scaled_dot_product_flash_attention", FLASH, 0, 10, 1, dims=shape)


def test_positive_half_the_time_is_the_ceiling() -> None:
    (finding,) = found("TV105", *call(4096))
    assert (finding.severity, finding.cost_ns) == (Severity.INFO, 5_000)


def test_positive_the_inner_op_has_its_length_in_the_second_place() -> None:
    inner = "aten::_flash_attention_forward"
    assert len(found("TV105", *ran(inner, FLASH, 0, 10, 1, dims=[[2, 4096, 16, 128]]))) == 1
    assert found("TV105", *ran(inner, FLASH, 0, 10, 1, dims=[[2, 16, 4096, 128]])) == []


def test_negative_short_or_on_ampere() -> None:
    assert found("TV105", *call(512)) == []
    assert found("TV105", *call(4096), capability=(8, 0)) == []


def test_not_recorded_dims() -> None:
    assert found("TV105", *call(None)) == []
