"""No two devices or processes of one timeline have the same label."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath as P

import polars as pl
import pytest

from authored_timeline import host, kernel, launch, timeline
from traceview.device_labels import device_labels, file_labels, process_labels
from traceview.merging import merge
from traceview.report import report
from traceview.transfer_report import transfer_report


@pytest.mark.parametrize(
    ("paths", "labels"),
    [
        (("run/host-a.xplane.pb", "run/host-b.xplane.pb"), ("host-a", "host-b")),
        (("a/trace.json", "b/trace.json"), ("a", "b")),
        (("x/one/a/trace.json", "x/one/b/trace.json", "x/two/a/trace.json"), ("one/a/trace", "one/b/trace", "two/a/trace")),
        (("t1v-n-0badcafe-w-0.xplane.pb", "t1v-n-0badcafe-w-1.xplane.pb"), ("...0", "...1")),
        (("same.json", "same.json"), ("file 1", "file 2")),
        (("alone.json",), ("alone",)),
    ],
)  # fmt: skip
def test_files_are_told_apart_by_what_differs(paths, labels):
    assert file_labels([P(path) for path in paths]) == labels


def of_file(name, *events, rank=None):
    built = timeline(*events)
    return replace(built, runs=(replace(built.runs[0], path=P(name), rank=rank),))


def one_device(name, rank=None):
    copy = kernel("Memcpy HtoD (Pageable -> Device)", 5, 9, 1, kind="memcpy")
    return of_file(name, host("annotation", "ProfilerStep#3", 0, 20), launch(1, 1, name="cudaMemcpyAsync"), copy, rank=rank)  # fmt: skip


def test_hosts_without_a_rank_are_told_by_their_files():
    both = merge([one_device("run/left.json"), one_device("run/right.json")])
    assert device_labels(both) == {0: "left device 0", 1: "right device 0"}
    assert process_labels(both, [0, 1]) == {0: "left", 1: "right"}
    assert [one.label for one in report(both).trace.devices] == ["left device 0", "right device 0"]
    assert [step.label for step in report(both).steps] == ["left ProfilerStep#3", "right ProfilerStep#3"]


def test_ranks_need_no_file_unless_two_claim_the_same():
    ranks = merge([one_device("left.json", rank=0), one_device("right.json", rank=1)])
    assert list(device_labels(ranks).values()) == ["rank 0 device 0", "rank 1 device 0"]
    assert list(process_labels(ranks, [0, 1]).values()) == ["rank 0", "rank 1"]
    twice = merge([one_device("left.json", rank=0), one_device("right.json", rank=0)])
    assert list(device_labels(twice).values()) == ["left rank 0 device 0", "right rank 0 device 0"]
    assert list(process_labels(twice, [0, 1]).values()) == ["left rank 0", "right rank 0"]


def test_processes_of_one_file_have_their_key():
    built = timeline(launch(0, 1), launch(0, 2, process=1, thread=1))
    assert process_labels(built, [0, 1]) == {0: "process 0", 1: "process 1"}


def test_copies_that_hosts_recorded_say_which_host():
    def without_device(name):
        built = one_device(name)
        return replace(built, events=built.events.with_columns(device=pl.lit(None, pl.UInt32)))

    both = merge([without_device("left.json"), without_device("right.json")])
    assert transfer_report(both).hosts == {0: "left", 1: "right"}


def test_a_step_has_the_number_that_its_name_lacks():
    steps = [host("annotation", "infer", n * 10, n * 10 + 9, details={"step_num": n + 4}) for n in range(2)]
    assert [step.label for step in report(timeline(*steps)).steps] == ["infer #4", "infer #5"]
    named = [host("annotation", f"ProfilerStep#{n}", n * 10, n * 10 + 9) for n in range(2)]
    assert [step.label for step in report(timeline(*named)).steps] == ["ProfilerStep#0", "ProfilerStep#1"]
    assert report(timeline(launch(0, 1), kernel("a", 2, 9, 1))).steps is None
