"""Errors of other trace tools, each with the right value.

They were reproduced on the tools named; the events here are authored and as small as the error allows.
"""

from __future__ import annotations

import pytest

from authored_timeline import host, kernel, launch, timeline
from traceview.busy import busy
from traceview.gaps import causes, gaps, idle
from traceview.launch_health import launch_health
from traceview.report import kernel_report

ADD = "add_kernel"


def test_waits_of_the_device_are_not_busy():
    """HolisticTraceAnalysis counts ``Stream Sync`` rows on a stream as kernels."""
    built = timeline(
        launch(0, 1),
        kernel(ADD, 10, 20, 1),
        kernel("Stream Sync", 20, 90, kind="sync"),
        kernel("Event Sync", 20, 90, kind="sync"),
        launch(91, 2),
        kernel(ADD, 100, 110, 2),
    )
    (device,) = busy(built)
    assert (device.busy_ns, device.idle_ns) == (20_000, 80_000)
    assert int(idle(built)["end_ns"][0] - idle(built)["start_ns"][0]) == 80_000


def test_kernels_below_a_microsecond_keep_their_nanoseconds():
    """Durations rounded to whole microseconds turn a trace of small kernels into an idle one."""
    built = timeline(*(kernel(ADD, at + 0.7, at + 0.9) for at in range(100)))
    (device,) = busy(built)
    assert device.busy_ns == 100 * 200
    assert int((idle(built)["end_ns"] - idle(built)["start_ns"]).sum()) == 99 * 800


def test_overlap_on_one_stream_never_makes_idle_time_negative():
    """Programmatic dependent launch starts a kernel before the one before it on its stream has ended."""
    built = timeline(
        launch(0, 1), kernel(ADD, 10, 100, 1), launch(1, 2), kernel(ADD, 90, 200, 2), launch(2, 3), kernel(ADD, 202, 300, 3)
    )  # fmt: skip
    (device,) = busy(built)
    assert (device.busy_ns, device.idle_ns) == (288_000, 2_000)
    assert causes(built, idle(built))["cause"].to_list() == ["queued"]


def test_every_kernel_name_keeps_its_row():
    """HolisticTraceAnalysis merges all names after the tenth into ``others``."""
    built = timeline(*(kernel(f"kernel_{at}", 10 * at, 10 * at + 5) for at in range(25)))
    found = kernel_report(built).kernels
    assert found is not None
    assert {one.name for one in found} == {f"kernel_{at}" for at in range(25)}


def replays(silent):
    """Three replays of a graph, some of which left no kernel; between them the host does nothing."""
    events = []
    for at in range(3):
        events.append(launch(1_000 * at, at, name="cudaGraphLaunch"))
        if at not in silent:
            events.append(kernel(ADD, 1_000 * at + 10, 1_000 * at + 400, at))
    return timeline(*events)


def test_idle_time_after_a_replay_that_is_not_recorded_is_unreliable():
    """A replay of which nothing is recorded reads as 99 % idle (Hyperloom #1047, TraceLens #728)."""
    built = replays(silent=(1,))
    pieces = causes(built, idle(built))
    parts = {row["cause"]: row["end_ns"] - row["start_ns"] for row in pieces.to_dicts()}
    # From the silent replay on; before it the device was idle for sure.
    assert parts == {"host-work": 600_000, "unreliable": 1_010_000}
    assert gaps(built)["recoverable_ns"].to_list() == [600_000]
    (reason,) = pieces.filter(pieces["cause"] == "unreliable")["reason"]
    assert reason == "a graph was replayed in this time whose kernels are not recorded"


def test_a_wait_for_the_whole_device_ends_what_is_not_known_of_a_replay():
    events = [
        launch(0, 0, name="cudaGraphLaunch"), kernel(ADD, 10, 400, 0),
        launch(1_000, 1, name="cudaGraphLaunch"), host("sync", "cudaDeviceSynchronize", 1_010, 1_400),
        launch(2_000, 2, name="cudaGraphLaunch"), kernel(ADD, 2_010, 2_400, 2),
    ]  # fmt: skip
    built = timeline(*events)
    pieces = causes(built, idle(built))
    unreliable = pieces.filter(pieces["cause"] == "unreliable")
    assert int((unreliable["end_ns"] - unreliable["start_ns"]).sum()) == 400_000


def test_recorded_replays_are_ordinary_work():
    built = replays(silent=())
    assert "unreliable" not in causes(built, idle(built))["cause"].to_list()
    (row,) = launch_health(built).to_dicts()
    assert (row["graph_work"], row["graph_share"]) == (3, 1.0)


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)",
        "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*, int*)",
        "void multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long)",
    ],
)
def test_communication_that_is_not_named_nccl_is_no_computation(name):
    """TraceLens knows ``nccl`` and ``cross_device_reduce`` only, so DeepEP and multimem kernels read as computation."""
    built = timeline(launch(0, 1), kernel(name, 10, 110, 1), launch(5, 2), kernel(ADD, 110, 160, 2))
    (device,) = busy(built)
    assert (device.exposed_communication_ns, device.computation_ns) == (100_000, 50_000)
