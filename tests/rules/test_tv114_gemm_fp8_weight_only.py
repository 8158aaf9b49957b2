"""FP8 weights in a weight-only kernel."""

from __future__ import annotations

from authored_timeline import kernel
from rules.rule_case import found

FP8_E4M3 = (2 << 50) + (1 << 49) + (1 << 16) + (3 << 8) + 4
INT4 = (8 << 17) + (4 << 8)


def marlin(type_id: int) -> str:
    return f"void marlin::Marlin<__nv_bfloat16, {type_id}l, 256, 1, 8, 8, true, 4, 8, false>(int4 const*)"


def test_positive_half_the_time_on_a_part_with_fp8() -> None:
    (finding,) = found("TV114", kernel(marlin(FP8_E4M3), 0, 10))
    assert finding.cost_ns == 5_000


def test_negative_four_bit_weights_or_no_native_fp8() -> None:
    assert found("TV114", kernel(marlin(INT4), 0, 10)) == []
    assert found("TV114", kernel(marlin(FP8_E4M3), 0, 10), capability=(8, 0)) == []


def test_not_recorded_type_or_capability() -> None:
    assert found("TV114", kernel("void marlin::Marlin<__nv_bfloat16>", 0, 10)) == []
    assert found("TV114", kernel(marlin(FP8_E4M3), 0, 10), capability=None) == []
