"""Kernels for a larger head dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.rule_case import found, ran

if TYPE_CHECKING:
    from authored_timeline import Event


FLASH_96 = (
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<96, 128, 64, 4, false, false, cutlass::bfloat16_t>>"
)


def call(head: int | None) -> list[Event]:
    shape = None if head is None else [[2, 16, 512, head]] * 3
    return ran("aten::scaled_dot_product_attention", FLASH_96, 0, 96, 1, dims=shape)


def test_positive_a_quarter_is_padding() -> None:
    (finding,) = found("TV107", *call(72))
    assert finding.cost_ns == 24_000
    assert finding.title.startswith("1 attention call with head dimension 72 ran the kernel for 96")


def test_negative_the_dimension_fits() -> None:
    assert found("TV107", *call(96)) == []


def test_not_recorded_dims() -> None:
    assert found("TV107", *call(None)) == []
