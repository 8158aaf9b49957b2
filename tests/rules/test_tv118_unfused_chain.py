"""Chains that are one function."""

from __future__ import annotations

from authored_timeline import Event, kernel
from rules.rule_case import ADD, found, ran

RMS_NORM = ("aten::pow", "aten::mean", "aten::add", "aten::rsqrt", "aten::mul", "aten::to", "aten::mul")


def chains(ops: tuple[str, ...], count: int) -> list[Event]:
    names = [name for _ in range(count) for name in ops]
    return [event for i, name in enumerate(names) for event in ran(name, ADD, 20 * i, 10, i)]


def test_positive_all_but_the_longest_kernel_of_each_chain() -> None:
    (finding,) = found("TV118", *chains(RMS_NORM, 4))
    assert (
        finding.title == "4 RMS norms ran as 6 kernels each: 0.240 ms of kernels, 0.200 ms without the longest of each"
    )
    assert finding.cost_ns == 200_000


def test_negative_once_is_no_model() -> None:
    assert found("TV118", *chains(RMS_NORM, 3)) == []
    assert found("TV118", *chains(("aten::pow", "aten::mean", "aten::mul"), 9)) == []


def test_not_recorded_ops() -> None:
    assert found("TV118", *(kernel(ADD, 20 * i, 20 * i + 10) for i in range(40))) == []
