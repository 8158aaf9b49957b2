"""Profiles that JAX records here and now, on the CPU, hold what their programs planted."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import traceview
from traceview import recompiles, transfers
from traceview.errors import ExitCode
from traceview.gate import check
from traceview.report import report
from traceview.steady_state import find_steady_state

if importlib.util.find_spec("jax") is None:
    pytest.skip("jax is not installed", allow_module_level=True)

PROGRAMS = Path(__file__).with_name("live_programs.py")
STEPS, RECOMPILED, LEAVES = 5, (2, 4), 12


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("captures")
    subprocess.run([sys.executable, str(PROGRAMS), str(folder)], check=True, capture_output=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def stages(captures):
    return traceview.load(captures / "stages")


def text(detail: pl.DataFrame) -> dict[int, str]:
    return {row: json.loads(value) for row, value in detail.cast({"value": pl.String}).iter_rows()}


def test_every_op_resolves_to_a_named_scope(stages):
    stages.validate()
    work = stages.device_work
    assert set(work["kind"]) == {"xla_op"}
    origin = text(stages.details["hlo_op"])
    assert set(work["id"]) <= set(origin)
    modules = text(stages.details["hlo_module"])
    assert {modules[row] for row in work["id"]} == {"jit_model"}
    paths = text(stages.details["op_name"])
    named = [paths.get(row, "") for row in work["id"]]
    scoped = [one for one in named if any(f"/{stage}/" in one for stage in ("text_encoder", "denoiser", "decoder"))]
    spent = dict(work.select("id", "dur_ns").iter_rows())
    covered = sum(
        ns
        for row, ns in spent.items()
        if any(f"/{s}/" in paths.get(row, "") for s in ("text_encoder", "denoiser", "decoder"))
    )
    assert len(scoped) > 0.8 * len(named)
    assert covered > 0.9 * sum(spent.values())
    assert {one.split("/")[1] for one in scoped} == {"text_encoder", "denoiser", "decoder"}


def test_an_op_names_its_source_line(stages):
    sources = text(stages.details["source"])
    lines = PROGRAMS.read_text().splitlines()
    products = [row for row, path in text(stages.details["op_name"]).items() if path.endswith("mlp/dot_general")]
    assert products
    for row in products:
        file, _, number = sources[row].rpartition(":")
        assert file.endswith("live_programs.py")
        assert "@ weights" in lines[int(number) - 1]
    assert all("block" in stack for row, stack in text(stages.details["source_stack"]).items() if row in products)


def test_steps_are_their_annotations(captures, stages):
    planted = json.loads((captures / "planted.json").read_text())["stages"]
    steps = report(stages).steps
    assert [(step.name, step.index) for step in steps] == [("infer", n) for n in range(STEPS)]
    marks = stages.events.filter((pl.col("kind") == "annotation") & (pl.col("name").cast(pl.String) == "infer"))
    assert [step.wall_ns for step in steps] == marks["dur_ns"].to_list()
    for step, wall_s in zip(steps, planted, strict=True):
        assert step.wall_ns <= wall_s * 1e9
    per_step = stages.device_work.group_by("step").len()
    assert per_step["len"].n_unique() == 1
    assert sorted(per_step["step"]) == list(range(STEPS))


def test_work_belongs_to_the_call_that_executed_it(stages):
    work = stages.device_work
    assert work["launch_id"].null_count() == 0
    calls = stages.events.select(launch_id="id", call="name", call_ns="start_ns")
    joined = work.join(calls, on="launch_id")
    assert joined["call"].cast(pl.String).unique().len() == 1
    assert "Execute" in joined["call"].cast(pl.String)[0]
    assert (joined["call_ns"] <= joined["start_ns"]).all()
    ops = stages.events.select(op_id="id", op=pl.col("name").cast(pl.String))
    assert set(work.join(ops, on="op_id")["op"]) == {"PjitFunction(model)"}


def test_each_eager_op_belongs_to_its_own_call(captures):
    """A run that waits for its input is started by the end of the run before it; its call is another."""
    timeline = traceview.load(captures / "eager")
    ops = timeline.events.select(op_id="id", op=pl.col("name").cast(pl.String))
    work = timeline.device_work.join(ops, on="op_id").join(timeline.details["hlo_module"], on="id")
    assert work.height == timeline.device_work.height > STEPS
    for op, module in work.select("op", pl.col("value").cast(pl.String)).iter_rows():
        assert json.loads(module) == op.replace("PjitFunction(", "jit_").rstrip(")")


def test_no_call_is_listed_twice(stages):
    calls = stages.events.filter(pl.col("name").cast(pl.String) == "PjitFunction(model)")
    assert calls.height == STEPS
    assert stages.report.counts["nested-call-mark"].n == STEPS


def test_a_softmax_between_layers_is_not_proven_to_be_attention(captures):
    outcome = check(traceview.load(captures / "layers"))
    assert outcome.exit_code in (ExitCode.OK, ExitCode.INCONCLUSIVE)
    assert {row.evidence for row in outcome.table.attention} <= {"matrices"}


def test_attention_that_xla_left_unfused_is_proven(stages):
    outcome = check(stages)
    calls = outcome.table.attention
    assert {(row.implementation, row.provider, row.evidence) for row in calls} == {("unfused", "xla", "shapes")}
    assert sum(row.count for row in calls) == STEPS * 3
    assert outcome.verdict == "fail"
    assert [finding.code for finding in outcome.findings if finding.severity == "error"] == ["TV108"]


def test_recompiled_steps_and_no_others(captures):
    timeline = traceview.load(captures / "recompiles")
    compiled = timeline.events.filter(pl.col("name").cast(pl.String).str.contains("^backend_compile"))
    assert set(compiled["kind"]) == {"compile"}
    assert sorted(compiled["step"].drop_nulls()) == sorted(RECOMPILED)
    found = recompiles.after_warm_up(timeline, find_steady_state(timeline))
    assert (found.count, set(found.steps)) == (len(RECOMPILED), set(RECOMPILED))
    table = recompiles.recompiles(timeline, find_steady_state(timeline))
    assert table.select("what", "step", "warmup").rows() == [("xla", step, False) for step in RECOMPILED]
    # What a compilation cost is the time that its call was kept from returning, tracing and lowering included.
    spans = compiled.sort("start_ns")["dur_ns"].to_list()
    calls = timeline.events.filter((pl.col("kind") == "op") & pl.col("step").is_in(RECOMPILED)).sort("start_ns")
    longest = calls.group_by("step", maintain_order=True).agg(pl.col("dur_ns").max())["dur_ns"].to_list()
    for cost, least, most in zip(table["dur_ns"], spans, longest, strict=True):
        assert least <= cost <= most
    # Each new size is a new program under the same name of a module.
    work = timeline.device_work.select("id", "step")
    programs = (
        work.join(timeline.details["program_id"], on="id")
        .group_by("step")
        .agg(pl.col("value").cast(pl.String).unique())
    )
    by_step = {step: one for step, (one,) in programs.iter_rows()}
    assert len({by_step[0], *(by_step[step] for step in RECOMPILED)}) == 1 + len(RECOMPILED)
    assert by_step[0] == by_step[1] == by_step[3]
    assert len(set(text(timeline.details["hlo_module"]).values())) == 1


def test_no_recompilation_where_none_was_planted(stages):
    assert recompiles.compile_spans(stages).is_empty()


def test_weights_copied_in_every_step(captures, stages):
    timeline = traceview.load(captures / "copies")
    copies = timeline.events.filter((pl.col("kind") == "memcpy") & pl.col("step").is_not_null())
    assert dict(copies.group_by("step").len().iter_rows()) == dict.fromkeys(range(STEPS), LEAVES)
    assert copies["bytes"].null_count() == copies.height  # a CPU does not record them: not zero, not known
    (row,) = transfers.transfers(timeline, find_steady_state(timeline)).iter_rows(named=True)
    assert (row["kind"], row["count"], row["per_step"], row["repeated_each_step"]) == (
        "HtoD",
        STEPS * LEAVES,
        LEAVES,
        True,
    )
    assert stages.events.filter(pl.col("kind") == "memcpy").is_empty()


def test_python_frames_are_kept_as_python(captures):
    timeline = traceview.load(captures / "python")
    frames = timeline.events.filter(pl.col("kind") == "python")
    assert frames.height > 10
    assert frames["name"].cast(pl.String).str.starts_with("$").all()
    assert timeline.device_work["launch_id"].null_count() == 0


def test_runs_that_waited_for_an_input_belong_to_the_step_that_called_them(captures):
    timeline = traceview.load(captures / "in-flight")
    work = timeline.device_work
    assert work["launch_id"].null_count() == 0
    numbers = timeline.details["run_id"].with_columns(run=pl.col("value").cast(pl.String).str.strip_chars('"'))
    runs = work.join(numbers, on="id").group_by("run").agg(pl.col("step").unique(), pl.col("launch_id").unique())
    assert runs.height == 2 * STEPS
    assert sorted(step for (step,) in runs["step"].to_list()) == sorted([*range(STEPS), *range(STEPS)])
    assert runs["launch_id"].list.len().unique().to_list() == [1]


def test_a_profile_of_the_host_alone_says_so(captures, capsys):
    timeline = traceview.load(captures / "host-only")
    (note,) = [note for note in timeline.report.notes if note.kind == "host-only"]
    assert "only the host is recorded" in note.text
    assert report(timeline).devices is None
    from traceview.cli.main import main

    assert main(["check-dispatch", str(captures / "host-only")]) == 3
    assert "inconclusive" in capsys.readouterr().out.lower()


def test_nothing_of_this_machine_is_shown(stages):
    import getpass
    import socket

    shown = repr([run.metadata for run in stages.runs]) + repr(stages.processes.rows()) + repr(stages.threads.rows())
    for secret in (socket.gethostname(), getpass.getuser(), str(PROGRAMS.parent)):
        assert secret not in shown


@pytest.mark.parametrize("name", ["stages", "recompiles", "copies"])
def test_viewer_file_holds_the_same_ops(captures, name):
    """Only the XSpace is read of a folder; the viewer file beside it has the same ops and less about them."""
    whole = traceview.load(captures / name)
    (viewer,) = (captures / name).rglob("*.trace.json.gz")
    less = traceview.load(viewer)
    assert less.device_work.height == whole.device_work.height
    assert (
        abs(int(less.device_work["dur_ns"].sum()) - int(whole.device_work["dur_ns"].sum())) <= whole.device_work.height
    )
    assert "op_name" not in less.details
    assert less.report.trust == "limited"
