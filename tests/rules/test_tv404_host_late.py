"""Launches that came too late."""

from __future__ import annotations

from authored_timeline import Event, host, kernel, launch
from rules.rule_case import ADD, found

LATE = [launch(0, 1), kernel(ADD, 10, 60, 1), launch(95, 2), kernel(ADD, 100, 110, 2)]


def wait(start_us: float, end_us: float) -> Event:
    return host("sync", "cudaStreamSynchronize", start_us, end_us)


def test_positive_idle_until_the_launch() -> None:
    (finding,) = found("TV404", *LATE)
    assert finding.cost_ns == 40_000
    assert finding.title == "The device waited for late launches for 0.040 ms, 40.0 % of the recorded span"


def test_positive_names_the_range_the_host_was_in() -> None:
    (finding,) = found(
        "TV404",
        launch(0, 1),
        kernel(ADD, 10, 60, 1),
        host("annotation", "enumerate(DataLoader)#next", 61, 261),
        launch(262, 2),
        kernel(ADD, 264, 300, 2),
    )
    assert finding.evidence[0] == "data-loading: 0.200 ms in 1 stretch, most in enumerate(DataLoader)#next (0.200 ms)"


def test_negative_launched_in_time_or_explained_by_another_rule() -> None:
    assert found("TV404", launch(0, 1), kernel(ADD, 10, 60, 1), launch(50, 2), kernel(ADD, 100, 110, 2)) == []
    assert found("TV404", *LATE, wait(2, 61)) == []
    assert found("TV404", *LATE, host("compile", "compile_inner (dynamo_timed)", 62, 94)) == []


def test_not_recorded_launches() -> None:
    assert found("TV404", kernel(ADD, 10, 60), kernel(ADD, 100, 110)) == []
