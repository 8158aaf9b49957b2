"""Causes of idle time, launch-bound traces and transfers on real traces."""

from __future__ import annotations

import polars as pl
import pytest

from traceview import load
from traceview.busy import busy
from traceview.gap_report import gap_report
from traceview.gaps import causes, idle
from traceview.launch_health import launch_health

NO_DEVICE = ("cpu-only-gloo", "cupti-range-profiler-a100", "no-distributed-info", "no-gpu-kernels", "no-rank")


def shares(path):
    table = gap_report(load(path)).causes
    return dict(table.group_by("cause").agg(pl.col("share").sum()).iter_rows())


def test_an_input_bound_training_waits_for_its_data(corpus):
    """ResNet50 with the loader in the main process, and the same with four workers (Kineto's own samples)."""
    alone = shares(corpus / "pytorch" / "resnet50-v100-workers0.pt.trace.json.gz")
    assert max(alone, key=alone.get) == "data-loading"
    assert alone["data-loading"] == pytest.approx(0.722, abs=0.001)
    workers = shares(corpus / "pytorch" / "resnet50-v100-workers4.pt.trace.json.gz")
    assert max(workers, key=workers.get) == "launch"
    assert workers["data-loading"] < 0.02


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        ("bert-small-h100", True),
        ("vllm-eager-b200", True),
        ("falconsai-vit-mi300", True),
        ("owlv2-large-h100", False),
        ("resnet50-v100-workers0", False),
        ("sdpa-long-seq-mi300", False),
        ("vllm-decode-full-graph-rocm", False),
    ],
)
def test_launch_bound_or_not(corpus, name, bound):
    (path,) = (corpus / "pytorch").glob(f"{name}.*")
    assert launch_health(load(path))["launch_bound"].to_list() == [bound]


@pytest.mark.slow
def test_causes_add_up_to_the_idle_time_of_every_trace(corpus):
    for path in sorted((corpus / "pytorch").iterdir()):
        timeline = load(path)
        stretches = idle(timeline)
        pieces = causes(timeline, stretches)
        lengths = stretches["end_ns"] - stretches["start_ns"]
        parts = pieces.group_by("interval").agg((pl.col("end_ns") - pl.col("start_ns")).sum()).sort("interval")
        assert parts["end_ns"].to_list() == lengths.to_list(), path.name
        assert (pieces["end_ns"] > pieces["start_ns"]).all(), path.name
        if not path.name.startswith(NO_DEVICE):
            assert int(lengths.sum()) == sum(one.idle_ns for one in busy(timeline)), path.name


def test_the_profiler_s_own_work_is_told_apart(corpus):
    """A B200 trace with overhead rows that name no process: loading of kernels is a cost of the program."""
    table = gap_report(load(corpus / "pytorch" / "vllm-eager-b200.json.gz")).causes
    (row,) = table.filter(pl.col("cause") == "compile").to_dicts()
    assert (row["culprit"], row["stretches"]) == ("Lazy Function Loading", 8)
