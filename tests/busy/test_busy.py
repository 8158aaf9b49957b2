"""Busy, exposed and idle time of a device: unions, never sums."""

from __future__ import annotations

import csv

import polars as pl
import pytest

from authored_timeline import host, kernel, launch, timeline
from traceview import load
from traceview.busy import busy, measure


def work(kind, start_us, end_us, **more):
    return kernel(kind, start_us, end_us, kind=kind, **more)


def us(ns):
    return ns / 1000


def test_overlap_counts_once_and_nesting_too():
    """A long kernel covers two that follow, and the last touches the one before."""
    (one,) = busy(
        timeline(
            work("kernel", 0, 50), work("kernel", 10, 20, stream=8), work("kernel", 30, 60), work("kernel", 60, 70)
        )
    )
    assert (us(one.span_ns), us(one.busy_ns), us(one.idle_ns), one.busy_share) == (70, 70, 0, 1.0)


def test_a_wait_is_never_busy():
    (one,) = busy(
        timeline(work("kernel", 0, 10), work("sync", 10, 90), work("annotation", 0, 90), work("kernel", 90, 100))
    )
    assert (us(one.span_ns), us(one.busy_ns), us(one.idle_ns)) == (100, 20, 80)


def test_time_is_split_by_what_hides_what():
    """
    computation   |====|           0-40    (the fill 35-40 counts as computation)
    communication    |=====|      20-70    hidden until 40
    copy                |=======| 60-100   hidden until 70 by communication
    """
    (one,) = busy(
        timeline(work("kernel", 0, 36), work("memset", 35, 40), work("collective", 20, 70, stream=8), work("memcpy", 60, 100, stream=9))
    )  # fmt: skip
    assert us(one.computation_ns) == 40
    assert (us(one.communication_ns), us(one.exposed_communication_ns)) == (50, 30)
    assert (us(one.memcpy_ns), us(one.exposed_memcpy_ns)) == (40, 30)
    assert one.busy_ns == one.computation_ns + one.exposed_communication_ns + one.exposed_memcpy_ns
    assert us(one.busy_ns) == 100


def test_each_device_by_itself_and_only_those_that_worked():
    first, second = busy(
        timeline(work("kernel", 0, 10), work("kernel", 5, 25, device=3), work("sync", 0, 99, device=5))
    )
    assert (first.device, us(first.span_ns)) == (0, 10)
    assert (second.device, us(second.span_ns), us(second.start_ns)) == (3, 20, 5)


def test_work_without_a_launch_is_counted_and_can_be_left_out():
    linked = timeline(launch(100, 1), kernel("early", 0, 30), kernel("own", 110, 130, 1))
    (every,) = busy(linked)
    assert (every.events, us(every.span_ns), every.without_launch, every.left_out) == (2, 130, 1, 0)
    (launched,) = busy(linked, launched_only=True)
    assert (launched.events, us(launched.span_ns), launched.without_launch, launched.left_out) == (1, 20, 1, 1)


def test_no_device_work():
    assert busy(timeline(host("op", "aten::mm", 0, 1))) == ()


TERMS = {
    "computation_time": "computation_ns",
    "exposed_comm_time": "exposed_communication_ns",
    "exposed_memcpy_time": "exposed_memcpy_ns",
    "busy_time": "busy_ns",
    "idle_time": "idle_ns",
    "total_time": "span_ns",
    "total_comm_time": "communication_ns",
    "total_memcpy_time": "memcpy_ns",
}


@pytest.mark.parametrize(
    ("name", "launched_only"),
    [
        ("owlv2-large-h100", False),
        ("bert-small-h100", False),
        ("falconsai-vit-mi300", False),
        ("flux1-sage-mi300", False),
        ("vllm-decode-full-graph-rocm", False),
        ("vllm-prefilldecode-piecewise-rocm", False),
        ("torch-compile-triton-mi300", False),
        ("qwen15-chat-h100", True),
    ],
)
def test_published_numbers_of_tracelens(name, launched_only, corpus):
    """To a tenth of a microsecond: the published numbers went through floating point."""
    (one,) = busy(load(corpus / "pytorch" / f"{name}.json.gz"), launched_only=launched_only)
    with (corpus / "expected" / f"{name}.gpu-timeline.csv").open() as file:
        published = {row["type"]: float(row["time ms"]) for row in csv.DictReader(file)}
    assert {term: getattr(one, attribute) / 1e6 for term, attribute in TERMS.items()} == pytest.approx(
        published, abs=1e-4
    )


@pytest.mark.parametrize("recomputed", [False, True])
def test_published_split_of_an_activation_checkpoint_run(recomputed, corpus):
    """The published rows split by whether the launch lies in a recomputation, and leave out fills in this file."""
    trace = load(corpus / "pytorch" / "resnet-act-checkpoint-mi300.json.gz")
    inside = trace.events["name"].cast(pl.String).str.contains("recompute_fn").to_list()
    for event, parent in enumerate(trace.events["parent_id"]):
        inside[event] = inside[event] or (parent is not None and inside[parent])
    work = trace.device_work.filter(pl.col("launch_id").is_not_null())
    work = work.filter(pl.Series([inside[launch] is recomputed for launch in work["launch_id"]]))
    with_fills, without = measure(work, device=0), measure(work.filter(pl.col("kind") != "memset"), device=0)
    with (corpus / "expected" / "resnet-act-checkpoint-mi300.gpu-timeline.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["is_recompute"] == str(recomputed)]
    published = {row["type"]: float(row["time ms"]) for row in rows}
    measured = {term: getattr(without, attribute) / 1e6 for term, attribute in TERMS.items()}
    assert measured == pytest.approx(published, abs=1e-4)
    assert with_fills.span_ns == without.span_ns
    assert with_fills.communication_ns == without.communication_ns
