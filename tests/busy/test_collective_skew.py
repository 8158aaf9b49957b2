"""Waiting in collectives: the last rank to come does not wait, whatever the clocks say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from authored_timeline import host, kernel, launch, timeline
from traceview import load
from traceview.collective_skew import (  # fmt: skip
    COLLECTIVE_WAITS,
    ONE_RANK,
    ONLY_PAIRS,
    SKEW_BY_DEVICE,
    collective_skew,
    late_ranks,
    skew_by_device,
    skew_notes,
)
from traceview.merging import merge
from traceview.report import report

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def rank(number, *collectives, others=(), details=None, origin=1_000_000):
    """A file of one rank; a collective is start and end in us, or start, end and name.

    ``details``: argument to its JSON text for each collective.
    """
    rows = [(*one, ALL_REDUCE)[:3] for one in collectives]
    built = timeline(*(kernel(name, start, end, kind="collective") for start, end, name in rows), *others)
    ids = built.events.filter(pl.col("kind") == "collective")["id"].to_list()
    texts = {
        key: pl.DataFrame({"id": ids, "value": values}, schema={"id": pl.UInt32, "value": pl.Categorical})
        for key, values in (details or {}).items()
    }
    run = replace(built.runs[0], path=Path(f"rank{number}.json"), rank=number, origin_unix_ns=origin)
    return replace(built, details=texts, runs=(run,))


def rows(skew):
    return skew.waits.sort("device", "collective").select("device", "dur_ns", "wire_ns", "wait_ns", "late").rows()


def test_what_lasts_longer_than_on_the_last_rank_is_waiting():
    """
    rank 0  ==========|      100-200
    rank 1        ====|      160-200
    """
    skew = collective_skew(merge([rank(0, (100, 200)), rank(1, (160, 200))]))
    COLLECTIVE_WAITS.validate(skew.waits)
    SKEW_BY_DEVICE.validate(skew_by_device(skew))
    assert rows(skew) == [(0, 100_000, 40_000, 60_000, False), (1, 40_000, 40_000, 0, True)]
    assert (skew.wait_ns, skew.exposed_ns, skew.clocks_apart_ns) == (60_000, 60_000, None)


def test_clocks_of_hosts_change_nothing_and_are_found_out():
    """The clock of rank 1 is 5 ms ahead: what cannot be is said, the waiting is the same."""
    skew = collective_skew(merge([rank(0, (100, 200), (300, 350)), rank(1, (160, 200), (310, 350), origin=6_000_000)]))
    assert (skew.wait_ns, skew.clocks_apart_ns) == (70_000, 5_000_000)
    assert "apart by about 5.000 ms" in skew_notes(skew)[0]


def test_waiting_behind_computation_is_hidden():
    hiding = kernel("sgemm", 120, 150, stream=8)
    skew = collective_skew(merge([rank(0, (100, 200), others=[hiding]), rank(1, (160, 200))]))
    assert (skew.wait_ns, skew.exposed_ns) == (60_000, 30_000)


def test_ranks_that_come_nearly_together_are_not_late():
    skew = collective_skew(merge([rank(0, (100, 200)), rank(1, (102, 200))]))
    assert [late for *_, late in rows(skew)] == [False, False]


def test_the_late_rank_is_named_with_what_the_others_waited():
    ranks = merge([rank(0, (0, 100), (200, 250)), rank(1, (60, 100), (200, 250)), rank(2, (10, 100), (200, 250))])
    (late,) = late_ranks(ranks, collective_skew(ranks))
    assert late == ("rank 1 device 0", 1, 1, 60_000 + 50_000)


def test_steps_tell_which_is_which_where_recordings_begin_at_different_points():
    """Rank 1 recorded one collective more, in a step that rank 0 has not."""

    def stepped(number, *at):
        events = []
        for step, start in at:
            key = step + 1
            events += [host("annotation", f"ProfilerStep#{step}", start, start + 90), launch(start + 1, key)]
            events.append(kernel(ALL_REDUCE, start + 10, start + 40 + 10 * number, key, kind="collective"))
        built = timeline(*events)
        run = replace(built.runs[0], path=Path(f"rank{number}.json"), rank=number, origin_unix_ns=1_000_000)
        return replace(built, runs=(run,))

    skew = collective_skew(merge([stepped(0, (4, 100), (5, 200)), stepped(1, (3, 0), (4, 100), (5, 200))]))
    assert sorted(skew.waits["step"]) == [4, 4, 5, 5]
    assert (skew.recorded, skew.wait_ns) == (5, 20_000)
    assert skew_notes(skew) == ["1 of 5 collectives could not be matched between ranks."]


def test_sequence_numbers_tell_which_is_which_before_anything_else():
    first = rank(0, (0, 50), (100, 150), details={"Seq": ["7", "8"]})
    second = rank(1, (100, 130), (200, 220), details={"Seq": ["8", "9"]})
    assert rows(collective_skew(merge([first, second]))) == [(0, 50_000, 30_000, 20_000, False), (1, 30_000, 30_000, 0, True)]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param([(0, 50), (100, 150)], [(0, 50)], id="other numbers"),
        pytest.param([(0, 50, "AllReduce"), (60, 90, "AllGather")], [(0, 50, "AllGather"), (60, 90, "AllReduce")], id="other order"),
    ],
)  # fmt: skip
def test_what_does_not_agree_is_not_matched(first, second):
    skew = collective_skew(merge([rank(0, *first), rank(1, *second)]))
    assert skew.waits.height == 0
    assert skew.why_none == "the ranks did not record the same collectives in the same order, so they cannot be matched"


def test_sizes_must_agree():
    sizes = [["1024", "8"], ["8", "1024"]]
    ranks = [rank(n, (0, 50), (60, 90), details={"In msg nelems": sizes[n]}) for n in range(2)]
    assert collective_skew(merge(ranks)).waits.height == 0
    same = [rank(n, (0, 50), (60, 90), details={"In msg nelems": sizes[0]}) for n in range(2)]
    assert collective_skew(merge(same)).waits.height == 4


def test_groups_are_matched_each_by_itself():
    """Ranks 0 and 1 are one group, 2 and 3 another of the same name."""
    members = ['"[0, 1]"', '"[0, 1]"', '"[2, 3]"', '"[2, 3]"']
    spans = [(0, 50), (20, 50), (0, 90), (50, 90)]
    ranks = [
        rank(n, spans[n], details={"Process Group Name": ['"1"'], "Process Group Ranks": [members[n]]})
        for n in range(4)
    ]  # fmt: skip
    skew = collective_skew(merge(ranks))
    assert [wait for *_, wait, _ in rows(skew)] == [20_000, 0, 50_000, 0]
    assert set(skew.waits["ranks"]) == {2}


def test_one_rank_cannot_tell_and_says_so():
    alone = rank(0, (0, 100))
    assert collective_skew(alone).why_none == ONE_RANK
    assert f"How long ranks waited for each other cannot be told: {ONE_RANK}." in [n.text for n in report(alone).notes]
    sends = [rank(n, (0, 100, "ncclDevKernel_SendRecv(args)")) for n in range(2)]
    assert collective_skew(merge(sends)).why_none == ONLY_PAIRS
    assert collective_skew(timeline(kernel("a", 0, 9))).why_none is None


def test_the_sample_of_two_ranks(repository):
    """As planted: rank 1 reads data for 1.44 ms and 1.65 ms longer, and comes last both times."""
    trace = load([repository / "sample_traces" / "two-ranks"])
    skew = collective_skew(trace)
    assert sorted(skew.waits["wait_ns"]) == [0, 0, 1_441_300, 1_653_967]
    starts = skew.waits.sort("device").group_by("collective", maintain_order=True).agg(pl.col("start_ns"))
    # In this sample the clocks agree, so starts tell the same.
    assert sorted(late - early for early, late in starts["start_ns"]) == [1_441_300, 1_653_967]
    assert [name for name, *_ in late_ranks(trace, skew)] == ["rank 1 device 1"]
    assert any("came last in 2 of 2" in one.title for one in report(trace).findings if one.code == "TV405")


def test_two_files_of_one_rank_are_not_matched():
    skew = collective_skew(merge([rank(0, (0, 100)), rank(0, (0, 50))]))
    assert (skew.waits.height, skew.why_none) == (0, "two files claim the same rank, so their collectives cannot be matched")  # fmt: skip
