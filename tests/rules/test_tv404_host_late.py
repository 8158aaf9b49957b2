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


def held(name: str, kind: str, until_us: float = 20_000) -> str:
    """The advice where one event holds the host for long, and 40 us of launching are beside it."""
    (finding,) = found(
        "TV404",
        *LATE,
        host(kind, name, 111, until_us),
        launch(until_us + 1, 3),
        kernel(ADD, until_us + 3, until_us + 9, 3),
    )
    return finding.fix


def test_positive_the_advice_is_for_the_cause_that_leads() -> None:
    (launching,) = found("TV404", *LATE)
    assert launching.fix == "Launch less often: compile, capture CUDA graphs, or use larger batches."
    assert held("enumerate(DataLoader)#next", "annotation").startswith("Load data ahead of the step")
    assert held("cudaFuncGetAttributes", "api").startswith("Record after a warm-up")
    assert held("cudaMalloc", "api").startswith("Record after a warm-up")
    assert held("train.py(3): save", "python").startswith("Move host work")
    assert not any("graphs" in held(*one) for one in (("cudaMalloc", "api"), ("train.py(3): save", "python")))


def test_positive_what_holds_a_small_part_is_not_called_most() -> None:
    """A hundred frames in turn, of 200 us each: none of them is where most of the time is."""
    frames = [host("python", f"train.py({at}): f", 111 + 200 * at, 310 + 200 * at) for at in range(100)]
    (finding,) = found("TV404", *LATE, *frames, launch(20_120, 3), kernel(ADD, 20_122, 20_130, 3))
    assert finding.evidence[0].endswith("in 1 stretch")


def test_negative_launched_in_time_or_explained_by_another_rule() -> None:
    assert found("TV404", launch(0, 1), kernel(ADD, 10, 60, 1), launch(50, 2), kernel(ADD, 100, 110, 2)) == []
    assert found("TV404", *LATE, wait(2, 61)) == []
    assert found("TV404", *LATE, host("compile", "compile_inner (dynamo_timed)", 62, 94)) == []


def test_not_recorded_launches() -> None:
    assert found("TV404", kernel(ADD, 10, 60), kernel(ADD, 100, 110)) == []
