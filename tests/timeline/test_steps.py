"""Steps: host rows by time, device rows by their launch."""

from __future__ import annotations

from authored_timeline import host, kernel, launch, op, timeline


def test_a_kernel_belongs_to_the_step_that_launched_it() -> None:
    t = timeline(
        host("annotation", "ProfilerStep#4", 0, 100),
        launch(90, 1),
        host("annotation", "ProfilerStep#5", 100, 200),
        kernel("runs in step 5, asked for in step 4", 150, 160, 1),
        kernel("orphan", 150, 160),
        op("on another thread", 120, 130, thread=1),
        op("after the last step", 300, 310),
    )
    assert dict(zip(t.events["name"], t.events["step"], strict=True)) == {
        "ProfilerStep#4": 4,
        "cudaLaunchKernel": 4,
        "ProfilerStep#5": 5,
        "runs in step 5, asked for in step 4": 4,
        "orphan": None,
        "on another thread": 5,
        "after the last step": None,
    }


def test_without_steps_nothing_is_marked() -> None:
    assert timeline(op("aten::mm", 0, 1)).events["step"].to_list() == [None]
