"""TV405: ranks waited in collectives for one that came late."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from authored_timeline import host, kernel, launch, timeline
from rules.rule_case import judged
from traceview.merging import merge

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def rank(number, arrives_us, *host_events):
    """Works for 100 us, comes to the collective at ``arrives_us``; all ranks leave it at 400 us."""
    built = timeline(
        launch(0, 1),
        kernel("sgemm", 5, 105, 1),
        *host_events,
        launch(arrives_us - 5, 2),
        kernel(ALL_REDUCE, arrives_us, 400, 2, kind="collective"),
    )
    run = replace(built.runs[0], path=Path(f"rank{number}.json"), rank=number, origin_unix_ns=1_000_000)
    return replace(built, runs=(run,))


def test_positive_a_late_rank_with_what_it_did_before():
    loading = host("annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 20, 290)
    (one,) = judged("TV405", merge([rank(0, 110), rank(1, 300, loading)]))
    assert one.title == (
        "Ranks waited in collectives for 0.190 ms on 2 devices together, 24.1 % of the recorded span: "
        "rank 1 device 0 came last in 1 of 1"
    )
    assert one.cost_ns == 190_000
    assert one.evidence[0] == "of 0.390 ms in 1 collective, 0.200 ms are transfer, the rest is waiting"
    assert one.evidence[2].startswith(
        "before the collectives it came last to, rank 1 device 0 stood idle: data-loading"
    )


def test_negative_ranks_that_come_together():
    assert judged("TV405", merge([rank(0, 110), rank(1, 112)])) == []


def test_not_recorded_on_one_rank():
    alone = rank(0, 110)
    assert judged("TV405", alone) == []
    (exposed,) = judged("TV402", alone)
    assert exposed.evidence[1].startswith(
        "how much of it is waiting for a late rank cannot be told: one rank is loaded"
    )
