"""Recorded with PyTorch on this CPU: what the program planted is found, and marks cost next to nothing."""

from __future__ import annotations

import time

import polars as pl
import pytest

from live_frameworks import live
from traceview import load
from traceview.capture import profile_torch, stage
from traceview.dispatch import dispatch_table
from traceview.errors import TraceviewError, UsageError
from traceview.explaining import explain_trace
from traceview.gap_report import gap_report
from traceview.recompile_report import recompile_report
from traceview.stage_table import stage_table
from traceview.stages import assign_stages
from traceview.transfer_report import transfer_report

torch = live("torch")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

sdpa = torch.nn.functional.scaled_dot_product_attention
STEPS = 4
SLEEP_NS = 40_000_000
ITEMS = 30
WIDTH = 512


def math_only():
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel(SDPBackend.MATH)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Four steps with a sleep, two attentions, a loop of reads, copies, and a new shape for a compiled function."""
    path = tmp_path_factory.mktemp("planted") / "planted.json.gz"
    q, k, v = (torch.randn(1, 4, 128, 32) for _ in range(3))
    weights = [torch.randn(WIDTH, WIDTH) for _ in range(3)]
    compiled = torch.compile(lambda x: torch.relu(x @ x.T).sum(), dynamic=False, backend="eager")
    contract = {"model": "planted", "batch": 1}
    with profile_torch(path, warmup=1, steps=STEPS, contract=contract) as run:
        for step in range(STEPS + 1):
            with stage("load"):
                time.sleep(SLEEP_NS / 1e9)
            with stage("denoise"):
                with stage("attention"):
                    sdpa(q, k, v)
                with stage("by_math"), math_only():
                    sdpa(q, k, v)
            with stage("log"):
                for at in range(ITEMS):
                    q[0, 0, 0, at].item()
            with stage("offload"):
                for weight in weights:
                    weight.to("cpu", copy=True)
            with stage("compiled"):
                compiled(torch.randn(16 if step < 3 else 24, 8))
            run.step()
        sdpa(q, k, v)  # After the recording.
    return run


def test_the_stages_are_those_of_the_program_and_add_up(planted):
    names = ("load", "denoise", "denoise/attention", "denoise/by_math", "log", "offload", "compiled")
    ranges = assign_stages(planted.timeline).ranges
    assert dict(ranges["stage"].value_counts().iter_rows()) == dict.fromkeys(names, STEPS)
    # A step that a busy machine made twice as long is taken for warm-up and not counted.
    table = stage_table(planted.timeline)
    (slept,) = table.stages.filter(pl.col("stage") == "load").to_dicts()
    assert 2 <= slept["count"] <= STEPS
    assert slept["wall_ns"] >= slept["count"] * SLEEP_NS
    assert table.stages.filter(pl.col("depth") == 0)["share"].sum() <= 1.0 + 1e-9


def test_the_dispatches_are_those_of_the_program(planted):
    staged = assign_stages(planted.timeline).timeline
    rows = {(row.stage, row.implementation): row.count for row in dispatch_table(staged).attention}
    assert rows == {("denoise/attention", "cpu-flash"): STEPS, ("denoise/by_math", "math"): STEPS}


def test_the_reads_the_copies_and_the_new_shape_are_found_with_their_counts(planted):
    items = gap_report(planted.timeline).waits.filter(pl.col("name") == "aten::item").to_dicts()
    assert [(row["count"], row["per_step"]) for row in items] == [(ITEMS * STEPS, ITEMS)]
    moved = transfer_report(planted.timeline).transfers.filter(pl.col("bytes") == 4 * WIDTH * WIDTH).to_dicts()
    assert [(row["count"], row["repeated_each_step"]) for row in moved] == [(3 * STEPS, True)]
    compilations = recompile_report(planted.timeline).recompiles
    # Steps are numbered with the warm-up step, which is not recorded.
    assert compilations["step"].to_list() == [3]


def test_the_conditions_are_in_the_trace(planted):
    info = planted.timeline.runs[0].capture
    assert info == planted.info
    assert (info.framework, info.versions["torch"], info.steps, info.warmup_calls) == (
        "torch",
        torch.__version__,
        STEPS,
        1,
    )
    assert dict(info.contract) == {"model": "planted", "batch": 1}
    assert len(info.session) == 32
    # The planted sdpa_kernel set back what it had changed.
    assert set(info.changed) == {"sdpa.flash", "sdpa.efficient", "sdpa.cudnn"}
    assert info.settings["sdpa.flash"] is True


def test_neither_host_nor_folder_is_in_the_trace(planted):
    import gzip
    import socket

    with gzip.open(planted.path) as file:
        text = file.read().decode()
    assert '"host_name"' not in text
    assert f'"{socket.gethostname()}"' not in text
    assert '"traceName": "planted.json.gz"' in text
    assert planted.path.rpartition("/")[0] not in text


def test_a_switch_that_was_off_all_along_is_the_cause(tmp_path):
    q, k, v = (torch.randn(1, 4, 64, 32) for _ in range(3))
    with math_only():
        timeline = profile_torch(lambda: sdpa(q, k, v), path=tmp_path / "t.json", warmup=1, steps=2)
    (found,) = explain_trace(timeline).explained
    assert found.first.implementation == "math"
    assert [(one.rule, one.status) for one in found.reasons if one.role == "cause"] == [("F14", "refuses")]
    assert found.change == ("flash: Look for sdpa_kernel and torch.backends.cuda.enable_*_sdp in the code (F14).",)
    assert torch.backends.cuda.enable_flash_sdp.__name__ == "enable_flash_sdp"
    assert not hasattr(torch.backends.cuda.enable_flash_sdp, "__wrapped__")


def test_a_function_is_warmed_up_and_recorded_once_a_step(tmp_path):
    calls = []
    x = torch.randn(256, 256)

    def fn():
        calls.append(1)
        return x @ x

    timeline = profile_torch(fn, path=tmp_path / "t.json", steps=3)
    info = timeline.runs[0].capture
    # One call in which the profiler warms up is part of the warm-up.
    assert info.steady is True
    assert len(calls) == info.warmup_calls + 3
    names = timeline.events["name"].cast(pl.String)
    assert names.str.contains("^ProfilerStep#").sum() == 3
    assert (names == "aten::mm").sum() == 3


def test_a_block_without_a_number_of_steps_has_those_that_were_ended(tmp_path):
    with profile_torch(tmp_path / "t.json") as run:
        for _ in range(3):
            torch.ones(3) + 1
            run.step()
    names = run.timeline.events["name"].cast(pl.String)
    assert sorted(names.filter(names.str.contains("^ProfilerStep#"))) == [f"ProfilerStep#{at}" for at in range(3)]


def test_what_was_recorded_until_an_error_is_kept(tmp_path):
    run = profile_torch(tmp_path / "t.json")

    def fail():
        with run:
            torch.ones(3) + 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (run.timeline.events["name"].cast(pl.String) == "aten::add").sum() == 1
    assert not torch.autograd.profiler._is_profiler_enabled


def test_what_cannot_be_recorded_is_said(tmp_path):
    with pytest.raises(UsageError, match="is no folder"):
        profile_torch(tmp_path / "no" / "t.json")
    with pytest.raises(UsageError, match="contract 'model': is no name with a short text"):
        profile_torch(tmp_path / "t.json", contract={"model": object()})
    with (
        profile_torch(tmp_path / "t.json"),
        pytest.raises(TraceviewError, match="running already"),
        profile_torch("u.json"),
    ):
        pass
    with (
        pytest.raises(TraceviewError, match="ended after 0 of 2 warm-up steps"),
        profile_torch(tmp_path / "v.json", warmup=2),
    ):
        pass
    assert not (tmp_path / "v.json").exists()


# ---- marks


def test_a_mark_in_compiled_code_breaks_no_graph_and_compiles_nothing_again(tmp_path):
    counter = torch._dynamo.testing.CompileCounter()

    @stage("around")
    @torch.compile(fullgraph=True, backend=counter)
    def compiled(x):
        with stage("inside"):
            y = x.sin()
        return decorated(y)

    @stage("decorated")
    def decorated(y):
        return y.cos()

    x = torch.ones(4)
    assert torch.equal(compiled(x), x.sin().cos())
    timeline = profile_torch(lambda: compiled(x), path=tmp_path / "t.json", warmup=1, steps=1)
    compiled(x)
    assert counter.frame_count == 1
    assert set(assign_stages(timeline).ranges["stage"]) == {"around"}


def test_a_watched_switch_in_compiled_code_breaks_no_graph(tmp_path):
    @torch.compile(fullgraph=True, backend="eager")
    def compiled(q):
        with math_only():
            return sdpa(q, q, q)

    q = torch.randn(1, 2, 16, 8)
    timeline = profile_torch(lambda: compiled(q), path=tmp_path / "t.json", warmup=1, steps=1)
    assert [row.implementation for row in dispatch_table(timeline).attention] == ["math"]


def test_marks_need_a_name():
    for name in ("", "/", " "):
        with pytest.raises(UsageError, match="a stage needs a name"):
            stage(name)


def test_all_threads_are_recorded_if_asked(tmp_path):
    import threading

    from traceview.capture.torch_recording import TorchRecording

    def work():
        with stage("worker"):
            torch.ones(5) + 1

    with TorchRecording(tmp_path / "t.json", all_threads=True):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    timeline = load(tmp_path / "t.json")
    assert "worker" in set(assign_stages(timeline).ranges["stage"])
    assert (timeline.events["name"].cast(pl.String) == "aten::add").sum() == 1
