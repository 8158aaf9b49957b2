"""Time between XLA programs."""

from __future__ import annotations

from authored_timeline import Event, kernel
from rules.rule_case import found


def module(start_us: float, end_us: float) -> Event:
    return kernel("jit_step(123)", start_us, end_us, kind="xla_module")


def test_positive_gaps_and_infeed() -> None:
    (finding,) = found("TV403", module(0, 40), module(60, 100), kernel("infeed.1", 0, 10, kind="xla_op"))
    assert finding.cost_ns == 30_000
    assert finding.where == "jit_step(123)"


def test_positive_host_transfers_by_category() -> None:
    ops = [kernel("recv-done.2", 0, 15, kind="xla_op"), kernel("recv-done.3", 20, 35, kind="xla_op")]
    category = {"hlo_category": {"recv-done.2": '"host recv-done"', "recv-done.3": '"recv-done"'}}
    (finding,) = found("TV403", module(0, 50), module(50, 100), *ops, text_details=category)
    assert finding.cost_ns == 15_000
    assert finding.evidence[1] == "0.015 ms in 1 operation for the host (infeed, send, receive)"


def test_negative_back_to_back() -> None:
    assert found("TV403", module(0, 50), module(51, 100)) == []


def test_not_recorded_modules() -> None:
    assert found("TV403", kernel("fusion.1", 0, 10, kind="xla_op"), kernel("fusion.1", 90, 100, kind="xla_op")) == []
