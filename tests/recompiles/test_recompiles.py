"""Compilations on authored events, and the compile log."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest

from authored_timeline import host, kernel, launch, op, timeline
from traceview.compile_log import CompileLogError, read_compile_log
from traceview.recompile_report import recompile_report
from traceview.recompiles import RECOMPILES

FRAME = "_compile.compile_inner (dynamo_timed)"


def step(number, start_us, end_us):
    return host("annotation", f"ProfilerStep#{number}", start_us, end_us)


def table(*events, log=None):
    found = recompile_report(timeline(*events), log).recompiles
    RECOMPILES.validate(found)
    return found


def compiled(compile_id, start_us, end_us, *, said=True):
    events = [
        host("compile", FRAME, start_us, end_us),
        host("compile", "build_guards (dynamo_timed)", start_us + 2, end_us - 2),
    ]
    if said:
        events.append(
            host("annotation", f"compile_attempt_0_data: compile_id={compile_id}", start_us + 1, start_us + 2)
        )
    return events


def region(compile_id, start_us, *, rows=8):
    return [
        op(f"Torch-Compiled Region: {compile_id}", start_us, start_us + 10),
        op("aten::mm", start_us + 2, start_us + 8, dims=[[rows, 4], [4, 4]]),
    ]


def test_nested_spans_are_one_compilation_and_steps_tell_the_warm_up():
    found = table(
        step(0, 0, 1_000), *compiled("0/0", 10, 500), *region("0/0", 510),
        step(1, 1_000, 2_000), *compiled("0/1", 1_010, 1_200), *region("0/1", 1_300, rows=16),
    )  # fmt: skip
    assert found.select("compile_id", "dur_ns", "step", "warmup", "recompiled", "reason").rows() == [
        ("0/0", 490_000, 0, True, False, None),
        ("0/1", 190_000, 1, False, True, "input shapes changed"),
    ]
    assert found["shapes"].to_list() == ["aten::mm [[8, 4], [4, 4]]", "aten::mm [[8, 4], [4, 4]] -> [[16, 4], [4, 4]]"]


def test_before_torch_2_8_the_region_that_runs_next_names_the_frame():
    assert table(*compiled("", 10, 500, said=False), *region("3/2", 510))["compile_id"].to_list() == ["3/2"]


def test_code_that_never_runs_is_a_fall_back():
    events = [
        *compiled("0/0", 10, 100), *region("0/0", 110), *compiled("0/1", 200, 210),
        op("TorchDynamo Cache Lookup", 300, 301), op("aten::mm", 302, 310),
    ]  # fmt: skip
    assert table(*events)["what"].to_list() == ["torch-compile", "eager-fallback"]
    # At the end of the recording nothing is known of it.
    assert table(*events[:-2])["what"].to_list() == ["torch-compile", "torch-compile"]


def test_captures_of_graphs_and_of_torch_compile_itself():
    found = table(
        host("api", "cudaStreamBeginCapture", 0, 1), host("api", "cudaStreamEndCapture", 90, 91),
        host("api", "cudaGraphInstantiate_v12000", 92, 100),
        launch(110, 1, name="cudaGraphLaunch"), kernel("k", 115, 120, 1),
        host("api", "cudaStreamBeginCapture", 200, 201), host("api", "cudaStreamEndCapture", 250, 260),
        host("compile", "CUDAGraphNode.record (dynamo_timed)", 300, 400), host("api", "cudaStreamBeginCapture", 310, 311),
    )  # fmt: skip
    assert found.select("what", "dur_ns", "recompiled").rows() == [
        ("graph-capture", 100_000, None),
        ("graph-capture", 60_000, True),
        ("graph-capture", 100_000, None),
    ]


def test_cudnn_plans_are_inferred_from_calls_that_take_far_longer():
    name = "aten::_scaled_dot_product_cudnn_attention"
    usual = [op(name, 100 * at, 100 * at + 50) for at in range(5)]
    (row,) = table(*usual, op(name, 1_000, 501_000)).to_dicts()
    assert (row["what"], row["dur_ns"]) == ("cudnn-plan", 500_000_000 - 50_000)


def test_what_xla_compiles_for_one_call_is_one_compilation():
    found = table(
        op("PjitFunction(f)", 0, 100), host("compile", "trace_to_jaxpr_dynamic", 5, 20),
        host("compile", "backend_compile_and_load", 30, 90), host("compile", "XlaCompile:#module=jit_f,program_id=7#", 40, 80),
        host("compile", "pass", 45, 70, thread=1),
        op("PjitFunction(f)", 200, 300), host("compile", "backend_compile_and_load", 210, 290),
        op("PjitFunction(g)", 400, 500), host("compile", "backend_compile_and_load", 410, 490),
    )  # fmt: skip
    assert found.select("what", "function", "compile_id", "recompiled", "dur_ns").rows() == [
        ("xla", "f", "7", False, 75_000),
        ("xla", "f", None, True, 80_000),
        ("xla", "g", None, False, 80_000),
    ]


def test_a_pool_thread_that_ends_late_is_no_compilation_of_its_own():
    found = table(
        op("PjitFunction(f)", 0, 100), host("compile", "backend_compile_and_load", 10, 90),
        host("compile", "TaskDispatcher::dispatch", 40, 92, thread=1),
        op("PjitFunction(f)", 200, 300), host("compile", "backend_compile_and_load", 210, 290),
    )  # fmt: skip
    assert found.select("function", "dur_ns").rows() == [("f", 80_000), ("f", 80_000)]


def test_loading_a_program_is_no_compilation():
    """Each device loads it on a thread of its own; the names are libtpu's."""
    found = table(
        op("PjitFunction(f)", 0, 100), host("compile", "backend_compile_and_load", 10, 90),
        *(host("compile", "LoadProgramCacheMiss", 95, 140 + at, thread=at) for at in range(1, 4)),
    )  # fmt: skip
    assert found.select("function", "dur_ns").rows() == [("f", 80_000)]


def test_passes_of_a_compilation_that_began_before_the_recording_are_one():
    found = table(
        host("compile", "XLA::TPU LLO scheduling", 0, 20, thread=1), host("compile", "XLA::TPU code generation", 25, 30, thread=1),
        op("PjitFunction(f)", 100, 200), host("compile", "backend_compile_and_load", 110, 190),
    )  # fmt: skip
    assert found.select("function", "dur_ns").rows() == [(None, 25_000), ("f", 80_000)]


def test_a_new_program_under_a_known_name_was_compiled_somewhere():
    def run(at, program):
        return kernel("jit_f(123)", at, at + 10, kind="xla_module", details={"program_id": program})

    (row,) = table(run(0, 1), run(20, 1), run(40, 2)).to_dicts()
    assert (row["function"], row["compile_id"], row["start_ns"], row["dur_ns"]) == ("jit_f", "2", 40_000, None)


def test_nothing_compiled_is_not_the_same_as_nothing_to_see():
    assert recompile_report(timeline(op("aten::mm", 0, 1))).recompiles.height == 0
    answer = recompile_report(timeline(kernel("k", 0, 1)))
    assert answer.recompiles is None
    assert answer.late is None
    assert [note.text for note in answer.notes] == [
        "Neither ops nor annotations of the host are recorded, so no compilation could be seen."
    ]


@pytest.mark.parametrize("seen", [op("aten::mm", 0, 1), host("annotation", "forward", 0, 1)])
def test_ranges_of_nsight_systems_do_not_show_that_nothing_was_compiled(seen):
    def by_nsys(*events):
        built = timeline(*events)
        return recompile_report(replace(built, runs=tuple(replace(run, format="nsys") for run in built.runs)))

    answer = by_nsys(seen)
    assert answer.recompiles is None
    assert [note.text for note in answer.notes] == [
        "Nsight Systems records no compilers of its own, and no range marks one: a compilation may not be seen."
    ]
    # What a range does mark is told.
    assert by_nsys(seen, host("compile", FRAME, 2, 3)).recompiles.height == 1


def record(text, payload=None):
    """One record of a compile log."""
    line = f"V1130 13:05:07.998000 20227 torch/_dynamo/utils.py:2009] {text}\n"
    return line + "".join(f"\t{one}\n" for one in (payload or "").splitlines())


def metrics(frame, version, **values):
    return record(
        json.dumps({"compilation_metrics": values, "frame_id": frame, "frame_compile_id": version, "attempt": 0})
    )


def test_the_log_gives_function_reason_and_shapes(tmp_path):
    log = tmp_path / "dedicated_log_torch_trace_x.log"
    log.write_text(
        metrics(0, 0, co_name="forward", co_filename="/home/someone/model.py", co_firstlineno=7)
        + record(
            json.dumps(
                {"artifact": {"name": "recompile_reasons", "encoding": "json"}, "frame_id": 0, "frame_compile_id": 1,
                 "attempt": 0, "has_payload": "x"}
            ),
            '[\n"0/0: tensor \'x\' size mismatch"\n]',
        )
        + record(
            json.dumps({"dynamo_output_graph": {"sizes": {"l_x_": [16, 4], "mm": [16, 4]}}, "frame_id": 0, "frame_compile_id": 1})
        )
        + metrics(0, 1, co_name=None, fail_reason="Dynamo recompile limit exceeded\n  Explanation: ...")
        + metrics(5, 0, co_name="elsewhere")
    )  # fmt: skip
    events = (*compiled("0/0", 10, 100), *compiled("0/1", 200, 300))
    answer = recompile_report(timeline(*events), read_compile_log(tmp_path))
    assert answer.recompiles.select("what", "function", "reason", "shapes").rows() == [
        ("torch-compile", "forward (model.py:7)", None, None),
        ("eager-fallback", "forward (model.py:7)", "Dynamo recompile limit exceeded", "x [16, 4]"),
    ]
    assert answer.notes[-1].text == "1 of 3 compilations of the log lie outside of the recorded window."


def test_a_damaged_record_costs_one_record(tmp_path):
    log = tmp_path / "a.log"
    log.write_text(
        metrics(0, 0, co_name="f") + record('{"compilation_metrics": {"co_name": ') + metrics(0, 1, co_name="f")
    )
    read = read_compile_log(log)
    assert (len(read.compilations), read.skipped) == (2, 1)


@pytest.mark.parametrize(
    ("content", "code"), [(None, "compile-log-unreadable"), ("hello\n", "not-a-compile-log"), ("", "not-a-compile-log")]
)
def test_what_is_no_log_says_so(tmp_path, content, code):
    path = tmp_path / "x.log"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CompileLogError) as raised:
        read_compile_log(path)
    assert raised.value.code == code
    assert raised.value.exit_code == 2


def test_a_folder_without_a_log_says_so(tmp_path):
    with pytest.raises(CompileLogError) as raised:
        read_compile_log(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path}: the folder holds no *.log file. Give the folder that TORCH_TRACE named, or one of its files."
    )


def test_ranks_are_told_apart_where_the_log_names_them(tmp_path):
    log = tmp_path / "a.log"
    lines = [
        f"V1130 13:05:07.998000 20227 torch/_dynamo/utils.py:2009] [rank{rank}]:"
        f'{{"compilation_metrics": {{"co_name": "f{rank}"}}, "frame_id": 0, "frame_compile_id": 0}}\n'
        for rank in (0, 1)
    ]
    log.write_text("".join(lines))
    assert [read_compile_log(log).find("0/0", rank).function for rank in (0, 1)] == ["f0", "f1"]


def test_the_frame_keeps_its_contract_on_nothing():
    assert table(op("aten::mm", 0, 1)).select(pl.len()).item() == 0
