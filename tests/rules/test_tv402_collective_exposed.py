"""Communication beside no computation."""

from __future__ import annotations

from authored_timeline import kernel
from rules.rule_case import ADD, found

REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def test_positive_the_part_that_nothing_hides() -> None:
    (finding,) = found("TV402", kernel(ADD, 0, 60), kernel(REDUCE, 40, 100, stream=20))
    assert finding.cost_ns == 40_000
    assert finding.evidence[0] == "66.7 % of 0.060 ms of communication"


def test_negative_hidden() -> None:
    assert found("TV402", kernel(ADD, 0, 100), kernel(REDUCE, 40, 100, stream=20)) == []


def test_not_recorded_collectives() -> None:
    assert found("TV402", kernel(ADD, 0, 60), kernel("all_of_it", 60, 100)) == []
