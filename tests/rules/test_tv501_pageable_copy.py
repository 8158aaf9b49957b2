"""Copies of pageable memory."""

from __future__ import annotations

from authored_timeline import Event, kernel
from rules.rule_case import ADD, found


def copy(memory: str, start_us: float, end_us: float) -> Event:
    return kernel(f"Memcpy HtoD ({memory} -> Device)", start_us, end_us, kind="memcpy", stream=9)


def test_positive_the_part_beside_no_computation() -> None:
    (finding,) = found("TV501", copy("Pageable", 0, 30), kernel(ADD, 20, 100))
    assert finding.cost_ns == 20_000
    assert finding.evidence == ("1 × Memcpy HtoD (Pageable -> Device): 0.030 ms, bytes not recorded",)


def test_negative_pinned_or_hidden() -> None:
    assert found("TV501", copy("Pinned", 0, 30), kernel(ADD, 20, 100)) == []
    assert found("TV501", copy("Pageable", 30, 60), kernel(ADD, 20, 100)) == []


def test_not_recorded_memory_kind() -> None:
    assert found("TV501", kernel("[CUDA memcpy Host-to-Device]", 0, 30, kind="memcpy"), kernel(ADD, 30, 100)) == []
