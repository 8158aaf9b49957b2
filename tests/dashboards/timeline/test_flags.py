from __future__ import annotations

import polars as pl
import pytest

from traceview import load
from traceview.dashboards.views import timeline as view
from traceview.exporting.marks import events_of
from traceview.gap_report import gap_report
from traceview.gate import check


@pytest.fixture(scope="module")
def fell_back(repository):
    return load(str(repository / "sample_traces" / "flash-requested-math-ran.cuda-authored.json.gz"))


def test_attention_that_fell_back_is_marked_where_it_ran(fell_back):
    table = check(fell_back).table
    marked = [flag for flag in view.flags(fell_back, None, table) if flag.kind == "finding"]
    assert len(marked) == 6
    assert marked[0].label.startswith("attention ran math (forward): ")
    for flag in marked:
        within = fell_back.device_work.filter(
            (pl.col("start_ns") >= flag.start_ns) & (pl.col("start_ns") + pl.col("dur_ns") <= flag.end_ns)
        )
        assert within.height > 1
        assert flag.device == 0


def test_gaps_are_marked_by_what_can_be_won_back(repository):
    trace = load(str(repository / "sample_traces" / "gaps-and-copies.cuda-authored.json"))
    report = gap_report(trace)
    marked = [flag for flag in view.flags(trace, report, check(trace).table) if flag.kind == "gap"]
    assert report.gaps is not None
    worth = report.gaps.filter(pl.col("recoverable_ns") > 0)
    assert len(marked) == min(view.MOST_GAPS, worth.height) > 0
    assert (marked[0].start_ns, marked[0].end_ns - marked[0].start_ns) == worth.select("start_ns", "dur_ns").row(0)
    work = trace.device_work
    for flag in marked:
        during = work.filter(
            (pl.col("start_ns") < flag.end_ns) & (pl.col("start_ns") + pl.col("dur_ns") > flag.start_ns)
        )
        assert during.height == 0


def test_without_findings_nothing_is_marked(repository):
    trace = load(str(repository / "sample_traces" / "flash-requested-flash-ran.cuda-authored.json.gz"))
    assert [flag for flag in view.flags(trace, None, check(trace).table) if flag.kind == "finding"] == []


def test_findings_are_marked_at_the_events_that_they_speak_of(repository):
    trace = load(str(repository / "sample_traces" / "image-pipeline-before.cuda-authored.json.gz"))
    found = check(trace).findings
    marked = [flag for flag in view.flags(trace, None, check(trace).table, found) if flag.kind == "finding"]
    spans = set(trace.events.select("start_ns", end=pl.col("start_ns") + pl.col("dur_ns"), on="device").iter_rows())
    told = {one.code: [flag for flag in marked if flag.label == f"{one.code}: {one.title}"] for one in found}
    for one in found:
        rows = events_of(one, trace)
        assert rows.height == len(set(one.event_ids)) or not one.event_ids
        assert len(told[one.code]) >= min(rows.height, view.MOST_EVENTS) or one.code == "TV102"
    assert {"TV501", "TV401"} <= {code for code, flags in told.items() if flags}
    assert all((flag.start_ns, flag.end_ns, flag.device) in spans for flag in marked if flag.label.startswith("TV"))
    copies = [flag for flag in marked if flag.label.startswith("TV501")]
    assert 0 < len(copies) <= view.MOST_EVENTS


def test_a_finding_of_the_whole_recording_is_marked_nowhere(repository):
    trace = load(str(repository / "sample_traces" / "bad" / "cut-in-event.json"))
    about = [one for one in check(trace).findings if one.where == "the recording"]
    assert about
    assert view.flags(trace, None, check(trace).table, about) == []
