"""Real exports whose right answers are known."""

from __future__ import annotations

import sqlite3
from functools import cache

import polars as pl
import pytest

import traceview
from traceview.busy import busy
from traceview.gate import check
from traceview.projection import project

MS = 1e6


@cache
def loaded(path):
    timeline = traceview.load(path)
    timeline.validate()
    return timeline


@pytest.fixture
def nsys(corpus):
    return lambda name: loaded(corpus / "nsys" / f"{name}.sqlite")


def kernels(timeline):
    return timeline.events.filter(pl.col("kind").is_in(["kernel", "collective"]))


def note_kinds(timeline):
    return {note.kind for note in timeline.report.notes}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mfu-2gpu-before", [(273_817_787, 299_848_812), (267_275_916, 298_661_551)]),
        ("fastvideo-2gpu-h100-1s", [(962_890_247, 969_447_605), (962_810_705, 969_258_578)]),
        ("cloverleaf-a100", [(303_795_463, 342_407_810)]),
        ("saxpy-mpi-a100", [(373_273_080, 1_097_327_843)]),
        ("torch-tiny-rtx3080-wsl", [(5_761, 22_453_059)]),
        ("gemm-no-kernel-table", []),
        ("centerformer-nvtx-only", []),
        ("dynamicvit-no-meta-table", []),
    ],
)
def test_busy_and_span(nsys, name, expected):
    assert [(one.busy_ns, one.span_ns) for one in busy(nsys(name))] == expected


@pytest.mark.parametrize(
    ("name", "count", "without_launch"),
    [
        ("mfu-2gpu-before", 4010, 24),
        ("fastvideo-2gpu-h100-1s", 3442, 1810),
        ("cloverleaf-a100", 1312, 0),
        ("saxpy-mpi-a100", 5, 0),
    ],
)
def test_kernels_and_their_launches(nsys, name, count, without_launch):
    rows = kernels(nsys(name))
    assert (rows.height, rows["launch_id"].null_count()) == (count, without_launch)


def test_a_process_launches_its_own_kernels_only(nsys):
    timeline = nsys("mfu-2gpu-before")
    linked = kernels(timeline).filter(pl.col("launch_id").is_not_null())
    calls = timeline.events[linked["launch_id"]]
    assert linked["process"].to_list() == calls["process"].to_list()
    assert (linked["start_ns"] >= calls["start_ns"]).all()
    assert timeline.devices["ordinal"].to_list() == [0, 1]
    by_process = linked.select("process", "device").unique().sort("process").rows()
    assert by_process == [(0, 0), (1, 1)]
    names = linked["name"].cast(pl.String)
    assert names.str.contains("flash_fwd_kernel").sum() == 68 - 2
    moved = kernels(timeline).filter(pl.col("name").cast(pl.String).str.contains("ncclDevKernel_SendRecv"))
    assert (moved.height, round(moved["dur_ns"].sum() / MS, 3)) == (66, 25.402)


def test_flash_attention_is_found(nsys):
    result = check(nsys("mfu-2gpu-before"))
    ran = {}
    for row in result.table.attention:
        key = row.implementation, row.attribution
        ran[key] = ran.get(key, 0) + row.count
    assert ran[("flash-2", "attributed")] == 66
    assert ran[("flash-2", "kernel-only")] == 2


def test_fp32_products_are_a_precision_finding(nsys):
    result = check(nsys("fastvideo-2gpu-h100-1s"))
    (finding,) = [one for one in result.findings if one.code == "TV202"]
    assert "528 matrix products ran in fp32 without tensor cores" in finding.title
    assert any("ffma" in line for line in finding.evidence)
    assert {one.code for one in result.findings} >= {"TV901", "TV902"}


def test_stages_of_a_recording_without_cuda(nsys):
    timeline = nsys("centerformer-nvtx-only")
    ranges = timeline.events.filter(pl.col("kind") == "annotation")
    sums = dict(ranges.group_by(pl.col("name").cast(pl.String)).agg(pl.col("dur_ns").sum()).iter_rows())
    assert {name: round(ns / MS, 3) for name, ns in sums.items()} == {
        "find_centers": 20566.757, "transformer_forward": 6139.773, "3D_backbone": 5398.602, "post_processing": 4921.731,
        "reader": 1133.219, "bbox_head": 938.589,
    }  # fmt: skip
    assert round(100 * sums["find_centers"] / sum(sums.values()), 2) == 52.60
    assert "no-device-work" in note_kinds(timeline)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("gemm-no-kernel-table", {"no-device-work", "profiler-dropped-records", "no-ranges"}),
        ("dynamicvit-no-meta-table", {"version-unknown", "no-events"}),
        ("torch-tiny-rtx3080-wsl", {"no-ranges"}),
        ("cloverleaf-a100", {"no-ranges", "profiler-older-than-driver", "tables-not-read"}),
    ],
)
def test_what_is_missing_is_said(nsys, name, kinds):
    assert note_kinds(nsys(name)) >= kinds


def test_the_device_is_the_one_that_cuda_means(nsys):
    """The list of GPUs counts backwards here: CUDA's number 0 is entry 3."""
    assert nsys("cloverleaf-a100").devices.select("ordinal", "name").rows() == [(0, "NVIDIA A100-SXM4-80GB")]


def test_backtraces_double_nothing(nsys):
    timeline = nsys("saxpy-mpi-a100")
    assert timeline.report.counts["backtrace-row"].n == 38
    assert kernels(timeline)["dur_ns"].sum() == pytest.approx(88.573 * MS, abs=500)
    assert timeline.processes["rank"].to_list() == [0]
    assert timeline.runs[0].rank == 0


@pytest.mark.parametrize("name", ["saxpy-mpi-a100", "fastvideo-2gpu-h100-1s"])
def test_projection_against_sql(corpus, nsys, name):
    """The definition of `nvtx_gpu_proj_trace` in SQL: same thread, the call inside the range, joined by process."""
    timeline = nsys(name)
    with sqlite3.connect(f"file:{corpus / 'nsys' / name}.sqlite?mode=ro&immutable=1", uri=True) as connection:
        connection.executescript(
            "CREATE TEMP TABLE op AS SELECT k.start, k.end, r.start AS a, r.end AS b, r.globalTid AS tid FROM"
            " (SELECT start, end, correlationId, globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL UNION ALL"
            "  SELECT start, end, correlationId, globalPid FROM CUPTI_ACTIVITY_KIND_MEMCPY) k"
            " JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON k.correlationId = r.correlationId"
            " AND k.globalPid = (r.globalTid & ~16777215) AND r.eventClass IN (0, 1); CREATE INDEX temp.i ON op (tid, a)"
        )
        expected = connection.execute(
            "SELECT n.start, n.end - n.start, min(o.start), max(o.end), count(*) FROM NVTX_EVENTS n JOIN op o"
            " ON o.tid = n.globalTid AND o.a >= n.start AND o.b <= n.end WHERE n.eventType IN (59, 60) GROUP BY n.rowid"
        ).fetchall()
    connection.close()
    ranges = timeline.events.filter(pl.col("kind").is_in(["annotation", "op"]) & pl.col("thread").is_not_null())
    work = timeline.device_work.filter(pl.col("kind") != "memset")["id"]
    kept = timeline.events.with_columns(launch_id=pl.when(pl.col("id").is_in(work.implode())).then("launch_id"))
    from dataclasses import replace

    projected = project(replace(timeline, events=kept), ranges["id"])
    merged = projected.group_by("id").agg(pl.col("start_ns").min(), pl.col("end_ns").max(), pl.col("count").sum())
    origin = timeline.runs[0].origin_unix_ns
    with sqlite3.connect(f"file:{corpus / 'nsys' / name}.sqlite?mode=ro&immutable=1", uri=True) as connection:
        (zero,) = connection.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()
    connection.close()
    shift = origin - zero
    found = merged.join(ranges.select("id", r="start_ns", d="dur_ns"), on="id").select(
        pl.col("r") + shift, "d", pl.col("start_ns") + shift, pl.col("end_ns") + shift, "count"
    )
    assert sorted(found.rows()) == sorted(expected)
    assert expected
