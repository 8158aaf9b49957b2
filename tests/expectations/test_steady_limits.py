"""Limits on what happens after the warm-up: recompilations and idle devices."""

from __future__ import annotations

import pytest

from authored_timeline import host, kernel, launch, op

NAME = "some_kernel"
STEPS = [host("annotation", "ProfilerStep#0", 0, 100), host("annotation", "ProfilerStep#1", 100, 200)]
NOT_TOLD_APART = "; causes are not told apart, so waiting for data counts too"


def compilation(at_us, name="entire_frame_compile (dynamo_timed)", **more):
    return host("compile", name, at_us, at_us + 5, **more)


def work(at_us, dur_us, correlation, name="cudaLaunchKernel", **more):
    """A launch, and its kernel 2 µs later."""
    return [
        launch(at_us, correlation, name=name),
        kernel(NAME, at_us + 2, at_us + 2 + dur_us, correlation, **more),
    ]


RECOMPILES = {
    "in the warm-up": ([*STEPS, compilation(10)], 0, "pass", "0 compilations after the first recorded step"),
    "nothing, with steps": (STEPS, 0, "pass", "nothing was compiled"),
    "nothing, without steps": ([op("aten::add", 0, 1)], 0, "pass", "nothing was compiled"),
    "later": (
        [*STEPS, compilation(110), host("compile", "_compile.compile_inner (dynamo_timed)", 111, 114)],
        0, "fail", "1 compilation after the first recorded step, in step 1",
    ),
    "later, as often as allowed": (
        [*STEPS, compilation(110)], 1, "pass", "1 compilation after the first recorded step, in step 1",
    ),
    "without steps": (
        [compilation(10)], 0, "inconclusive",
        "1 compilation recorded, but fewer than two profiler steps, so warm-up and recompilation cannot be told apart",
    ),
    "nothing that could show it": (
        work(0, 10, 1), 0, "inconclusive",
        "neither ops nor annotations of the host are recorded, so no compilation could be seen",
    ),
    "after the last step": (
        [*STEPS, compilation(300)], 0, "inconclusive",
        "0 compilations after the first recorded step; 1 more cannot be placed before or after the warm-up",
    ),
    "in a process without steps": (
        [*STEPS, compilation(110, process=1, thread=9)], 0, "inconclusive",
        "0 compilations after the first recorded step; 1 more cannot be placed before or after the warm-up",
    ),
    "before the first step": (
        [compilation(1), *(host("annotation", f"ProfilerStep#{n}", 100 * n, 100 * n + 50) for n in (1, 2))],
        0, "pass", "0 compilations after the first recorded step",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RECOMPILES)
def test_recompiles_after_warmup(name, judge):
    events, most, verdict, observed = RECOMPILES[name]
    assert judge(f"[limits]\nrecompiles_after_warmup = {most}\n", *events) == [(verdict, observed)]


IDLE_WARM_UP = work(0, 5, 1)
"""2 to 7 µs; nothing else until the next step: all of that idle time belongs to the warm-up."""

MISSING = (
    "1 of 2 launches have no device event in the file (1 cudaLaunchKernel): device time and busy time are lower bounds."
)
GAPS = {
    "the warm-up does not count": (
        [*STEPS, *IDLE_WARM_UP, *work(110, 50, 2), *work(170, 40, 3)], "pass",
        "the device was idle for 10.0 % of the steps after the first (0.010 ms of 0.100 ms)" + NOT_TOLD_APART,
    ),
    "idle in a later step": (
        [*STEPS, *IDLE_WARM_UP, *work(110, 10, 2), *work(150, 10, 3)], "fail",
        "the device was idle for 60.0 % of the steps after the first (0.030 ms of 0.050 ms)" + NOT_TOLD_APART,
    ),
    "work of the first step that still runs keeps the device busy": (
        [*STEPS, *work(90, 58, 1, stream=8), *work(110, 10, 2), *work(150, 10, 3)], "pass",
        "the device was idle for 4.0 % of the steps after the first (0.002 ms of 0.050 ms)" + NOT_TOLD_APART,
    ),
    "without steps": (
        [*work(0, 10, 1), *work(30, 10, 2)], "fail",
        "the device was idle for 50.0 % of the whole trace, without two profiler steps, (0.020 ms of 0.040 ms)"
        + NOT_TOLD_APART,
    ),
    "a device without steady work": (
        [*STEPS, *work(0, 5, 1, device=1), *work(110, 10, 2)], "pass",
        "the device was idle for 0.0 % of the steps after the first (0.000 ms of 0.010 ms), "
        "1 device without work in that part left out" + NOT_TOLD_APART,
    ),
    "no device work": (STEPS, "inconclusive", "no device work is recorded, so there is no span to measure"),
    "no device work in the later steps": (
        [*STEPS, *work(0, 5, 1)], "inconclusive",
        "no device work linked to a launch in the steps after the first is recorded, so there is no span to measure",
    ),
    "silent graph launches": (
        [*STEPS, *work(110, 10, 2), launch(150, 3, name="cudaGraphLaunch")], "inconclusive",
        "idle time cannot be relied on: 1 of 1 graph launches have no recorded kernel, so their time looks idle",
    ),
    "opaque graphs": (
        [*STEPS, *work(110, 10, 2, name="cudaGraphLaunch", kind="graph")], "inconclusive",
        "idle time cannot be relied on: graphs are recorded as opaque blocks, so idle time inside them cannot be seen",
    ),
    "kernels are missing": (
        [*STEPS, *work(110, 10, 2), launch(150, 3)], "inconclusive",
        f"idle time cannot be relied on: device work is missing: {MISSING}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GAPS)
def test_host_gap_share(name, judge):
    events, verdict, observed = GAPS[name]
    assert judge("[limits]\nhost_gap_share = 0.2\n", *events) == [(verdict, observed)]
