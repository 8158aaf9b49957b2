"""The XProf samples: the authored one comes out the same each time, and both give the answers of their truth tables."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import traceview
from sample_traces import make_jax_cpu, make_xprof, samples_tpu
from traceview import recompiles
from traceview.busy import busy
from traceview.gate import check
from traceview.report import report
from traceview.steady_state import find_steady_state
from traceview.transfers import transfers
from traceview.xprof_figures import xprof_figures

FOLDER = Path(make_xprof.__file__).parent / "xprof"
TRUTHS = {
    path.name.removesuffix(".truth.json"): json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.truth.json"))
}


@pytest.fixture(scope="module", params=TRUTHS)
def sample(request):
    truth = TRUTHS[request.param]
    timeline = traceview.load(FOLDER / truth["trace"])
    timeline.validate()
    return truth, timeline


@pytest.fixture(scope="module")
def tpu():
    return traceview.load(FOLDER / f"{make_xprof.NAME}.xplane.pb")


def test_there_are_five_small_ones_with_their_notes():
    assert sorted(TRUTHS) == [
        "image-pipeline-after.xprof-authored",
        "image-pipeline-before.xprof-authored",
        "jax-cpu-stages",
        "jax-cpu-steps",
        "jax-tpu-unfused.xprof-authored",
    ]
    index = (FOLDER.parent / "README.md").read_text()
    for name, truth in TRUTHS.items():
        assert (FOLDER / truth["trace"]).stat().st_size < 300_000
        assert truth["authored"] == ("authored" in name)
        assert f"(xprof/{name}.md)" in index


def test_authored_bytes_are_the_same_each_time(tmp_path):
    for path in make_xprof.build(tmp_path):
        assert path.read_bytes() == (FOLDER / path.name).read_bytes(), path.name


@pytest.mark.parametrize("name", ["jax-cpu-steps", "jax-cpu-stages"])
def test_the_recordings_say_nothing_of_their_machine(name):
    data = (FOLDER / f"{name}.xplane.pb").read_bytes()
    for secret in (b"/home/", b"/root", b"/Users/", b"/tmp/", b"site-packages"):
        assert secret not in data


def test_scopes_or_marks_are_the_stages_and_steps_and_marks_of_the_run_time_are_not(sample):
    truth, timeline = sample
    scopes = truth.get("scopes") or truth.get("stages") or list(truth.get("stage_busy_ns", {})) or ["attn", "mlp"]
    table = report(timeline).stages
    assert table is not None
    assert set(table.stages["stage"]) == set(scopes)


def test_steps_attention_recompiles_and_copies(sample):
    truth, timeline = sample
    assert not [kind for kind in timeline.report.counts if kind.startswith(("lost-", "repaired-"))]
    steps = report(timeline).steps
    wanted = [one if isinstance(one, str) else f"{one['name']} {one['index']}" for one in truth["steps"]]
    assert [f"{step.name} {step.index}" for step in steps] == wanted
    rows = check(timeline).table.attention
    said = truth["attention"]
    assert {(r.implementation, r.provider, r.evidence) for r in rows} == {
        (said["implementation"], said["provider"], said["evidence"])
    }
    assert sum(row.count for row in rows) == said["count"]
    found = recompiles.after_warm_up(timeline, find_steady_state(timeline))
    assert list(found.steps) == truth["recompiled_steps"]
    copies = timeline.events.filter((pl.col("kind") == "memcpy") & (pl.col("device").is_null()))
    starts = [step.start_ns for step in steps]
    per_step = [
        copies.filter(pl.col("start_ns").is_between(start, start + step.wall_ns)).height
        for start, step in zip(starts, steps, strict=True)
    ]
    assert set(per_step) == {truth["transfers_per_step"]}


@pytest.mark.parametrize("recording", make_jax_cpu.RECORDINGS, ids=lambda recording: recording.name)
def test_notes_of_recordings_are_what_their_program_writes(recording):
    truth = TRUTHS[recording.name]
    assert (FOLDER / f"{recording.name}.md").read_text() == make_jax_cpu.note(recording, truth)
    assert {key: truth[key] for key in recording.planted} == recording.planted


def test_explain_speaks_of_xla(capsys):
    from traceview.cli.main import main

    assert main(["explain", str(FOLDER / f"{make_xprof.NAME}.xplane.pb")]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "XLA does not fuse them: JAX's own implementation, which is the default, is always so" in text
    assert "change Ask for splash or flash attention of Pallas" in text
    assert "scaled_dot_product_attention" not in text


@pytest.fixture(scope="module", params=[samples_tpu.BEFORE, samples_tpu.AFTER])
def pipeline(request):
    truth = TRUTHS[request.param]
    return truth, traceview.load(FOLDER / truth["trace"])


class TestImagePipeline:
    def test_walls_are_those_of_the_story(self, pipeline):
        truth, timeline = pipeline
        assert [step.wall_ns for step in report(timeline).steps] == [one["wall_ns"] for one in truth["steps"]]
        assert samples_tpu.IMAGE_NS == {samples_tpu.BEFORE: 944_670_000, samples_tpu.AFTER: 345_900_000}

    def test_work_and_waits_are_kept_apart(self, pipeline):
        truth, timeline = pipeline
        (one,) = busy(timeline)
        assert (one.busy_ns, one.wait_ns) == (truth["busy_ns_per_core"], truth["wait_ns_per_core"])
        assert xprof_figures(timeline).flops == truth["flops_per_image"] * len(truth["steps"])

    def test_stages_get_the_work_of_their_programs(self, pipeline):
        truth, timeline = pipeline
        stages = report(timeline).stages.stages
        assert dict(stages.select("stage", "device_busy_ns").iter_rows()) == truth["stage_busy_ns"]

    def test_attention_and_verdict(self, pipeline):
        truth, timeline = pipeline
        result = check(timeline)
        assert sum(row.device_ns for row in result.table.attention) == truth["attention_device_ns"]
        assert result.verdict == truth["verdict"]
        assert sorted(finding.code for finding in result.findings) == truth["findings"]

    def test_weights_that_come_again(self, pipeline):
        truth, timeline = pipeline
        again = transfers(timeline, find_steady_state(timeline)).filter(pl.col("repeated_each_step"))
        assert round((again["bytes"] * again["per_step"]).sum()) == truth["recopied_bytes_per_image"]
        titles = [finding.title for finding in check(timeline).findings if finding.code == "TV502"]
        # Copies to a TPU are recorded on the host's threads alone; they are no copies within its memory.
        assert [title.partition(" came back")[0] for title in titles] == (
            ["The same 44 copies to the device"] if truth["recopied_bytes_per_image"] else []
        )


class TestAuthoredTpu:
    truth = TRUTHS[make_xprof.NAME]

    def test_time_of_each_core(self, tpu):
        for one in busy(tpu):
            assert one.busy_ns == self.truth["busy_ns_per_core"]
            assert one.wait_ns == self.truth["wait_ns_per_core"]
            assert one.exposed_communication_ns == self.truth["collective_ns_per_core"]

    def test_the_loop_is_no_work_of_its_own(self, tpu):
        loops = tpu.events.filter(pl.col("name").cast(pl.String) == "while.1")
        assert loops.height == self.truth["modules"]
        assert set(loops["kind"]) == {"other"}

    def test_figures_of_xprof(self, tpu):
        figures = xprof_figures(tpu)
        assert (figures.total_ps, figures.wait_ps) == (self.truth["xprof"]["total_ps"], self.truth["xprof"]["wait_ps"])
        assert figures.flops == self.truth["flops"]

    def test_attention_time(self, tpu):
        (row,) = check(tpu).table.attention
        assert row.device_ns == self.truth["attention_device_ns"] / 1
        assert row.op == "jit(train_step)/while/body/attn"

    def test_modules_find_their_calls_by_64_bit_flows(self, tpu):
        modules = tpu.events.filter(pl.col("kind") == "xla_module").sort("start_ns", "device")
        calls = tpu.events.filter(pl.col("name").cast(pl.String) == "DoEnqueueProgram").sort("start_ns")
        assert modules["launch_id"].to_list() == calls["id"].to_list()
        assert tpu.device_work["launch_id"].null_count() == 0

    def test_ids_keep_all_their_digits(self, tpu):
        values = tpu.details["program_id"]["value"].cast(pl.String).unique().to_list()
        assert values == [str(make_xprof.PROGRAM_ID)]

    def test_clock_and_paths(self, tpu):
        assert tpu.runs[0].origin_unix_ns == self.truth["origin_unix_ns"]
        assert tpu.details["source"]["value"].cast(pl.String).unique().to_list() == ['"~/model/train.py:42"']

    def test_precision_of_products(self, tpu):
        asked = tpu.details["dot_precision"].join(tpu.events.select("id", "name"), on="id")
        told = {(name, value) for name, value in asked.select(pl.col("name", "value").cast(pl.String)).iter_rows()}
        assert told == {("fusion.1", '"default"'), ("fusion.3", '"default"'), ("fusion.4", '"highest"')}
        assert "TV207" in {finding.code for finding in check(tpu).findings}
