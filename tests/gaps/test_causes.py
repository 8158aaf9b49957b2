"""Idle time of a device by cause, on a few authored events each."""

from __future__ import annotations

import polars as pl
import pytest

from authored_timeline import host, kernel, launch, op, timeline
from traceview.accounting import process_times
from traceview.gaps import GAP_PIECES, GAPS, causes, gaps, idle
from traceview.idle_split import IDLE_BY_CAUSE, IdleSplit, idle_by_cause
from traceview.steps import find_steps

ADD = "add_kernel"


def split(*events):
    """Cause to idle time in microseconds, and what is idle in all."""
    built = timeline(*events)
    stretches = idle(built)
    pieces = causes(built, stretches)
    GAP_PIECES.validate(pieces)
    GAPS.validate(gaps(built, pieces))
    table = idle_by_cause(built, pieces, gaps(built, pieces))
    IDLE_BY_CAUSE.validate(table)
    total = int((stretches["end_ns"] - stretches["start_ns"]).sum())
    assert int(table["idle_ns"].sum()) == total
    per_stretch = pieces.group_by("interval").agg((pl.col("end_ns") - pl.col("start_ns")).sum()).sort("interval")
    assert per_stretch["end_ns"].to_list() == (stretches["end_ns"] - stretches["start_ns"]).to_list()
    return dict(zip(table["cause"], (table["idle_ns"] / 1000).to_list(), strict=True))


def held(cause, *events):
    """Name of what held the host for a cause."""
    built = timeline(*events)
    pieces = causes(built, idle(built)).filter(pl.col("cause") == cause)
    return [None if key is None else built.events["name"][key] for key in pieces["culprit_id"]]


def around(*between, launch_us=900.0):
    """A kernel up to 100, then what the host does, then a kernel from 1000 that is launched shortly before."""
    return [
        launch(0, 1), kernel(ADD, 10, 100, 1), *between,
        launch(launch_us, 2), kernel(ADD, 1000, 1010, 2),
    ]  # fmt: skip


def test_launching_is_the_pace_of_small_steps():
    events = [
        event
        for at in range(4)
        for event in (op("aten::add", 50 * at, 50 * at + 20), launch(50 * at + 10, at), kernel(ADD, 50 * at + 15, 50 * at + 25, at))
    ]  # fmt: skip
    assert split(*events) == {"launch": 120}


def test_a_sleep_between_ops_is_host_work_even_if_nothing_is_recorded_of_it():
    assert split(*around()) == {"host-work": 800, "launch": 100}


def test_a_python_frame_names_the_work():
    events = around(host("python", "train.py(7): step", 90, 950), host("python", "<built-in function sleep>", 120, 880))
    assert split(*events) == {"host-work": 800, "launch": 100}
    assert held("host-work", *events) == ["train.py(7): step", "<built-in function sleep>", "train.py(7): step"]


@pytest.mark.parametrize(
    ("cause", "between"),
    [
        ("sync", [op("aten::item", 200, 700), host("sync", "cudaStreamSynchronize", 210, 690)]),
        ("data-loading", [host("annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 200, 700)]),
        ("data-loading", [host("python", "torch/utils/data/dataloader.py(700): __next__", 200, 700)]),
        ("allocator", [op("aten::empty", 200, 700), host("api", "cudaMalloc", 200, 700)]),
        ("compile", [host("compile", "_compile.compile_inner (dynamo_timed)", 200, 700)]),
        ("compile", [host("overhead", "Lazy Function Loading", 200, 700)]),
        ("compile", [host("api", "cuModuleLoadData", 200, 700)]),
        ("garbage-collection", [host("python", "Python GC", 200, 700)]),
        ("profiler", [host("overhead", "Buffer Flush", 200, 700)]),
        ("collective", [host("annotation", "gloo:all_reduce", 200, 700)]),
        ("slow-call", [host("api", "cudaFuncGetAttributes", 200, 700)]),
        ("host-work", [op("torchvision::nms", 200, 700)]),
    ],
)
def test_what_the_launching_thread_did_is_the_cause(cause, between):
    found = split(*around(*between))
    # Before it 100 us pass, the pace of launching; after it 200 us, which is more than that.
    assert found == {
        "launch": 200,
        "host-work": 200 + 500 * (cause == "host-work"),
        cause: 500 + 200 * (cause == "host-work"),
    }


def test_what_is_inside_of_loading_or_compiling_belongs_to_it():
    loading = [
        host("annotation", "enumerate(DataLoader)#next", 200, 700),
        op("aten::item", 300, 400),
        host("api", "cudaHostAlloc", 450, 500),
    ]
    assert split(*around(*loading))["data-loading"] == 500
    # But garbage is collected wherever the interpreter happens to be.
    assert split(*around(*loading, host("python", "Python GC", 510, 610)))["garbage-collection"] == 100


def test_a_blocking_copy_to_the_host():
    events = [
        launch(0, 1), kernel(ADD, 10, 100, 1),
        launch(20, 3, name="cudaMemcpyAsync"), kernel("Memcpy DtoH (Device -> Pageable)", 100, 120, 3, kind="memcpy"),
        launch(300, 2), kernel(ADD, 305, 400, 2),
    ]  # fmt: skip
    copying = [*events[:2], host("api", "cudaMemcpyAsync", 20, 180, correlation=3), *events[3:]]
    found = split(*copying)
    # 60 us inside of the call; it had waited long enough to be charged for what follows up to the next launch.
    assert found["copy-to-host"] == 60
    assert found["sync"] + found.get("host-work", 0) + found.get("launch", 0) == 125


def test_a_wait_is_charged_at_most_what_was_waited():
    drained = [launch(0, 1), kernel(ADD, 10, 100, 1), launch(140, 2), kernel(ADD, 145, 200, 2)]
    assert split(*drained, host("sync", "cudaStreamSynchronize", 2, 101)) == {"sync": 45}
    assert split(*drained, host("sync", "cudaStreamSynchronize", 91, 101)) == {"sync": 10, "launch": 35}


def test_work_launched_in_time_was_queued():
    assert split(launch(0, 1), kernel(ADD, 10, 100, 1), launch(20, 2), kernel(ADD, 103, 200, 2)) == {"queued": 3}


def test_a_long_stretch_although_work_was_queued_is_unknown():
    events = [launch(0, 1), kernel(ADD, 10, 100, 1), launch(20, 2), kernel(ADD, 300, 400, 2)]
    assert split(*events) == {"unknown": 200}
    built = timeline(*events)
    (reason,) = causes(built, idle(built))["reason"]
    assert reason == "the next work was launched long before it started; what it waited for is not recorded"


def test_queued_communication_may_wait_for_another_rank_and_promises_nothing():
    events = [launch(0, 1), kernel(ADD, 10, 100, 1), launch(20, 2), kernel("ncclDevKernel_AllReduce", 300, 400, 2)]
    assert split(*events) == {"collective": 200}
    (row,) = gaps(timeline(*events)).to_dicts()
    assert (row["recoverable_ns"], row["confidence"]) == (0, "inferred")


def test_work_without_a_launch_is_unknown_unless_it_came_before_the_recording():
    early = [kernel(ADD, 0, 100), kernel(ADD, 102, 200)]
    late = [launch(190, 1), kernel(ADD, 202, 300, 1), kernel(ADD, 310, 400)]
    assert split(*early, *late) == {"unknown": 10, "queued": 4}


def test_no_launch_and_no_host_at_all():
    assert split(kernel(ADD, 0, 100), kernel(ADD, 150, 200)) == {"unknown": 50}


def test_the_backward_thread_is_asked_when_the_launching_thread_did_nothing():
    events = [
        launch(0, 1), kernel(ADD, 10, 100, 1),
        op("autograd::engine::evaluate_function: MmBackward0", 150, 850, thread=1),
        host("api", "cudaMalloc", 200, 800, thread=1),
        launch(900, 2), kernel(ADD, 905, 1000, 2),
    ]  # fmt: skip
    assert split(*events)["allocator"] == 600


def test_idle_time_is_that_of_the_device_and_not_of_a_stream():
    events = [
        launch(0, 1), kernel(ADD, 10, 100, 1, stream=7),
        launch(1, 2), kernel(ADD, 50, 300, 2, stream=8),
        launch(310, 3), kernel(ADD, 320, 330, 3, stream=7),
    ]  # fmt: skip
    assert sum(split(*events).values()) == 20


def test_two_devices_and_two_processes_do_not_mix():
    events = [
        launch(0, 1, process=0), kernel(ADD, 10, 100, 1, process=0, device=0),
        launch(150, 2, process=0), kernel(ADD, 160, 170, 2, process=0, device=0),
        launch(0, 1, process=1, thread=1), kernel(ADD, 10, 100, 1, process=1, device=1),
        host("sync", "cudaDeviceSynchronize", 100, 390, process=1, thread=1),
        launch(400, 2, process=1, thread=1), kernel(ADD, 410, 420, 2, process=1, device=1),
    ]  # fmt: skip
    built = timeline(*events)
    table = idle_by_cause(built, causes(built, idle(built)))
    assert table.filter(pl.col("device") == 0)["cause"].to_list() == ["launch"]
    assert table.filter(pl.col("device") == 1).select("cause", "idle_ns").rows() == [
        ("sync", 290_000),
        ("launch", 20_000),
    ]


def test_the_host_of_a_trace_without_devices():
    found = split(
        op("aten::mm", 0, 100), host("annotation", "enumerate(DataLoader)#next", 150, 650), op("aten::mm", 700, 800)
    )
    assert found == {"data-loading": 500, "launch": 100}


def test_nothing_recorded_is_nothing_idle():
    built = timeline()
    assert idle(built).height == 0
    assert causes(built, idle(built)).height == 0
    assert gaps(built).height == 0


def test_stretches_cut_by_the_caller_keep_their_parts():
    built = timeline(*around(host("annotation", "enumerate(DataLoader)#next", 200, 700)))
    cut = pl.DataFrame(
        {"device": [0, 0], "start_ns": [100_000, 400_000], "end_ns": [400_000, 500_000]},
        schema={"device": pl.UInt32, "start_ns": pl.Int64, "end_ns": pl.Int64},
    )
    pieces = causes(built, cut).with_columns(ns=pl.col("end_ns") - pl.col("start_ns"))
    assert pieces.filter(pl.col("cause") == "data-loading")["ns"].to_list() == [200_000, 100_000]
    assert pieces["ns"].sum() == 400_000
    parts = dict(IdleSplit(built)({0: (cut["start_ns"].to_numpy(), cut["end_ns"].to_numpy())})[0])
    assert sum(int((ends - starts).sum()) for starts, ends in parts.values()) == 400_000
    assert int((parts["data-loading"][1] - parts["data-loading"][0]).sum()) == 300_000


def test_several_devices_at_once_are_what_each_is_alone():
    events = [
        event
        for at in range(6)
        for event in (
            op("aten::add", 500 * at, 500 * at + 20), launch(500 * at + 10, 2 * at + 1),
            host("sync", "cudaStreamSynchronize", 500 * at + 30, 500 * at + 200),
            launch(500 * at + 230, 2 * at + 2),
            kernel(ADD, 500 * at + 15, 500 * at + 25, 2 * at + 1),
            kernel(ADD, 500 * at + 235, 500 * at + 300 + at, 2 * at + 2, device=1),
        )
    ]  # fmt: skip
    built = timeline(*events)
    stretches = idle(built)
    assert stretches["device"].n_unique() == 2
    whole = causes(built, stretches).drop("interval")
    for device in (0, 1):
        alone = causes(built, stretches.filter(pl.col("device") == device)).drop("interval")
        assert alone.height > 1
        assert whole.filter(pl.col("device") == device).equals(alone)


TRANSFER = "tpu::System::TransferToDevice"


def moving(start_us, end_us, *, thread=0, name=TRANSFER):
    """A copy that only a host thread recorded, as XProf does for a TPU."""
    return host("memcpy", name, start_us, end_us, thread=thread)


def test_a_copy_that_the_launching_thread_recorded_held_it():
    events = around(moving(200, 700))
    assert split(*events) == {"copy-to-device": 500, "host-work": 200, "launch": 200}
    assert held("copy-to-device", *events) == [TRANSFER]
    (known,) = causes(timeline(*events), idle(timeline(*events))).filter(pl.col("cause") == "copy-to-device")[
        "confidence"
    ]
    assert known == "measured"
    assert split(*around(moving(200, 700, name="tpu::System::TransferFromDevice")))["copy-to-host"] == 500


@pytest.mark.parametrize("doing", ["PjitFunction(f)", None])
def test_a_copy_on_another_thread_held_a_call_that_waited_for_it(doing):
    """Nothing tells that the call waited: the copy ended before the work began, and the thread did nothing of its own."""
    events = around(*([op(doing, 150, 950)] if doing else []), moving(200, 700, thread=5))
    built = timeline(*events)
    pieces = causes(built, idle(built)).filter(pl.col("cause") == "copy-to-device")
    assert pieces.select(pl.col("end_ns") - pl.col("start_ns"), "confidence").rows() == [(500_000, "inferred")]
    assert held("copy-to-device", *events) == [TRANSFER]


def test_a_copy_in_flight_holds_a_program_that_is_in_the_queue():
    events = [*around(launch_us=50.0), moving(120, 980, thread=5)]
    assert split(*events)["copy-to-device"] == 860


@pytest.mark.parametrize(
    "between",
    [
        # Python code of its own is what held the thread, whatever is prefetched meanwhile.
        [host("python", "train.py(7): augment", 110, 890), moving(200, 700, thread=5)],
        # The work did not wait for a copy that ended after it began.
        [moving(200, 1100, thread=5)],
        # The device records its copies itself: what the host has is their enqueueing.
        [moving(200, 700, thread=5), kernel("Memcpy HtoD (Pageable -> Device)", 30, 40, 9, kind="memcpy")],
        # A copy in the other direction is no input.
        [moving(200, 700, thread=5, name="tpu::System::TransferFromDevice")],
    ],
)
def test_what_is_copied_beside_the_work_of_the_host_holds_nobody(between):
    assert "copy-to-device" not in split(*around(*between))


def test_copies_that_only_the_host_recorded_are_a_part_of_the_step():
    built = timeline(
        host("annotation", "ProfilerStep#0", 0, 1100, thread=3), *around(moving(200, 700, thread=5)),
    )  # fmt: skip
    (one,) = process_times(built, find_steps(built).steps)
    assert (one.parts["memcpy"], one.parts["kernel"]) == (500_000, 100_000)
    assert sum(one.parts.values()) == one.wall_ns
