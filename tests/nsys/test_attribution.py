"""Whose work is it: processes, devices, launches, ranges and ops."""

from __future__ import annotations

import polars as pl
import pytest

import traceview
from nsys.conftest import FLASH
from sample_traces.nsys_authoring import A100, H100, NO_STREAM, Export
from traceview.busy import busy
from traceview.dispatch import dispatch_table


def loaded(export, tmp_path, name="a.sqlite"):
    timeline = traceview.load(export.write_sqlite(tmp_path / name))
    timeline.validate()
    return timeline


def names(timeline, kind):
    return timeline.events.filter(pl.col("kind") == kind)["name"].cast(pl.String).to_list()


def launching(timeline):
    """Name of each piece of device work and (process, name) of the call that launched it."""
    work = timeline.device_work
    calls = timeline.events[work["launch_id"].drop_nulls()]
    assert work["process"].to_list() == calls["process"].to_list()
    return list(zip(work["name"].cast(pl.String), calls["name"].cast(pl.String), strict=True))


def test_ranks_with_the_same_correlations_do_not_mix(author, tmp_path):
    timeline = loaded(author(), tmp_path)
    assert timeline.processes.select("pid", "name").rows() == [(300, "python3.11"), (301, "python3.11")]
    assert timeline.devices["ordinal"].to_list() == [0, 1]
    assert timeline.devices["name"].to_list() == [H100.name] * 2
    assert set(launching(timeline)) == {
        (FLASH, "cudaLaunchKernel"),
        ("Memcpy DtoH (Device -> Pageable)", "cudaMemcpyAsync"),
    }
    waits = timeline.events.filter(pl.col("kind") == "sync").select(pl.col("name").cast(pl.String), "thread", "device")
    assert sorted(waits["name"]) == ["Stream Sync"] * 2 + ["cudaStreamSynchronize"] * 2
    assert (waits["thread"].is_null() == waits["device"].is_not_null()).all()


def test_backtrace_rows_do_not_double_the_kernels(tmp_path):
    export = Export("2022")
    rank = export.process(9, A100)
    for _ in range(3):
        rank.launch("saxpy", backtrace=True)
    timeline = loaded(export, tmp_path)
    assert names(timeline, "kernel") == ["saxpy"] * 3
    assert names(timeline, "api") == ["cudaLaunchKernel"] * 3
    assert timeline.report.counts["backtrace-row"].n == 3
    assert launching(timeline) == [("saxpy", "cudaLaunchKernel")] * 3


def test_a_launch_cut_away_leaves_the_kernel(tmp_path):
    export = Export()
    rank = export.process(9)
    rank.kernel("before", 5, 4242)
    rank.launch("inside")
    timeline = loaded(export, tmp_path)
    assert timeline.device_work["launch_id"].is_null().to_list() == [True, False]
    assert (
        "1 of 2 device events have no launch in the file"
        in {n.kind: n.text for n in timeline.report.notes}["work-without-launch"]
    )


@pytest.mark.parametrize(
    ("generation", "expected"),
    [("2026", [(0, "A100"), (1, "H100")]), ("2023", [(0, None), (0, None)])],
)
def test_one_visible_gpu_per_rank(generation, expected, tmp_path):
    """Both ranks call their GPU 0; only newer exports say which one that is."""
    export = Export(generation)
    export.process(1, A100, device=0).launch("a")
    export.process(2, H100, device=0).launch("b")
    timeline = loaded(export, tmp_path)
    found = [
        (n, name and name.split()[1].split("-")[0]) for n, name in timeline.devices.select("ordinal", "name").rows()
    ]
    assert found == expected
    assert ("device-mapping" in {n.kind for n in timeline.report.notes}) is (generation == "2023")
    assert [one.events for one in busy(timeline)] == [1, 1]


def test_two_processes_on_one_gpu_are_one_device(tmp_path):
    export = Export()
    for pid in (1, 2):
        export.process(pid, H100, physical=0).launch("k", us=10)
    (device,) = busy(loaded(export, tmp_path))
    assert (device.events, device.busy_ns) == (2, 10_000)


def test_ordinals_follow_cuda_not_the_list(tmp_path):
    """The GPU with CUDA's number 0 can have any id in the list."""
    export = Export("2024")
    rank = export.process(5, None)
    for gpu_id, number, gpu in ((0, 1, A100), (1, 0, H100)):
        export.add(
            "TARGET_INFO_GPU",
            id=gpu_id,
            name=gpu.name,
            cuDevice=number,
            computeMajor=gpu.major,
            computeMinor=0,
            smCount=1,
            totalMemory=1,
        )
    rank.launch("k")
    assert loaded(export, tmp_path).devices.select("ordinal", "name").rows() == [(0, H100.name)]


def test_ops_of_emit_nvtx_carry_sizes(author, tmp_path):
    timeline = loaded(author(), tmp_path)
    ops = timeline.events.filter(pl.col("kind") == "op")
    assert ops["name"].cast(pl.String).to_list() == ["aten::scaled_dot_product_attention"] * 2
    assert timeline.inputs.rows() == [(0, "[[1,8,64,64],[1,8,64,64],[1,8,64,64],[]]", None, None, None)]
    kernels = timeline.events.filter(pl.col("kind") == "kernel")
    assert kernels["op_id"].to_list() == ops["id"].to_list()
    (row,) = dispatch_table(timeline).attention
    assert (row.implementation, row.attribution, row.count) == ("flash-2", "attributed", 2)
    assert row.inputs["dims"] == "[[1,8,64,64],[1,8,64,64],[1,8,64,64],[]]"


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("aten::mm, op_id = 3", "op", "aten::mm"),
        ("aten::mm, seq = 3", "op", "aten::mm"),
        ("aten::mm", "op", "aten::mm"),
        ("aten::split.Tensor, op_id = 3", "op", "aten::split.Tensor"),
        ("flash_attn::_flash_attn_forward, op_id = 9", "op", "flash_attn::_flash_attn_forward"),
        ("FlashAttnFunc, seq = 45368, op_id = 990812", "op", "FlashAttnFunc"),
        ("AddmmBackward0, seq = 4, op_id = 9, sizes = [[2, 2]]", "op", "AddmmBackward0"),
        ("detach_, op_id = 7", "op", "detach_"),
        ("Optimizer.step#AdamW.step, op_id = 9", "annotation", "Optimizer.step#AdamW.step"),
        ("FSDP::pre_forward (blocks.3), op_id = 9", "annotation", "FSDP::pre_forward (blocks.3)"),
        ("FSDP::root_pre_forward, op_id = 9", "annotation", "FSDP::root_pre_forward"),
        ("cub::DeviceReduce::Sum", "annotation", "cub::DeviceReduce::Sum"),
        ("denoise step 3", "annotation", "denoise step 3"),
        ("", "annotation", "unnamed range"),
    ],
)
@pytest.mark.parametrize("registered", [False, True])
def test_what_a_range_is(text, kind, name, registered, tmp_path):
    export = Export()
    with export.process(1).range(text, registered=registered):
        pass
    (row,) = loaded(export, tmp_path).events.select(pl.col("kind", "name").cast(pl.String)).rows()
    assert row == (kind, name)


@pytest.mark.parametrize("sizes", ["[[2, 3", "[[2, -3]]", "[[2, 3]] extra", "[[[2]]]", "[2]"])
def test_damaged_sizes_are_not_recorded(sizes, tmp_path):
    export = Export()
    with export.process(1).range(f"aten::mm, op_id = 1, sizes = {sizes}"):
        pass
    timeline = loaded(export, tmp_path)
    assert timeline.inputs.is_empty()
    assert timeline.report.counts["lost-sizes"].n == 1


def test_text_that_is_null_in_all_first_rows(tmp_path):
    """The Arrow driver tells the type of a column from its first batch."""
    export = Export()
    rank = export.process(1)
    for _ in range(70_000):
        export.add(
            "NVTX_EVENTS",
            start=rank.now,
            end=rank.now + 1,
            eventType=59,
            globalTid=rank.global_tid,
            textId=export.string("r"),
            domainId=0,
        )
        rank.now += 2
    with rank.range("the last one"):
        pass
    timeline = loaded(export, tmp_path)
    assert timeline.events["name"].cast(pl.String).value_counts().sort("count").rows() == [
        ("the last one", 1),
        ("r", 70_000),
    ]


def test_open_ranges_end_with_the_recording(tmp_path):
    export = Export()
    rank = export.process(1)
    export.add("NVTX_EVENTS", start=rank.now, eventType=59, globalTid=rank.global_tid, text="open", domainId=0)
    rank.wait(1)
    _, end = rank.launch("k")
    timeline = loaded(export, tmp_path)
    (duration,) = timeline.events.filter(pl.col("name").cast(pl.String) == "open")["dur_ns"]
    assert duration == end - 1_000_000_000
    assert timeline.report.counts["open-range"].n == 1


def test_what_describes_and_is_no_event(tmp_path):
    export = Export()
    rank = export.process(1)
    tid = rank.global_tid
    export.add("NVTX_EVENTS", start=1, eventType=75, globalTid=tid, text="NCCL", domainId=1)
    export.add("NVTX_EVENTS", start=2, eventType=39, globalTid=tid, text="MPI Rank 3", domainId=0)
    export.add("NVTX_EVENTS", start=3, eventType=33, globalTid=tid, text="a category", category=4, domainId=0)
    export.add("NVTX_EVENTS", start=4, eventType=76, globalTid=tid, domainId=1)
    export.add("NVTX_EVENTS", start=5, eventType=34, globalTid=tid, text="a mark", domainId=0)
    export.add("NVTX_EVENTS", start=6, eventType=999, globalTid=tid, text="from the future", domainId=0)
    with rank.range("ncclAllReduce", domain=1):
        pass
    timeline = loaded(export, tmp_path)
    assert timeline.events.select(pl.col("kind", "name").cast(pl.String)).rows() == [
        ("other", "a mark"),
        ("annotation", "ncclAllReduce"),
    ]
    assert timeline.threads["name"].to_list() == ["MPI Rank 3"]
    assert timeline.processes["rank"].to_list() == [3]
    assert timeline.report.counts["lost-nvtx-type"].n == 1
    assert timeline.details["nvtx domain"].rows() == [(1, '"NCCL"')]


def test_a_range_across_threads_belongs_to_no_thread(tmp_path):
    export = Export()
    rank = export.process(1)
    start = rank.now
    with rank.op("aten::mm"):
        rank.launch("k")
    export.add(
        "NVTX_EVENTS",
        start=start - 5,
        end=rank.now + 9,
        eventType=60,
        globalTid=rank.global_tid,
        endGlobalTid=rank.global_tid + 1,
        text="async",
        domainId=0,
    )
    timeline = loaded(export, tmp_path)
    across = timeline.events.filter(pl.col("name").cast(pl.String) == "async")
    assert across.select("thread", "process", "kind").rows() == [(None, 0, "annotation")]
    assert timeline.report.counts["range-across-threads"].n == 1


def test_an_overlapping_range_hides_no_op(tmp_path):
    """It starts inside the op and ends after it, so neither encloses the other."""
    export = Export()
    rank = export.process(1)
    with rank.op("aten::mm"):
        start = rank.now
        rank.launch("k")
    rank.launch("outside any op")
    rank.wait(5)
    export.add(
        "NVTX_EVENTS", start=start, end=rank.now, eventType=60, globalTid=rank.global_tid, text="overlap", domainId=0
    )
    timeline = loaded(export, tmp_path)
    ops = dict(timeline.device_work.select(pl.col("name").cast(pl.String), "op_id").rows())
    assert str(timeline.events["name"][ops["k"]]) == "aten::mm"
    assert ops["outside any op"] is None


def test_graph_nodes_share_one_launch(tmp_path):
    export = Export(mode="Node")
    rank = export.process(1)
    replay = rank.call("cudaGraphLaunch_v10000")
    for node in range(4):
        rank.kernel(FLASH, 5, replay, graphNodeId=node)
    timeline = loaded(export, tmp_path)
    assert launching(timeline) == [(FLASH, "cudaGraphLaunch")] * 4
    assert timeline.device_work["launch_id"].n_unique() == 1
    (row,) = dispatch_table(timeline).attention
    assert (row.attribution, row.count) == ("opaque", 4)
    assert timeline.details["graph node id"]["value"].to_list() == [0, 1, 2, 3]


def test_a_graph_as_one_block_is_busy_once(tmp_path):
    export = Export()
    rank = export.process(1)
    rank.work("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", 50, rank.call("cudaGraphLaunch_v10000"), graphId=7, graphExecId=9)
    both = rank.call("cudaGraphLaunch_v10000")
    rank.work("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", 30, both, graphId=8, graphExecId=9)
    rank.kernel("node", 30, both, stream=20, graphNodeId=3)
    timeline = loaded(export, tmp_path)
    assert names(timeline, "graph") == ["CUDA graph 7"]
    assert names(timeline, "other") == ["CUDA graph 8"]
    assert timeline.report.counts["graph-and-nodes"].n == 1
    assert timeline.device_work["dur_ns"].sum() == 80_000


def test_kernels_go_by_their_full_name(tmp_path):
    export = Export()
    rank = export.process(1)
    for kind in ("float", "c10::BFloat16"):
        rank.launch(f"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<{kind}>>")
    assert len(set(names(loaded(export, tmp_path), "kernel"))) == 2


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"kind": 1, "source": 0, "target": 2}, "Memcpy HtoD (Pageable -> Device)"),
        ({"kind": 1, "source": 1, "target": 2}, "Memcpy HtoD (Pinned -> Device)"),
        ({"kind": 8, "source": 2, "target": 2}, "Memcpy DtoD (Device -> Device)"),
        ({"kind": 10, "source": 2, "target": 2}, "Memcpy PtoP (Device -> Device)"),
        ({"kind": 99, "source": 2, "target": 55}, "Memcpy of unknown kind (Device -> Unknown)"),
    ],
)
def test_copies_are_named_as_the_pytorch_profiler_does(row, expected, tmp_path):
    export = Export()
    export.process(1).copy(3, **row)
    timeline = loaded(export, tmp_path)
    assert names(timeline, "memcpy") == [expected]
    assert ("unknown-value" in timeline.report.counts) is (row["kind"] == 99)


def test_waits_carry_the_device_that_the_process_uses(tmp_path):
    export = Export()
    rank = export.process(1, device=3)
    rank.launch("k")
    export.add(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        start=rank.now,
        end=rank.now + 5,
        deviceId=0,
        contextId=1,
        streamId=NO_STREAM,
        correlationId=99,
        globalPid=rank.global_pid,
        syncType=1,
    )
    timeline = loaded(export, tmp_path)
    assert timeline.devices.height == 1
    (stream,) = timeline.events.filter(pl.col("name").cast(pl.String) == "Event Sync")["stream"]
    assert stream is None


def test_library_calls_overhead_and_the_operating_system(tmp_path):
    export = Export()
    rank = export.process(1)
    for table, name in (
        ("CUBLAS_EVENTS", "cublasGemmEx"),
        ("OSRT_API", "ioctl"),
        ("PROFILER_OVERHEAD", "CUPTI Buffer flush"),
    ):
        export.add(table, start=rank.now, end=rank.now + 10, globalTid=rank.global_tid, nameId=export.string(name))
        rank.wait(1)
    same = {
        "start": rank.now,
        "end": rank.now + 5,
        "globalTid": rank.global_tid,
        "nameId": export.string("Lazy Function Loading"),
    }
    export.add("PROFILER_OVERHEAD", **same)
    export.add("CUPTI_ACTIVITY_KIND_OVERHEAD", **same)
    timeline = loaded(export, tmp_path)
    assert timeline.events.select(pl.col("kind", "name").cast(pl.String)).rows() == [
        ("api", "cublasGemmEx"), ("other", "ioctl"), ("overhead", "CUPTI Buffer flush"), ("overhead", "Lazy Function Loading"),
    ]  # fmt: skip


def test_cuda_events_without_a_time_are_counted(tmp_path):
    export = Export()
    rank = export.process(1)
    rank.launch("k")
    for timestamp in (0, rank.now):
        export.add(
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
            deviceId=0,
            contextId=1,
            streamId=7,
            correlationId=5,
            globalPid=rank.global_pid,
            eventId=1,
            timestamp=timestamp,
        )
    timeline = loaded(export, tmp_path)
    assert names(timeline, "other") == ["CUDA event"]
    assert timeline.report.counts["event-without-time"].n == 1


def test_calls_of_a_class_that_is_not_known_launch_nothing(tmp_path):
    export = Export()
    rank = export.process(1)
    correlation = rank.call("cudaGraphAddKernelNode", event_class=77)
    rank.kernel("k", 5, correlation)
    timeline = loaded(export, tmp_path)
    assert names(timeline, "other") == ["cudaGraphAddKernelNode"]
    assert timeline.device_work["launch_id"].to_list() == [None]
    assert timeline.report.counts["other-call-class"].n == 1


def test_driver_names_keep_their_own_version(tmp_path):
    export = Export()
    rank = export.process(1)
    for name in ("cuMemcpyHtoDAsync_v2", "cudaLaunchKernel_ptsz_v7000", "cuLaunchKernel"):
        rank.call(name)
    assert names(loaded(export, tmp_path), "api") == ["cuMemcpyHtoDAsync_v2", "cudaLaunchKernel_ptsz", "cuLaunchKernel"]


def test_times_before_the_session_are_kept_exactly(tmp_path):
    export = Export()
    rank = export.process(1)
    rank.now = -10_912_345_678
    rank.launch("k", us=1.234)
    timeline = loaded(export, tmp_path)
    assert timeline.runs[0].origin_unix_ns == 1_780_000_000_000_000_000 - 10_912_345_678
    assert timeline.device_work["dur_ns"].to_list() == [1_234]


def test_impossible_times_are_counted(tmp_path):
    export = Export()
    rank = export.process(1)
    for _ in range(5):
        rank.launch("k")
    place = {
        "deviceId": 0,
        "contextId": 1,
        "streamId": 7,
        "correlationId": 77,
        "globalPid": rank.global_pid,
        "demangledName": export.string("bad"),
    }
    for start, end in ((10, 5), (2**62, 2**62 + 1), (None, 5), (0, 0), (-(2**63), 2**63 - 1)):
        export.add("CUPTI_ACTIVITY_KIND_KERNEL", start=start, end=end, **place)
    timeline = loaded(export, tmp_path)
    assert names(timeline, "kernel") == ["k"] * 5
    counts = {kind: count.n for kind, count in timeline.report.counts.items()}
    assert counts == {"lost-negative-duration": 1, "lost-without-start": 1, "lost-time-zero": 1, "lost-time-far-off": 2}


def test_details_are_read_when_asked_for(author, tmp_path):
    timeline = loaded(author(), tmp_path)
    kernels = timeline.events.filter(pl.col("kind") == "kernel")["id"].to_list()
    assert timeline.details["grid"].rows() == [(kernel, "[8,2,1]") for kernel in kernels]
    assert timeline.details["registers per thread"]["value"].to_list() == [32, 32]
    assert timeline.details["shared memory"]["value"].to_list() == [1536, 1536]
    timeline.validate()


def test_names_that_are_not_in_the_export(tmp_path):
    export = Export()
    rank = export.process(1)
    rank.launch("k")
    export.tables["CUPTI_ACTIVITY_KIND_KERNEL"][0] |= {"demangledName": 987_654_321, "shortName": 987_654_322}
    timeline = loaded(export, tmp_path)
    assert names(timeline, "kernel") == ["unnamed kernel"]
    assert timeline.report.counts["lost-name"].n == 1
