"""Small spaces written by hand, one question each: what planes, lines and events become."""

from __future__ import annotations

import polars as pl
import pytest

from sample_traces.xspace_bytes import Instruction, Interned, Space, Unsigned, blob, program
from traceview.busy import busy
from traceview.gate import check
from traceview.recompile_report import recompile_report
from traceview.report import describe, kernel_report
from traceview.steps import find_steps
from traceview.transfer_report import transfer_report
from xspace_planes import gpu


def kinds(timeline):
    return dict(
        timeline.events.select(pl.col("name").cast(pl.String), pl.col("kind").cast(pl.String)).unique().iter_rows()
    )


class TestTpu:
    def test_kinds_by_category_and_by_name(self, loaded):
        space = Space()
        ops = space.plane("/device:TPU:0").line("XLA Ops", 3)
        ops.event("x.1", 0, 10, of_name={"hlo_category": "all-reduce fusion"})
        ops.event("y.1", 10, 10, of_name={"hlo_category": "collective-permute-done"})
        ops.event("all-gather-start.3", 20, 10)
        ops.event("copy-done.7", 30, 10)
        ops.event("copy.7", 40, 10)
        ops.event("infeed.1", 50, 10)
        assert kinds(loaded(space.encode())) == {
            "x.1": "collective", "y.1": "async_wait", "all-gather-start.3": "collective", "copy-done.7": "async_wait",
            "copy.7": "xla_op", "infeed.1": "async_wait",
        }  # fmt: skip

    def test_a_loop_is_work_only_where_its_ops_are_not_recorded(self, loaded):
        space = Space()
        ops = space.plane("/device:TPU:0").line("XLA Ops", 3)
        ops.event("while.1", 0, 100)
        ops.event("fusion.1", 10, 20)
        ops.event("copy-done.1", 30, 60)
        ops.event("while.2", 200, 50)
        timeline = loaded(space.encode())
        assert kinds(timeline) == {
            "while.1": "other",
            "fusion.1": "xla_op",
            "copy-done.1": "async_wait",
            "while.2": "xla_op",
        }
        (one,) = busy(timeline)
        # A wait within the loop is a wait, and not hidden by the loop around it.
        assert (one.busy_ns, one.wait_ns) == (70, 60)

    def test_nested_ops_are_not_counted_twice(self, loaded):
        space = Space()
        ops = space.plane("/device:TPU:0").line("XLA Ops", 3)
        ops.event("fusion.1", 0, 100)
        ops.event("fusion.2", 10, 30)
        ops.event("fusion.3", 50, 30)
        timeline = loaded(space.encode())
        result = kernel_report(timeline)
        assert result.device_ns == 100
        assert sum(row.total_ns for row in result.kernels) == 100

    def test_every_lane(self, loaded):
        space = Space()
        plane = space.plane("/device:TPU:0")
        for index, (lane, name) in enumerate(
            [("Steps", "0"), ("XLA Modules", "jit_f(1)"), ("XLA Ops", "fusion"), ("Async XLA Ops", "async-copy"),
             ("XLA TraceMe", "barrier-cores"), ("TC Overlay", "overlay"), ("Framework Ops", "mul"), ("_counters_", "hbm")]
        ):  # fmt: skip
            plane.line(lane, index).event(name, 0, 10)
        assert kinds(loaded(space.encode())) == {
            "0": "annotation", "jit_f(1)": "xla_module", "fusion": "xla_op", "async-copy": "other", "barrier-cores": "sync",
            "overlay": "other", "mul": "annotation", "hbm": "counter",
        }  # fmt: skip

    def test_a_sparse_core_works_beside_its_core(self, loaded):
        space = Space()
        plane = space.plane("/device:TPU:0", device_type_string="TPU v5p")
        plane.line("XLA Modules", 2).event("jit_f(1)", 0, 60)
        ops = plane.line("XLA Ops", 3)
        ops.event("fusion", 0, 10)
        ops.event("async-done.1", 10, 40)
        beside = space.plane("/device:TPU:0 SparseCore 1", device_type_string="TPU v5p")
        beside.line("Sparse Core Modules", 2).event("jit_f(1)", 0, 60)
        beside.line("Sparse Core Ops", 3).event("gather.1", 0, 40)
        timeline = loaded(space.encode())
        assert timeline.devices["name"].to_list() == ["TPU v5p"]
        (one,) = busy(timeline)
        assert (one.busy_ns, one.wait_ns) == (10, 40)
        assert kinds(timeline)["gather.1"] == "other"
        assert timeline.events.filter(pl.col("kind") == "xla_module").height == 1
        assert timeline.events["stream"].n_unique() == 4
        assert timeline.report.counts["sparse-core-row"].n == 1

    def test_a_sparse_core_alone_is_a_device_of_its_own(self, loaded):
        space = Space()
        space.plane("/device:TPU:0", device_type_string="TPU v5p")
        space.plane("/device:TPU:0 SparseCore 1", device_type_string="TPU v5p").line("Sparse Core Ops", 3).event(
            "gather", 0, 40
        )
        timeline = loaded(space.encode())
        assert [one.busy_ns for one in busy(timeline)] == [40]
        assert timeline.devices["name"].to_list() == ["TPU v5p", "TPU v5p SparseCore 1"]
        assert "device 0 SparseCore 1" in [device.label for device in describe(timeline).devices]

    def test_module_without_call_stays_without(self, loaded):
        space = Space()
        modules = space.plane("/device:TPU:0").line("XLA Modules", 2)
        modules.event("jit_f(1)", 100, 50, _ct=12, _c=-7)
        modules.event("jit_f(1)", 200, 50, _ct=12, _c=8)
        host = space.plane("/host:CPU").line("q/12", 12)
        host.event("CompleteCallbacks", 300, 5, _ct=12, _c=8)
        host.event("DoEnqueueProgram", 150, 5, _pt=12, _p=8)
        host.event("PassedOn", 160, 5, _pt=12, _p=8)
        events = loaded(space.encode()).events
        launched = events.filter(pl.col("kind") == "xla_module").join(
            events.select(launch_id="id", call="name"), on="launch_id", how="left"
        )
        assert launched["call"].to_list() == [None, "DoEnqueueProgram"]

    def test_a_dropped_buffer_makes_the_trace_poor(self, loaded):
        space = Space()
        space.plane("/device:TPU:0", dropped_traces="1234").line("XLA Ops", 3).event("fusion", 0, 10)
        timeline = loaded(space.encode())
        assert timeline.report.trust == "poor"
        assert "times are lower bounds" in timeline.report.notes[0].text


class TestGpu:
    def test_copies_fills_graphs_and_kernels(self, loaded):
        space = Space()
        stream = gpu(space).line("Stream #16(Kernel,MemcpyH2D)", 16)
        stream.event(
            "MemcpyH2D",
            0,
            10,
            correlation_id=Unsigned(1),
            memcpy_details="kind_src:pageable kind_dst:device size:4096 dest:0 async:1",
        )
        stream.event("anything", 10, 10, memcpy_details=Interned("num_bytes:12"))
        stream.event("Memset", 20, 10, memset_details="kind:device num_bytes:64 async:1")
        stream.event("CudaGraphExec:7", 30, 10)
        stream.event(
            "void cutlass::Kernel<f>(int)", 40, 10, kernel_details="regs:38\nshm:0\ngrid:160,1,1 block:1024,1,1"
        )
        timeline = loaded(space.encode())
        assert kinds(timeline) == {
            "MemcpyH2D": "memcpy", "anything": "memcpy", "Memset": "memset", "CudaGraphExec:7": "graph",
            "void cutlass::Kernel<f>(int)": "kernel",
        }  # fmt: skip
        assert timeline.events["bytes"].to_list() == [4096, 12, 64, None, None]
        assert timeline.devices.select("vendor", "compute_major", "sm_count").row(0) == ("nvidia", 9, 132)
        assert timeline.device_work["stream"].unique().to_list() == [16]

    def test_derived_lines_are_left_out_and_unknown_ones_kept(self, loaded):
        space = Space()
        plane = gpu(space)
        plane.line("Stream #1(Kernel)", 1).event("k", 0, 10)
        plane.line("XLA Ops", 0xDEADBEEF - (1 << 32)).event("fusion", 0, 10)
        plane.line("Steps", 5).event("0", 0, 10)
        plane.line("A new line", 6).event("what", 0, 10)
        timeline = loaded(space.encode())
        assert kinds(timeline) == {"k": "kernel", "what": "other"}
        assert timeline.report.counts["derived-row"].n == 2

    @pytest.mark.parametrize(
        ("target", "implementation"),
        [("__cudnn$fmhaSoftmax", "cudnn"), ("__cudnn$fmhaScaleBiasSoftmaxBackward", "cudnn")],
    )
    def test_a_custom_call_names_its_attention(self, loaded, target, implementation):
        """The kernel of a library may have any name; the program says what was called."""
        space = Space()
        text = program(
            "jit_f", {"main": [Instruction("custom-call.1", "custom-call", (8, 8), target=target)]}, entry="main"
        )
        space.plane("/host:metadata").name_id("jit_f(3)", stats={"Hlo Proto": text})
        stream = gpu(space).line("Stream #1(Kernel)", 1)
        stream.event(
            "sm90_generated_7f3a", 0, 10, hlo_op=Interned("custom-call.1"), hlo_module=Interned("jit_f"), program_id=3
        )
        (row,) = check(loaded(space.encode())).table.attention
        assert (row.implementation, row.provider) == (implementation, "xla")

    def test_kernels_without_an_op_are_counted_in_a_note(self, loaded):
        space = Space()
        space.plane("/host:metadata").name_id("jit_f(3)", stats={"Hlo Proto": b"\x0a\x00"})
        stream = gpu(space).line("Stream #1(Kernel)", 1)
        stream.event("a", 0, 10, hlo_op=Interned("fusion"), program_id=3)
        stream.event("b", 10, 10, cuda_graph_id=4)
        notes = [note.text for note in loaded(space.encode()).report.notes if note.kind == "kernels-without-op"]
        assert len(notes) == 1
        assert notes[0].startswith("1 of 2 kernels name no XLA op")

    def test_a_program_that_is_missing_is_said(self, loaded):
        space = Space()
        gpu(space).line("Stream #1(Kernel)", 1).event("a", 0, 10, hlo_op=Interned("fusion"), program_id=3)
        (note,) = [note for note in loaded(space.encode()).report.notes if note.kind == "programs-missing"]
        assert note.text.startswith("The compiled programs of 1 of 1 program ids are not in the file")


class TestHost:
    def test_ranges_of_users_and_of_the_run_time(self, loaded):
        space = Space()
        host = space.plane("/host:CPU")
        python = host.line("python", 1)
        other = host.line("tf_pjrt_thread_pool/99", 99)
        for index, name in enumerate(
            [
                "decode",
                "PjRtClient::Something",
                "ParseArguments",
                "BlockUntilReady",
                "$a.py:1 f",
                "DevicePut",
                "MemoryDeallocation",
            ]
        ):
            python.event(name, 100 * index, 50)
        other.event("decode too", 0, 10)
        assert kinds(loaded(space.encode())) == {
            "decode": "annotation", "PjRtClient::Something": "other", "ParseArguments": "api", "BlockUntilReady": "sync",
            "$a.py:1 f": "python", "DevicePut": "memcpy", "MemoryDeallocation": "counter", "decode too": "other",
        }  # fmt: skip

    def test_passes_within_a_compilation_belong_to_it(self, loaded):
        space = Space()
        main = space.plane("/host:CPU").line("main/7", 7)
        main.event("backend_compile", 0, 100)
        main.event("algsimp", 10, 20)
        main.event("my own range", 200, 20)
        assert kinds(loaded(space.encode())) == {
            "backend_compile": "compile",
            "algsimp": "compile",
            "my own range": "annotation",
        }

    def test_one_number_for_all_steps_marks_no_steps(self, loaded):
        space = Space()
        main = space.plane("/host:CPU").line("python", 1)
        for index in range(3):
            main.event("sync_weights", 100 * index, 50, _r=1, step_num=0)
        assert loaded(space.encode()).events["step"].null_count() == 3

    def test_unknown_planes_are_kept(self, loaded):
        space = Space()
        space.plane("/device:CUSTOM:Megascale Trace").line("dcn", 4).event("transfer", 0, 10)
        timeline = loaded(space.encode())
        assert kinds(timeline) == {"transfer": "other"}
        assert timeline.threads["name"].to_list() == ["/device:CUSTOM:Megascale Trace dcn"]
        assert timeline.report.counts["unknown-plane-row"].n == 1

    def test_messages_of_the_profiler_are_shown(self, loaded):
        space = Space(errors=["libcupti is missing"], warnings=["events dropped:\n  100"])
        space.plane("/host:CPU").line("python", 1).event("a", 0, 10)
        notes = {note.kind: note.text for note in loaded(space.encode()).report.notes}
        assert notes["profiler-error"] == "The profiler recorded an error: libcupti is missing"
        assert notes["profiler-warning"] == "The profiler recorded a warning: events dropped: 100"

    def test_names_of_hosts_are_not_read(self, loaded):
        space = Space()
        space.plane("/host:CPU").line("python", 1).event("a", 0, 10)
        timeline = loaded(space.encode() + blob(4, "secret-host-17"))
        assert "secret-host-17" not in repr(timeline.runs) + repr(timeline.report)


class TestXlaOnTheCpu:
    def ops(self, space, *, pooled):
        host = space.plane("/host:CPU")
        python = host.line("python", 1)
        python.event("PjitFunction(f)", 0, 50)
        python.event("CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice", 10, 30)
        python.event("ThreadpoolListener::Record", 20, 0, _pt=15, _p=77)
        lane = host.line("tf_XLAPjRtCpuClient/5", 5) if pooled else python
        if pooled:
            lane.event("ThreadpoolListener::StartRegion", 60, 0, _ct=15, _c=77)
        at = 70 if pooled else 22
        for name in ("fusion.1", "end: fusion.1"):
            lane.event(
                name,
                at,
                5 if name[0] == "f" else 0,
                **(
                    {"hlo_op": Interned("fusion.1"), "program_id": 3, "run_id": 9, "device_ordinal": 0}
                    if name[0] == "f"
                    else {}
                ),
            )

    def waiting(self, calls, runs):
        """Calls of functions one after another, and runs (module, program, number) on a thread that tells nothing."""
        space = Space()
        host = space.plane("/host:CPU")
        python, lane = host.line("python", 1), host.line("tf_XLAPjRtCpuClient/5", 5)
        for at, function in enumerate(calls):
            python.event(f"PjitFunction({function})", 100 * at, 50)
            python.event("CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice", 100 * at + 10, 30)
        for at, (module, compiled, run) in enumerate(runs):
            lane.event(
                "fusion.1", 1000 + 10 * at, 5, hlo_op=Interned("fusion.1"), hlo_module=Interned(module),
                program_id=compiled, run_id=run, device_ordinal=0,
            )  # fmt: skip
        return space.encode()

    def called_at(self, timeline):
        """For each run the number of its call."""
        calls = timeline.events["start_ns"].gather(timeline.device_work["launch_id"])
        return [None if one is None else one // 100 for one in calls.to_list()]

    def test_runs_that_waited_are_paired_by_program_and_number(self, loaded):
        """The ids of two programs have nothing to do with each other; XLA spells ``<lambda>`` without brackets."""
        runs = [("jit__lambda", 4, -900), ("jit_f", 3, 71), ("jit_f", 3, 70), ("jit__lambda", 4, -901)]
        timeline = loaded(self.waiting(["f", "<lambda>", "f", "<lambda>"], runs))
        assert self.called_at(timeline) == [3, 2, 0, 1]

    def test_runs_of_two_programs_of_one_function_are_paired_in_turn(self, loaded):
        """XLA on the CPU runs what one thread calls in the order of its calls."""
        runs = [("jit_f", 3, 70), ("jit_f", 9, -5), ("jit_f", 3, 71)]
        assert self.called_at(loaded(self.waiting(["f", "f", "f"], runs))) == [0, 1, 2]

    @pytest.mark.parametrize(
        ("calls", "runs"),
        [
            (["f", "f", "f"], [("jit_f", 3, 70), ("jit_f", 3, 71)]),  # which of the calls has no run?
            (
                ["f", "f", "f"],
                [("jit_f", 3, 70), ("jit_f", 9, 71)],
            ),  # two programs of one function, and a call too many
            (["f", "g"], [("jit_g", 3, 70), ("jit_g", 9, 71)]),  # nor in turn: another function was called
        ],
    )
    def test_runs_whose_call_is_not_certain_have_none(self, loaded, calls, runs):
        assert self.called_at(loaded(self.waiting(calls, runs))) == [None, None]

    @pytest.mark.parametrize("pooled", [True, False])
    def test_ops_are_device_work_of_the_call_that_executed_them(self, loaded, pooled):
        space = Space()
        self.ops(space, pooled=pooled)
        timeline = loaded(space.encode())
        (work,) = timeline.device_work.to_dicts()
        assert (work["kind"], work["name"], work["thread"]) == ("xla_op", "fusion.1", None)
        assert timeline.events["name"][work["launch_id"]] == "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice"
        assert timeline.events["name"][work["op_id"]] == "PjitFunction(f)"
        assert timeline.devices["name"].to_list() == ["CPU (XLA)"]
        assert timeline.report.counts["end-mark"].n == 1

    def test_beside_a_gpu_they_are_launches(self, loaded):
        space = Space()
        self.ops(space, pooled=False)
        gpu(space).line("Stream #1(Kernel)", 1).event("k", 100, 10)
        assert loaded(space.encode()).device_work["name"].to_list() == ["k"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("BatchedCopyToDeviceWithSharding create batch", "other"),
        ("BatchedCopyToDeviceWithSharding: dispatch", "other"),
        ("batched_copy_array_to_devices_with_sharding: assemble device lists", "other"),
        ("ExecuteReplicated.__call__", "api"),
        ("copy_to_host_async", "other"),
        ("batched_copy", "annotation"),
        ("forward", "annotation"),
    ],
)
def test_marks_of_the_run_time_are_no_annotations(loaded, name, kind):
    space = Space()
    space.plane("/host:CPU").line("python", 1).event(name, 0, 10)
    assert kinds(loaded(space.encode())) == {name: kind}


def test_runs_of_a_module_are_steps_but_tell_no_warm_up(loaded):
    """`steps` finds 5 of them, so the others say which steps they look for, not that there is none."""
    space = Space()
    host = space.plane("/host:CPU").line("python", 1)
    host.event("backend_compile", 0, 50)
    host.event("DevicePut", 60, 10)
    device = space.plane("/device:TPU:0")
    modules, ops = device.line("XLA Modules", 2), device.line("XLA Ops", 3)
    for index in range(5):
        modules.event("jit_f(1)", 100 + 20 * index, 15)
        ops.event("fusion.1", 100 + 20 * index, 10)
    timeline = loaded(space.encode())
    assert (find_steps(timeline).source, find_steps(timeline).steps.height) == ("runs of the main XLA module", 5)
    which = "(ProfilerStep, StepTraceAnnotation; steps that are found in other ways do not count here)"
    assert [note.text for note in recompile_report(timeline).notes] == [
        f"Fewer than two profiler steps are recorded {which}, so warm-up and recompilation cannot be told apart."
    ]
    assert [note.text for note in transfer_report(timeline).notes][-1] == (
        f"Fewer than two profiler steps past the warm-up are recorded {which}, so what repeats cannot be told."
    )
