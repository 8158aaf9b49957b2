"""Limits on what the rules look for: kept, exceeded, and not to be told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from authored_timeline import host, kernel, launch, op, timeline
from traceview.expectations.limits import LIMITS
from traceview.expectations.model import Limit
from traceview.expectations.reading import read_expectations
from traceview.gate import check
from traceview.merging import merge
from traceview.timeline import ImportReport, Note, Trust

STEPS = [host("annotation", f"ProfilerStep#{n}", 100 * n, 100 * n + 100) for n in range(3)]
WORK = [launch(0, 1), kernel("a", 2, 42, 1), launch(80, 2), kernel("b", 82, 102, 2)]
"""One device, 2 to 102 us, idle from 42 to 82."""

WAITING = [*WORK, host("sync", "cudaDeviceSynchronize", 5, 45)]
LOADING = [*WORK, host("annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 5, 78)]
PAGEABLE, PINNED, BARE = "Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pinned -> Device)", "[CUDA memcpy HtoD]"


def copying(name):
    return [launch(0, 1), kernel("a", 2, 42, 1), launch(41, 2), kernel(name, 42, 102, 2, kind="memcpy")]


def capture(at_us):
    return [host("api", "cudaStreamBeginCapture", at_us, at_us + 1), host("api", "cudaStreamEndCapture", at_us + 20, at_us + 22)]  # fmt: skip


MALLOC = host("api", "cudaMalloc", 150, 160)
CASES = {
    "waits, kept": ("sync_idle_share = 0.5", WAITING, "pass"),
    "waits, too many": ("sync_idle_share = 0.1", WAITING, "fail"),
    "waits, none": ("sync_idle_share = 0", LOADING, "pass"),
    "waits, no device": ("sync_idle_share = 0.1", [op("aten::mm", 0, 9)], "inconclusive"),
    "data, kept": ("data_loading_share = 0.5", LOADING, "pass"),
    "data, too long": ("data_loading_share = 0.3", LOADING, "fail"),
    "data is of a late host": ("host_late_share = 0.3", LOADING, "fail"),
    "cause not known": ("data_loading_share = 0.3", [kernel("a", 0, 10), kernel("b", 90, 100)], "inconclusive"),
    "cause not known, but not enough": ("data_loading_share = 0.9", [kernel("a", 0, 10), kernel("b", 90, 100)], "pass"),
    "pageable": ("pageable_copy_share = 0.5", copying(PAGEABLE), "fail"),
    "pinned": ("pageable_copy_share = 0", copying(PINNED), "pass"),
    "memory not recorded": ("pageable_copy_share = 0", copying(BARE), "inconclusive"),
    "allocations": ("allocator_share = 0.01", [*STEPS, MALLOC], "fail"),
    "allocations of the warm-up": ("allocator_share = 0", [*STEPS, host("api", "cudaMalloc", 50, 60)], "pass"),
    "allocations, no steps": ("allocator_share = 0", [MALLOC], "inconclusive"),
    "allocations, no calls": ("allocator_share = 0", STEPS, "inconclusive"),
    "captures": ("graph_captures_after_warmup = 0", [*STEPS, *capture(150)], "fail"),
    "captures of the warm-up": ("graph_captures_after_warmup = 0", [*STEPS, *capture(10)], "pass"),
    "captures, no steps": ("graph_captures_after_warmup = 0", capture(10), "inconclusive"),
    "captures, none": ("graph_captures_after_warmup = 0", [launch(0, 1)], "pass"),
    "captures, no calls": ("graph_captures_after_warmup = 0", [op("aten::mm", 0, 9)], "inconclusive"),
    "copies, no steps": ("repeated_copies_per_step = 0", copying(PINNED), "inconclusive"),
    "one rank": ("collective_wait_share = 0", [kernel("ncclAllReduce", 0, 90, kind="collective")], "inconclusive"),
    "no collective": ("collective_wait_share = 0", WORK, "pass"),
    "trust": ('trust = "good"', WORK, "pass"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_limits(name, judge):
    limit, events, verdict = CASES[name]
    assert [found for found, _ in judge(f"[limits]\n{limit}\n", *events)] == [verdict]


def test_what_was_seen_is_said(judge):
    assert judge("[limits]\ndata_loading_share = 0.3\n", *LOADING)[0][1].startswith(
        "the device was idle for data for 3"
    )
    assert judge("[limits]\nallocator_share = 0.01\n", *STEPS, MALLOC) == [
        ("fail", "1 allocator call past the warm-up: 5.0 % of the steps (0.010 ms)")
    ]


def judged(write, trace, limit):
    (one,) = check(trace, read_expectations(write(f"[limits]\n{limit}\n"))).expectations
    return one.verdict.value, one.observed


def test_copies_that_come_back(write):
    events = [*STEPS, host("annotation", "ProfilerStep#3", 300, 400)]
    for step in range(4):
        for at in range(2):
            key, start = 10 * step + at + 1, 100 * step + 10 + 30 * at
            events += [launch(start, key), kernel(PINNED, start + 2, start + 22, key, kind="memcpy")]
    trace = timeline(*events)
    sized = replace(trace, events=trace.events.with_columns(bytes=trace.events["id"].cast(int) * 0 + (4 << 20)))
    assert judged(write, sized, "repeated_copies_per_step = 1") == (
        "fail", "2 copies of a mebibyte or more came back in each of 3 steps"
    )  # fmt: skip
    assert judged(write, sized, "repeated_copies_per_step = 2")[0] == "pass"
    verdict, seen = judged(write, trace, "repeated_copies_per_step = 2")
    assert (verdict, "the size of 6 copies is not recorded" in seen) == ("inconclusive", True)


def test_waiting_for_a_late_rank(write):
    def rank(number, start):
        built = timeline(kernel("a", 0, 10), kernel("ncclDevKernel_AllReduce", start, 100, kind="collective"))
        return replace(
            built, runs=(replace(built.runs[0], path=Path(f"{number}.json"), rank=number, origin_unix_ns=1),)
        )

    ranks = merge([rank(0, 20), rank(1, 80)])
    assert judged(write, ranks, "collective_wait_share = 0.7")[0] == "pass"
    assert judged(write, ranks, "collective_wait_share = 0.5") == (
        "fail",
        (
            "rank 0 device 0, the worst of 2, was waiting in collectives for a late rank for 60.0 % of its span "
            "(0.060 ms of 0.100 ms)"
        ),
    )


@pytest.mark.parametrize(("limit", "verdict"), [("good", "fail"), ("limited", "pass"), ("poor", "pass")])
def test_trust(limit, verdict, write):
    doubted = replace(timeline(*WORK), report=ImportReport(notes=(Note("odd", "Something is odd.", Trust.LIMITED),)))
    path = write(f'[limits]\ntrust = "{limit}"\n')
    (stated,) = read_expectations(path).limits
    assert stated == Limit(3, "trust", ["good", "limited", "poor"].index(limit), limit)
    assert stated.text == f"trust at least {limit}"
    assert judged(write, doubted, f'trust = "{limit}"') == (
        verdict,
        "the trust of the trace is limited: Something is odd",
    )


def test_a_word_that_is_no_grade(errors):
    assert errors('[limits]\ntrust = "god"\n') == ['dispatch.toml:3: trust cannot be "god". Did you mean "good"?']


def test_every_limit_is_documented(repository):
    page = (repository / "docs" / "expectations.md").read_text()
    assert [key for key in LIMITS if f"`{key}`" not in page and f"`{key} = " not in page] == []
