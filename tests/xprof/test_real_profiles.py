"""Real profiles give the figures that are known of them."""

from __future__ import annotations

import re
import shutil

import polars as pl
import pytest

import traceview
from traceview.busy import busy
from traceview.report import kernel_report, report
from traceview.stages import assign_stages
from traceview.xprof_figures import xprof_figures


@pytest.fixture(scope="module")
def tpu(profiles):
    return traceview.load(profiles / "tpu-v6e-inference.xplane.pb")


@pytest.mark.parametrize(
    "name", ["jax-conv-legacy-mi300", "jax08-gemm-mi300", "tf-bert-v100-multi-worker", "tpu-v6e-inference"]
)
def test_they_keep_the_contract(profiles, name):
    timeline = traceview.load(profiles / f"{name}.xplane.pb")
    timeline.validate()
    assert dict(timeline.details)
    assert not [kind for kind in timeline.report.counts if kind.startswith(("lost-", "repaired-"))]
    assert not any("host" in str(value).lower() for run in timeline.runs for value in run.metadata.values())


class TestTpu:
    def test_figures_of_xprof_to_the_digit(self, tpu):
        figures = xprof_figures(tpu)
        assert figures.total_ps == 363_729_698_768_750
        assert figures.flops == 1_626_718_863_360
        assert f"{figures.idle_share:.1%}" == "13.4%"
        assert f"{figures.duty_cycle:.1%}" == "86.5%"

    def test_nearly_all_of_its_busy_time_is_waiting(self, tpu):
        figures = xprof_figures(tpu)
        busy_ps = figures.total_ps * (1 - figures.idle_share)
        assert round(busy_ps / 1e12, 1) == 315.1
        assert round(figures.wait_ps / 1e12) == 304
        used = busy(tpu)
        assert round(sum(one.wait_ns for one in used) / 1e9) == 304
        assert sum(one.busy_ns for one in used) / 1e9 < 11
        assert all(one.busy_ns + one.wait_ns <= one.span_ns for one in used)

    def test_every_module_is_linked_to_the_call_that_queued_it(self, tpu):
        modules = tpu.events.filter(pl.col("kind") == "xla_module")
        calls = tpu.events.select(launch_id="id", call=pl.col("name").cast(pl.String), call_ns="start_ns")
        joined = modules.join(calls, on="launch_id", how="left")
        assert modules.height == 414
        assert joined["call"].to_list() == ["DoEnqueueProgram"] * 414
        assert (joined["call_ns"] <= joined["start_ns"]).all()
        assert tpu.device_work["launch_id"].null_count() == 0

    def test_rows_of_each_device(self, tpu):
        per_kind = dict(
            tpu.events.filter(pl.col("device") == 0).group_by(pl.col("kind").cast(pl.String)).len().iter_rows()
        )
        assert per_kind["xla_module"] == 105
        assert per_kind["xla_op"] + per_kind["collective"] + per_kind["async_wait"] == 1504
        assert per_kind["other"] == 600  # copies in flight
        assert tpu.devices["name"].to_list() == ["TPU v6 Lite"] * 4

    def test_exact_picoseconds_are_kept(self, tpu):
        first = tpu.events.filter((pl.col("name").cast(pl.String) == "broadcast.2") & (pl.col("kind") == "xla_op"))[
            "id"
        ][0]
        duration = tpu.details["duration_ps"].filter(pl.col("id") == first)["value"][0]
        assert duration == 4_443_766_328
        assert tpu.events["dur_ns"][first] in (4_443_766, 4_443_767)

    def test_an_op_says_where_it_comes_from(self, tpu):
        ids = tpu.events.filter(pl.col("name").cast(pl.String) == "all-reduce")["id"]
        for key, part in (
            ("hlo_category", "all-reduce"),
            ("op_name", "reduce_sum"),
            ("hlo_module", "jit__psum"),
            ("source", ".py:"),
        ):
            detail = tpu.details[key].filter(pl.col("id").is_in(ids.implode()))
            assert detail.height == 12, key
            assert all(part in text for text in detail["value"].cast(pl.String)), key
        assert tpu.events.filter(pl.col("id").is_in(ids.implode()))["bytes"].unique().to_list() == [10_737_418_240]

    def test_transfers_have_their_bytes(self, tpu):
        transfers = tpu.events.filter((pl.col("kind") == "memcpy") & pl.col("device").is_null())
        to_device = transfers.filter(pl.col("name").cast(pl.String) == "tpu::System::TransferToDevice")
        assert to_device.height == 13
        assert to_device["bytes"].null_count() == 0
        assert to_device["bytes"].max() == 5_368_709_120

    def test_report_says_it_in_its_first_lines(self, tpu, capsys, profiles):
        from traceview.cli.main import main

        assert main(["report", str(profiles / "tpu-v6e-inference.xplane.pb")]) == 0
        text = capsys.readouterr().out
        assert "on 4 devices: waits for asynchronous work 97.0 %, compute\n3.0 %." in text
        assert re.search(r"busy time that is waiting +304\.0 s", text)
        assert "13.4 %" in text
        assert "86.5 %" in text


class TestGpu:
    def test_compute_and_copies_of_an_mi300(self, profiles):
        timeline = traceview.load(profiles / "jax-conv-legacy-mi300.xplane.pb")
        used = {timeline.devices["ordinal"][one.device]: one for one in busy(timeline)}
        assert used[7].computation_ns == 3_586_493
        assert (used[7].span_ns, used[7].memcpy_ns) == (15_761_301, 0)
        # These copies belong to no HLO op; they are copies all the same.
        assert (used[0].exposed_memcpy_ns, used[0].computation_ns) == (889_028, 0)
        assert timeline.device_work.filter(pl.col("kind") == "memcpy")["bytes"].min() == 655_360
        assert timeline.device_work["launch_id"].null_count() == 0

    def test_copies_of_a_stream_without_op_are_copies(self, profiles):
        timeline = traceview.load(profiles / "jax08-gemm-mi300.xplane.pb")
        per_stream = dict(timeline.device_work.group_by("stream").agg(pl.col("dur_ns").sum()).iter_rows())
        assert per_stream == {16: 3_415_244, 17: 60_240}
        copies = timeline.device_work.filter(pl.col("name").cast(pl.String).str.contains("copyBuffer"))
        assert set(copies["kind"]) == {"memcpy"}
        kernels = {row.name: (row.family, row.implementation) for row in kernel_report(timeline).kernels}
        assert kernels["gemm_fusion_dot_general_1.kd"] == ("gemm", "triton")
        assert ("gemm", "tensile") in kernels.values()

    def test_derived_lines_are_not_counted_again(self, profiles):
        timeline = traceview.load(profiles / "tf-bert-v100-multi-worker.xplane.pb")
        assert timeline.report.counts["derived-row"].n == 6218
        work = timeline.device_work.join(timeline.devices, on="device")
        compute = work.filter(pl.col("kind") == "kernel").group_by("ordinal").agg(pl.len(), pl.col("dur_ns").sum())
        assert sorted(compute.rows()) == [(4, 665, 14_825_385), (6, 665, 14_865_363)]
        assert timeline.devices["compute_major"].unique().to_list() == [7]
        assert work["launch_id"].null_count() == 0


class TestViewerFiles:
    def test_the_change_of_dispatch_from_a_to_b(self, profiles):
        a, b = (kernel_report(traceview.load(profiles / f"vllm-tpu-qwen3-{x}.trace.json.gz")).kernels for x in "ab")
        ran_a = {row.name: row for row in a}
        ran_b = {row.name: row for row in b}
        fused = [row for row in a if (row.family, row.implementation, row.provider) == ("gemm", "fused", "xla")]
        # Two cores, one run of the step each.
        assert f"{sum(row.total_ns for row in fused) / 2 / 1e6:.1f}" == "42.3"
        assert "convolution_bitcast_fusion" in {row.name for row in fused}
        assert all(row.tensor_core for row in fused)
        assert not any("quantized_matmul" in name for name in ran_a)
        pallas = [row for name, row in ran_b.items() if name.startswith("quantized_matmul_kernel")]
        assert {(row.family, row.implementation) for row in pallas} == {("gemm", "pallas")}
        assert sum(row.count for row in pallas) == 512
        assert not any(row.implementation == "fused" and row.total_ns > 1e6 for row in b if row.family == "gemm")

    @pytest.mark.parametrize(
        ("name", "first_us", "second_us"), [("a", 66914.493, 66976.312), ("b", 65558.339, 65427.078)]
    )
    def test_module_runs(self, profiles, name, first_us, second_us):
        timeline = traceview.load(profiles / f"vllm-tpu-qwen3-{name}.trace.json.gz")
        steps = timeline.events.filter(
            pl.col("name").cast(pl.String).str.starts_with("jit_step_fun") & (pl.col("kind") == "xla_module")
        )
        assert [round(ns / 1000, 3) for ns in steps.sort("device")["dur_ns"]] == [first_us, second_us]
        assert {note.kind for note in timeline.report.notes} >= {"viewer-file"}
        assert timeline.devices["name"].to_list() == ["TPU", "TPU"]


class TestPlainStatements:
    def test_bytes_replaced_as_text(self, profiles):
        with pytest.raises(
            traceview.errors.UnreadableTraceError, match="replaced when it was stored or copied as text"
        ):
            traceview.load(profiles / "tpu-v6e-inference-broken-utf8.xplane.pb")

    def test_cut_off_file_names_the_byte_and_keeps_whole_planes(self, profiles, tmp_path):
        data = (profiles / "tpu-v6e-inference.xplane.pb").read_bytes()
        path = tmp_path / "host.xplane.pb"
        path.write_bytes(data[: len(data) // 2])
        timeline = traceview.load(path)
        (note,) = [note for note in timeline.report.notes if note.kind == "cut-off"]
        assert f"breaks off at byte {len(data) // 2:,}" in note.text
        assert timeline.report.truncated
        assert timeline.report.trust == "poor"
        assert timeline.devices.height > 0
        with pytest.raises(traceview.errors.StrictModeError):
            traceview.load(path, strict=True)

    def test_cut_off_in_its_first_plane(self, profiles, tmp_path):
        path = tmp_path / "host.xplane.pb"
        path.write_bytes((profiles / "tpu-v6e-inference.xplane.pb").read_bytes()[:5000])
        with pytest.raises(
            traceview.errors.UnreadableTraceError, match=r"no plane .* is whole: it breaks off .* at byte 5,000"
        ):
            traceview.load(path)

    def test_folder_without_a_profile(self, tmp_path):
        folder = tmp_path / "plugins" / "profile" / "2026_01_01_00_00_00"
        folder.mkdir(parents=True)
        (folder / "ALL_HOSTS.op_stats_v2.pb").write_bytes(b"\x0a\x00")
        with pytest.raises(traceview.errors.UnreadableTraceError, match="op_stats"):
            traceview.load(tmp_path)


def test_report_has_no_step_where_none_is_marked(profiles):
    result = report(traceview.load(profiles / "jax08-gemm-mi300.xplane.pb"))
    assert result.steps is None
    assert any("no step marks" in note.text for note in result.notes)


def test_both_files_of_a_host_are_one(profiles, tmp_path):
    run = tmp_path / "plugins" / "profile" / "2026_01_11_21_26_41"
    run.mkdir(parents=True)
    shutil.copy(profiles / "jax08-gemm-mi300.xplane.pb", run / "h.xplane.pb")
    shutil.copy(profiles / "vllm-tpu-qwen3-a.trace.json.gz", run / "h.trace.json.gz")
    timeline = traceview.load(tmp_path)
    assert [one.path.name for one in timeline.runs] == ["h.xplane.pb"]
    assert any("same host and holds more" in note.text for note in timeline.report.notes)


def test_ops_of_tensorflow_give_stages(profiles):
    """Profiles of TensorFlow on GPUs say of each kernel of which op it is, as ``level 0``."""
    timeline = traceview.load(profiles / "tf-bert-v100-multi-worker.xplane.pb")
    work = assign_stages(timeline).timeline.device_work.with_columns(pl.col("stage").cast(pl.String))
    ops = timeline.details["level 0"].with_columns(pl.col("value").cast(pl.String))
    told = work.join(ops, on="id", how="left")
    inside = told.filter(pl.col("value").str.contains(r"replica_\d+/.*/transformer/layer_\d+/self_attention/"))
    assert inside.height == 576
    assert inside["stage"].unique().to_list() == [
        "replica/bert_span_labeler/bert_encoder/transformer/layer/self_attention"
    ]
    assert told.filter(pl.col("stage").is_null() & pl.col("value").str.contains("/", literal=True)).height == 0
