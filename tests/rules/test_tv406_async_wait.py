"""Waiting of an XLA device for its own asynchronous work."""

from __future__ import annotations

from authored_timeline import Event, kernel
from rules.rule_case import found


def wait(name: str, start_us: float, end_us: float) -> Event:
    return kernel(name, start_us, end_us, kind="async_wait")


def op(start_us: float, end_us: float) -> Event:
    return kernel("fusion.1", start_us, end_us, kind="xla_op")


def test_positive_waits_by_name() -> None:
    (finding,) = found("TV406", op(0, 40), wait("copy-done.3", 40, 60), wait("copy-done.4", 60, 70), op(70, 100))
    assert finding.cost_ns == 30_000
    assert finding.where == "copy-done"
    assert finding.evidence == ("0.030 ms in 2 operations copy-done",)
    assert "30.0 % of the span" in finding.title
    assert len(finding.event_ids) == 2


def test_negative_waits_that_work_hides() -> None:
    assert found("TV406", op(0, 100), wait("copy-done.3", 40, 90)) == []
    assert found("TV406", op(0, 95), wait("copy-done.3", 95, 100)) == []


def test_not_recorded_waits() -> None:
    assert found("TV406", kernel("fusion.1", 0, 10), kernel("fusion.1", 90, 100)) == []
