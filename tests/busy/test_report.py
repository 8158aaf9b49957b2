"""What report and kernels answer, as data."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from authored_timeline import host, kernel, launch, op, timeline
from traceview import report

GEMM = "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x64x32_stage5_warpsize2x2x1_tensor16x8x16_kernel"


def test_shares_are_of_work_and_busy_shares_of_time():
    """
    stream 7  |==== a ====||= a =|        0-40, 40-60
    stream 8        |==== b ====|         20-60  (hidden behind a)
    copy                          |==|    60-70
    """
    result = report.kernel_report(
        timeline(kernel("a", 0, 40), kernel("a", 40, 60), kernel("b", 20, 60, stream=8), kernel("Memcpy HtoD", 60, 70, kind="memcpy"))
    )  # fmt: skip
    assert (result.device_ns, result.busy_ns) == (110_000, 70_000)
    a, b = result.kernels
    assert (a.name, a.count, a.total_ns, a.mean_ns, a.union_ns) == ("a", 2, 60_000, 30_000, 60_000)
    assert (a.share, a.busy_share) == (60 / 110, 60 / 70)
    assert (b.share, b.busy_share) == (40 / 110, 40 / 70)
    by_family = {one.family: one for one in result.families}
    assert by_family["memcpy"].total_ns == 10_000
    assert (by_family["unknown"].total_ns, by_family["unknown"].union_ns) == (100_000, 60_000)
    assert sum(one.share for one in result.families) == pytest.approx(1)


def test_unions_are_per_device():
    (one,) = report.kernel_report(timeline(kernel("a", 0, 10), kernel("a", 0, 10, device=1))).kernels
    assert one.union_ns == 20_000


def test_an_unknown_kernel_says_so():
    (one,) = report.kernel_report(timeline(kernel("frobnicate_42", 0, 10))).kernels
    assert (one.family, one.implementation, one.tensor_core) == ("unknown", None, None)


def test_a_known_kernel_is_identified():
    (one,) = report.kernel_report(timeline(kernel(GEMM, 0, 10))).kernels
    assert one.family == "gemm"


def test_without_device_work_parts_are_none_and_say_why():
    result = report.report(timeline(op("aten::mm", 0, 10)))
    assert (result.devices, result.kernels, result.families) == (None, None, None)
    assert {note.part for note in result.notes} == {"devices", "kernels", "steps", "stages", "time"}
    assert report.kernel_report(timeline(op("aten::mm", 0, 10))).kernels is None


def test_launched_only_leaves_work_out_everywhere():
    linked = timeline(launch(100, 1), kernel("early", 0, 30), kernel("own", 110, 130, 1))
    assert [one.name for one in report.report(linked).kernels] == ["early", "own"]
    launched = report.report(linked, launched_only=True)
    assert [one.name for one in launched.kernels] == ["own"]
    assert launched.devices[0].left_out == 1
    assert [note.text for note in launched.notes if note.part == "devices"] == [
        "1 piece of device work has no launch in the file; left out, as --launched-only asks."
    ]


def test_steps():
    linked = timeline(
        host("annotation", "ProfilerStep#7", 0, 50),
        host("annotation", "ProfilerStep#8", 50, 90),
        host("annotation", "forward", 0, 9),
    )
    assert [
        (step.name, step.index, step.start_ns, step.wall_ns, step.warmup) for step in report.report(linked).steps
    ] == [
        ("ProfilerStep#7", 7, 0, 50_000, False),
        ("ProfilerStep#8", 8, 50_000, 40_000, False),
    ]


def test_a_device_says_whether_it_did_anything():
    linked = timeline(kernel("a", 0, 1), kernel("wait", 0, 1, device=1, kind="sync"))
    linked = replace(linked, devices=linked.devices.with_columns(compute_major=pl.lit(9, pl.Int32)))
    used, unused = report.describe(linked).devices
    assert (used.used, used.name, used.compute_capability, used.label) == (True, "NVIDIA H100", "9.0", "device 0")
    assert not unused.used
