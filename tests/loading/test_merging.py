"""Several files on one timeline: keys never mix, clocks are aligned where they can be, doubts are said."""

from __future__ import annotations

import polars as pl
import pytest

from authored_timeline import timeline
from traceview import load
from traceview.errors import UnreadableTraceError, UsageError
from traceview.merging import merge, recording_key
from traceview.timeline import Trust


def notes(timeline):
    return {note.kind: note for note in timeline.report.notes}


def work(timeline):
    """(rank, ordinal, kernel, start_ns) of all device work."""
    ranks = {index: run.rank for index, run in enumerate(timeline.runs)}
    devices = {row["device"]: (ranks[row["run"]], row["ordinal"]) for row in timeline.devices.iter_rows(named=True)}
    return [
        (*devices[row["device"]], row["name"], row["start_ns"])
        for row in timeline.events.filter(pl.col("kind") == "kernel").iter_rows(named=True)
    ]


@pytest.fixture
def two_ranks(write):
    return load(
        [
            write("rank0.toy", "TOY rank=0 origin=50000 world=2"),
            write("rank1.toy", "TOY rank=1 origin=53000 world=2 size=16"),
        ]
    )


def test_clocks_are_aligned_by_the_recorded_origin(two_ranks):
    assert work(two_ranks) == [
        (0, 0, "k0", 0), (1, 0, "k0", 3000), (0, 0, "k1", 10000), (1, 0, "k1", 13000),
    ]  # fmt: skip
    assert [run.origin_unix_ns for run in two_ranks.runs] == [50000, 50000]
    assert notes(two_ranks)["clocks-aligned"].trust == "good"


def test_the_result_keeps_the_contract(two_ranks):
    two_ranks.validate()
    assert two_ranks.events["id"].to_list() == list(range(two_ranks.events.height))
    assert two_ranks.events["start_ns"].is_sorted()
    assert two_ranks.devices["device"].to_list() == [0, 1]
    assert two_ranks.processes["run"].to_list() == [0, 1]


def test_details_follow_their_events(two_ranks):
    grid = two_ranks.details["grid"].join(two_ranks.events.select("id", "name"), on="id")
    assert sorted(grid.select("name", "value").rows()) == [("k0", 0), ("k0", 0), ("k1", 1), ("k1", 1)]
    assert two_ranks.details["grid"]["id"].is_sorted()


def test_input_signatures_are_distinct_and_found(two_ranks, write):
    by_op = two_ranks.events.filter(pl.col("kind") == "op").join(two_ranks.inputs, on="inputs")
    assert sorted(by_op["dims"]) == ["[[16]]", "[[8]]"]
    same = load([write("a.toy", "TOY rank=0 origin=1"), write("b.toy", "TOY rank=1 origin=2")])
    assert same.inputs.height == 1
    assert same.events.filter(pl.col("kind") == "op")["inputs"].to_list() == [0, 0]


def test_a_launch_never_crosses_files(write):
    """Both files use the correlations 0 and 1; only within a file do they mean the same."""
    merged = load([write("a.toy", "TOY rank=0 origin=1"), write("b.toy", "TOY rank=1 origin=1")])
    process = merged.events.filter(pl.col("kind") == "kernel").group_by("correlation").agg(pl.col("process").n_unique())
    assert process["process"].to_list() == [2, 2]


def test_without_an_origin_each_file_starts_at_zero_and_that_is_said(write):
    merged = load([write("a.toy", "TOY rank=0 origin=50000"), write("b.toy", "TOY rank=1")])
    assert [start for *_, start in work(merged)] == [0, 0, 10000, 10000]
    assert notes(merged)["clocks-not-aligned"].trust == "limited"
    assert notes(merged)["clocks-not-aligned"].text == (
        "1 of 2 files do not say when they were recorded (b.toy): each file starts at its own zero, "
        "so times must not be compared between files."
    )
    assert [run.origin_unix_ns for run in merged.runs] == [50000, None]


def test_recordings_of_different_times_are_noticed(write):
    merged = load([write("a.toy", "TOY rank=0 origin=1"), write("b.toy", "TOY rank=1 origin=9000000000")])
    assert notes(merged)["recordings-apart"].trust == "limited"


def test_a_copy_of_a_recording_is_counted_once(write):
    merged = load([write("a.toy", "TOY rank=0 origin=1"), write("copy.toy", "TOY rank=0 origin=1")])
    assert [run.path.name for run in merged.runs] == ["a.toy"]
    assert notes(merged)["duplicate-file"].text == "copy.toy holds the same recording as a.toy and is counted once."


def test_a_file_that_goes_away_costs_no_other(write, monkeypatch):
    from traceview import sources

    path = write("a.toy", "TOY rank=0 origin=1000")
    other = write("b.toy", "TOY rank=1 origin=2000 kernels=3")
    find = sources.find

    def find_and_remove(*arguments):
        found = find(*arguments)
        path.unlink()
        return found

    monkeypatch.setattr(sources, "find", find_and_remove)
    timeline = load(path.parent)
    assert [run.path for run in timeline.runs] == [other]
    assert timeline.report.counts["lost-file"].n == 1
    assert timeline.report.trust is Trust.POOR
    write("a.toy", "TOY")
    with pytest.raises(
        UnreadableTraceError, match=r"the file cannot be read: No such file or directory\. Is it still there"
    ):
        load(path)


def test_two_empty_recordings_are_not_copies():
    nothing = timeline()
    assert recording_key(nothing) is None
    merged = merge([nothing, nothing])
    merged.validate()
    assert (merged.events.height, len(merged.runs)) == (0, 2)


def test_two_recordings_of_one_rank_are_both_kept_and_doubted(write):
    merged = load([write("a.toy", "TOY rank=0 origin=1"), write("b.toy", "TOY rank=0 origin=1 kernels=3")])
    assert len(merged.runs) == 2
    assert notes(merged)["rank-twice"].text == "Rank 0 has 2 different recordings (a.toy, b.toy): all are counted."
    assert merged.report.trust == "limited"


def test_missing_ranks_are_said(write):
    merged = load([write("a.toy", "TOY rank=0 origin=1 world=8"), write("b.toy", "TOY rank=3 origin=1 world=8")])
    assert notes(merged)["ranks-missing"].text == "2 of 8 ranks were given."


def test_files_of_different_runs_are_refused(write):
    with pytest.raises(UsageError, match="the 2 traces do not belong to one run: they speak of 4, 8 ranks"):
        load([write("a.toy", "TOY rank=0 origin=1 world=8"), write("b.toy", "TOY rank=1 origin=1 world=4")])


def test_counts_of_all_files_add_up(write):
    merged = load([write("a.toy", "TOY rank=0 lost=2"), write("b.toy", "TOY rank=1 lost=3 cut=yes")])
    assert merged.report.counts["lost-event"].n == 5
    assert merged.report.truncated
