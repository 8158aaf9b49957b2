"""What other versions and other recordings hold: tables, columns and values that the usual export does not.

Every export here is authored, after the documented schema.
"""

from __future__ import annotations

import polars as pl
import pytest

from nsys.test_attribution import loaded, names
from sample_traces.nsys_authoring import A100, H100, VM, Export
from traceview.gate import check
from traceview.kernels import identify
from traceview.stages import assign_stages
from traceview.steps import find_steps
from traceview.xla_compilations import xla_compilations

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


def kinds(timeline, name):
    return timeline.events.filter(pl.col("name").cast(pl.String) == name)["kind"].to_list()


def note(timeline, kind):
    return next((one.text for one in timeline.report.notes if one.kind == kind), None)


@pytest.mark.parametrize("left", ["shortName", "mangledName"])
def test_a_kernel_without_its_full_name_goes_by_another(left, tmp_path):
    export = Export()
    rank = export.process(1)
    for _ in range(2):
        rank.launch("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128>>(int)")
    rows = export.tables[KERNELS]
    other = export.string("flash_fwd_kernel" if left == "shortName" else "_ZN5flash16flash_fwd_kernelIiEEvi")
    rows[0] |= {"demangledName": None, "shortName": None, left: other}
    export.columns = lambda table, own=export.columns: [
        *own(table), *([("mangledName", "INTEGER")] if table == KERNELS else [])
    ]  # fmt: skip
    timeline = loaded(export, tmp_path)
    assert "lost-name" not in timeline.report.counts
    found = identify(timeline.device_work["name"])
    assert found["family"].to_list() == ["attention"] * 2


def test_a_name_that_is_an_empty_string_is_no_name(tmp_path):
    export = Export()
    rank = export.process(1)
    rank.launch("void softmax<float>(int)")
    export.tables[KERNELS][0]["demangledName"] = export.string("")
    assert names(loaded(export, tmp_path), "kernel") == ["void softmax"]


def test_gpus_of_exports_before_the_table_was_renamed(tmp_path):
    export = Export("2021")
    rank = export.process(1, None)
    rank.launch("k")
    export.add(
        "TARGET_INFO_CUDA_GPU", deviceId=0, name="Tesla V100-SXM2-16GB", computeCapabilityMajor=7,
        computeCapabilityMinor=0, globalMemorySize=16_945_512_448, numMultiprocessors=80,
    )  # fmt: skip
    (device,) = loaded(export, tmp_path).devices.drop("device", "run").to_dicts()
    assert device == {
        "ordinal": 0, "name": "Tesla V100-SXM2-16GB", "vendor": "nvidia", "compute_major": 7, "compute_minor": 0,
        "memory_bytes": 16_945_512_448, "sm_count": 80,
    }  # fmt: skip


def test_gpus_of_2021_go_by_their_id(tmp_path):
    export = Export("2022")
    for device in range(2):
        rank = export.process(300 + device, A100 if device else H100, device=device)
        rank.launch("k")
    for row in export.tables["TARGET_INFO_GPU"]:
        del row["cuDevice"]
    devices = loaded(export, tmp_path).devices.sort("ordinal")
    assert devices.select("ordinal", "name").rows() == [(0, H100.name), (1, A100.name)]


def test_calls_of_mpi_in_tables_of_their_own(tmp_path):
    export = Export("2024")
    for number in range(2):
        rank = export.process(300 + number, physical=number)
        export.add("MPI_RANKS", globalTid=rank.global_tid, rank=5 - number)
        rank.launch("k")
        start = rank.now
        rank.wait(40)
        export.add(
            "MPI_COLLECTIVES_EVENTS", start=start, end=rank.now, globalTid=rank.global_tid,
            textId=export.string("MPI_Allreduce"), size=64,
        )  # fmt: skip
    export.add("UCP_EVENTS", start=start, end=start + 10, globalTid=rank.global_tid, textId=export.string("ucp_put"))
    # A call that had not returned when the recording ended, and one that is a range of NVTX too.
    wait = export.string("MPI_Wait")
    export.add("MPI_P2P_EVENTS", start=start, end=None, globalTid=rank.global_tid, textId=wait)
    again = {"start": 5, "end": 9, "globalTid": rank.global_tid, "textId": export.string("MPI_Send")}
    export.add("MPI_P2P_EVENTS", **again)
    export.add("NVTX_EVENTS", eventType=59, domainId=1, **again)
    timeline = loaded(export, tmp_path)
    assert timeline.processes.sort("pid")["rank"].to_list() == [5, 4]
    assert names(timeline, "annotation").count("MPI_Allreduce") == 2
    calls = timeline.events.filter(pl.col("name").cast(pl.String) == "MPI_Allreduce")
    assert calls["dur_ns"].to_list() == [40_000, 40_000]
    assert calls["thread"].null_count() == 0
    assert kinds(timeline, "MPI_Send") == ["annotation"]
    assert kinds(timeline, "ucp_put") == ["other"]
    assert timeline.report.counts["repeated-range"].n == 1
    assert timeline.report.counts["open-range"].n == 1
    assert note(timeline, "tables-not-read") is None


def test_a_process_of_several_ranks_has_none(tmp_path):
    export = Export()
    rank = export.process(1)
    rank.launch("k")
    for number in range(2):
        export.add("MPI_RANKS", globalTid=rank.global_pid | number, rank=number)
    assert loaded(export, tmp_path).processes["rank"].to_list() == [None]


def test_overhead_without_a_name_goes_by_its_sort(tmp_path):
    export = Export()
    rank = export.process(1)
    rank.launch("k")
    for number, name in ((7, None), (99, None), (6, "Runtime Triggered Module Loading")):
        export.add(
            "CUPTI_ACTIVITY_KIND_OVERHEAD", start=10 * number, end=10 * number + 5, globalTid=rank.global_tid,
            nameId=export.string(name) if name else None, overheadType=number,
        )  # fmt: skip
    export.add("CUPTI_ACTIVITY_KIND_JIT", start=2_000, end=3_000, globalTid=rank.global_tid, overheadType=2)
    export.add("CUDA_HOST_CALLBACK", start=4_000, end=5_000, globalTid=rank.global_tid)
    timeline = loaded(export, tmp_path)
    assert names(timeline, "overhead") == [
        "Runtime Triggered Module Loading", "Lazy function loading", "overhead", "Driver compiler"
    ]  # fmt: skip
    assert kinds(timeline, "host function") == ["other"]
    assert "lost-name" not in timeline.report.counts


def test_no_table_of_events_is_passed_over_in_silence(tmp_path):
    export = Export()
    export.process(1).launch("k")
    for number in range(3):
        export.add("GPU_METRICS", rawTimestamp=number, timestamp=number, typeId=VM, metricId=1, value=50)
    export.add("WDDM_QUEUE_PACKET_START_EVENTS", start=1)
    timeline = loaded(export, tmp_path)
    expected = "Recorded and not imported: GPU_METRICS (3 rows), WDDM_QUEUE_PACKET_START_EVENTS (1 rows)."
    assert note(timeline, "tables-not-read") == expected
    assert timeline.report.trust == "good"
    export.add("CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS", start=1, end=2, deviceId=0, sourceBytes=64)
    timeline = loaded(export, tmp_path)
    assert note(timeline, "tables-not-read").endswith("Some of it is device work: busy time is a lower bound.")
    assert timeline.report.trust == "limited"


def test_ranges_of_an_export_that_lost_their_type(tmp_path):
    export = Export()
    rank = export.process(1)
    with rank.range("denoise"):
        rank.launch("k")
    for row in export.tables["NVTX_EVENTS"]:
        del row["eventType"]
    timeline = loaded(export, tmp_path)
    assert names(timeline, "annotation") == ["denoise"]
    assert timeline.report.counts["range-type-missing"].n == 1


def test_calls_of_the_general_class_launch_too(tmp_path):
    export = Export("2021")
    rank = export.process(1)
    rank.kernel("k", 5, rank.call("cudaLaunchKernel", event_class=26))
    timeline = loaded(export, tmp_path)
    assert timeline.device_work["launch_id"].null_count() == 0


def test_what_xla_compiles_is_compilation_and_what_it_runs_is_not(tmp_path):
    export = Export()
    rank = export.process(1)
    for program in (2, 3):
        with (
            rank.range(f"XlaCompile:#module=jit_step,program_id={program}#", domain=1),
            rank.range("XlaPassPipeline:#name=optimization,module=jit_step#", domain=1),
        ):
            rank.wait(500)
        with (
            rank.range(f"XlaModule:#hlo_module=jit_step,program_id={program}#", domain=1),
            rank.range("Thunk:#name=jit(step)/dot_general,hlo_op=gemm_fusion_dot.3#", domain=1),
        ):
            rank.launch("gemm_fusion_dot_3", us=50)
    timeline = loaded(export, tmp_path)
    assert len(names(timeline, "compile")) == 4
    found = [(one["what"], one["function"], one["compile_id"], one["recompiled"]) for one in xla_compilations(timeline)]
    assert found == [("xla", "jit_step", "2", False), ("xla", "jit_step", "3", True)]


def flash(export, launches, *, silent=0):
    rank = export.process(1)
    for _ in range(launches):
        rank.launch("flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t>>")
    for _ in range(silent):
        rank.call("cudaLaunchKernel_v7000")
    return export


def test_a_pass_says_what_it_leaves_out(tmp_path):
    export = flash(Export(), 40)
    whole = check(loaded(export, tmp_path))
    assert (whole.verdict, whole.summary) == ("pass", "every attention call ran fused (40 flash-2)")
    export.tables[KERNELS][3] |= {"start": 9_000, "end": 1}
    few = check(loaded(export, tmp_path))
    assert few.verdict == "pass"
    assert few.summary == (
        "every attention call ran fused (39 flash-2); not judged: 1 of 40 rows of device work could not be read, and "
        "1 of 40 launches have no device event in the file"
    )
    silent = check(loaded(flash(Export(), 40, silent=10), tmp_path))
    assert (silent.verdict, silent.summary) == (
        "pass",
        "every attention call ran fused (40 flash-2); not judged: 10 of 50 launches have no device event in the file",
    )


@pytest.mark.parametrize(
    ("table", "column", "kind", "known"),
    [
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "end", "call-without-end", "host calls and ranges without an end"),
        ("NVTX_EVENTS", "end", "call-without-end", "host calls and ranges without an end"),
        ("NVTX_EVENTS", "globalTid", "range-without-thread", "do not say on which thread"),
        ("StringIds", "value", "lost-name", "rows whose name is not in the file"),
        (KERNELS, "globalPid", None, "No launch is recorded for any of the 2 device events"),
        (KERNELS, "end", "duration-missing", "busy time is a lower bound"),
        (KERNELS, "deviceId", None, "2 of 2 rows of device work"),
    ],
)
def test_a_column_that_is_missing_is_said(table, column, kind, known, tmp_path):
    """Beside what no export lacks every column was tried; these are those whose absence changes what can be told."""
    export = Export()
    for pid in (1, 2):
        rank = export.process(pid)
        with rank.op("aten::mm", [[2, 2], [2, 2]]):
            rank.launch("k")
    own = export.columns
    export.columns = lambda name: [one for one in own(name) if (name, one[0]) != (table, column)]
    timeline = loaded(export, tmp_path)
    assert kind is None or timeline.report.counts[kind].n
    assert timeline.report.trust != "good"
    assert any(known in note.text for note in timeline.report.notes)
    # Nothing that ran before its launch or its op may be taken for being inside.
    calls = timeline.events.filter(pl.col("kind").is_in(["api", "op"]))
    assert calls["dur_ns"].max() < 1_000_000


def test_pages_of_unified_memory_move_without_a_launch(tmp_path):
    export = Export()
    rank = export.process(1)
    for number in range(4):
        rank.launch("k")
        rank.work("CUPTI_ACTIVITY_KIND_MEMCPY", 3, 0, bytes=65536, copyKind=11 + number % 2, srcKind=4, dstKind=4)
    timeline = loaded(export, tmp_path)
    assert timeline.device_work["launch_id"].null_count() == 4
    assert timeline.report.trust == "good"
    assert note(timeline, "work-without-launch") is None
    # What a call should have launched is missed all the same.
    export.add("CUPTI_ACTIVITY_KIND_MEMCPY", start=5_000_000, end=5_001_000, deviceId=0, globalPid=rank.global_pid,
               streamId=7, copyKind=1, srcKind=1, dstKind=2)  # fmt: skip
    assert note(loaded(export, tmp_path), "work-without-launch").startswith("1 of 5 device events have no launch")


def test_jax_under_nsight_has_steps_and_stages(tmp_path):
    export = Export()
    rank = export.process(1)
    for _ in range(4):
        with rank.range("XlaModule:#hlo_module=jit_step,program_id=2#", domain=1):
            for scope, us in (("attn", 50), ("mlp", 30), ("attn", 20)):
                with rank.range(f"Thunk:#name=jit(step)/{scope}/dot_general,hlo_op=gemm_fusion_dot.3#", domain=1):
                    rank.launch("gemm_fusion_dot_3", us=us)
    timeline = loaded(export, tmp_path)
    found = find_steps(timeline)
    assert (found.source.value, found.steps["name"].to_list()) == ("launches of the main XLA module", ["jit_step"] * 4)
    work = assign_stages(timeline).timeline.device_work.with_columns(pl.col("stage").cast(pl.String))
    assert dict(work.group_by("stage").agg(pl.col("dur_ns").sum()).iter_rows()) == {"attn": 280_000, "mlp": 120_000}
