"""Waits after which the device stood idle."""

from __future__ import annotations

from authored_timeline import Event, host, kernel, launch, op
from rules.rule_case import ADD, found


def wait_between(wait_us: tuple[float, float], second_launch_us: float, *, second_launched: bool = True) -> list[Event]:
    """A kernel from 10 to 100, a wait, and a kernel that starts 5 after its launch."""
    return [
        launch(0, 1),
        kernel(ADD, 10, 100, 1),
        op("aten::item", *wait_us),
        host("sync", "cudaStreamSynchronize", *wait_us),
        *([launch(second_launch_us, 2)] if second_launched else []),
        kernel(ADD, second_launch_us + 5, second_launch_us + 50, 2),
    ]


def test_positive_the_idle_time_after_a_long_wait() -> None:
    (finding,) = found("TV401", *wait_between((2, 101), 130))
    assert finding.cost_ns == 35_000
    assert finding.evidence == ("1 × aten::item: device idle for 0.035 ms",)


def test_positive_never_more_than_was_waited() -> None:
    (finding,) = found("TV401", *wait_between((91, 101), 130))
    assert finding.cost_ns == 10_000


def test_negative_a_wait_over_a_full_queue() -> None:
    queued = [launch(0, 1), kernel(ADD, 10, 100, 1), launch(1, 2), kernel(ADD, 100, 200, 2)]
    assert found("TV401", *queued, host("sync", "cudaStreamSynchronize", 3, 201)) == []


def test_negative_the_host_was_late_without_a_wait() -> None:
    assert found("TV401", launch(0, 1), kernel(ADD, 10, 100, 1), launch(130, 2), kernel(ADD, 135, 200, 2)) == []


def test_not_recorded_launch() -> None:
    assert found("TV401", *wait_between((2, 101), 130, second_launched=False)) == []
