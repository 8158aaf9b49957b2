"""Findings by what a fix can win: costs of unlike kinds are set against the time that they are a part of."""

from __future__ import annotations

import io
from dataclasses import fields, replace

import pytest

from authored_timeline import host, kernel, launch, op, timeline
from traceview import load, top_findings
from traceview.dispatch import dispatch_table
from traceview.findings import Confidence, CostOf, Finding, Severity, Window
from traceview.gate import check
from traceview.render.findings_text import write_findings
from traceview.render.page import Page
from traceview.report import report
from traceview.rules.base import Facts
from traceview.timeline import ImportReport, Note, Trust


def finding(code, cost_us, cost_of=CostOf.DEVICE, *, severity=Severity.WARNING, window=Window.TRACE):
    return Finding(
        code=code,
        severity=severity,
        title=f"{code} was found",
        where="model.py(7): forward",
        evidence=("1 of 2",),
        cost_ns=None if cost_us is None else cost_us * 1000,
        confidence=Confidence.MEASURED,
        fix="Mend it.",
        false_alarm_if="it is meant",
        cost_of=cost_of,
        window=window,
    )


@pytest.fixture
def ranked(monkeypatch):
    """Ranks given findings on a trace as if the rules had found them."""

    def rank(trace, *findings):
        monkeypatch.setattr(top_findings, "all_findings", lambda _facts: iter(findings))
        return top_findings.top_findings(Facts(trace, dispatch_table(trace)))

    return rank


ONE_DEVICE = (
    op("aten::mm", 0, 100),
    launch(1, 1),
    kernel("a", 10, 40, 1),
    launch(70, 2),
    kernel("b", 90, 110, 2),
)
"""Device: 10 to 110, idle from 40 to 90. Host: 0 to 100."""


def test_shares_are_of_the_time_of_the_devices(ranked):
    idle, device = ranked(
        timeline(*ONE_DEVICE), finding("TV101", 20), finding("TV404", 50, CostOf.IDLE, severity=Severity.INFO)
    )
    assert (idle.code, idle.share, idle.won_ns) == ("TV404", 0.5, 50_000)
    assert (device.code, device.share, device.won_ns) == ("TV101", 0.2, 20_000)


def test_a_faster_host_wins_no_more_than_the_devices_stood_idle(ranked):
    (one,) = ranked(timeline(*ONE_DEVICE), finding("TV301", 80, CostOf.HOST))
    assert (one.cost_ns, one.share, one.won_ns) == (80_000, 0.5, 50_000)


@pytest.mark.parametrize(("owners", "share"), [((0, 0), 0.5), ((0, 1), 0.25)])
def test_every_device_of_a_process_waits_for_its_host(ranked, owners, share):
    """20 us of one host hold up both of its devices, or the one that it has; a helper process changes nothing."""
    events = [op("helper", 0, 10, process=7, thread=9)]
    for device, process in enumerate(owners):
        more = {"process": process, "thread": process}
        events += [launch(0, device + 1, **more), kernel("a", 0, 10, device + 1, device=device, process=process)]
        events += [launch(29, device + 5, **more), kernel("b", 30, 40, device + 5, device=device, process=process)]
    (one,) = ranked(timeline(*events), finding("TV301", 20, CostOf.HOST))
    assert one.share == share


def test_without_devices_the_time_of_the_host_is_the_whole(ranked):
    (one,) = ranked(timeline(op("aten::mm", 0, 100)), finding("TV301", 80, CostOf.HOST))
    assert (one.share, one.won_ns) == (0.8, 80_000)


def test_no_share_is_above_one(ranked):
    (one,) = ranked(timeline(*ONE_DEVICE), finding("TV302", 900, CostOf.WALL))
    assert (one.share, one.won_ns) == (1.0, 100_000)


def test_costs_of_several_devices_are_set_against_the_time_of_all(ranked):
    trace = timeline(kernel("a", 0, 100), kernel("b", 0, 100, device=1))
    (one,) = ranked(trace, finding("TV110", 150))
    assert (one.share, one.won_ns) == (0.75, 75_000)


def test_what_was_added_up_over_steps_is_set_against_them(ranked):
    steps = [host("annotation", f"ProfilerStep#{n}", n * 100, n * 100 + 100) for n in range(5)]
    work = [event for n in range(5) for event in (launch(n * 100 + 5, n), kernel("a", n * 100 + 10, n * 100 + 30, n))]
    (one,) = ranked(timeline(*steps, *work), finding("TV306", 40, CostOf.HOST, window=Window.STEPS))
    assert one.share == pytest.approx(40 / 400)


def test_what_cannot_be_told_comes_last(ranked):
    codes = [
        one.code
        for one in ranked(
            timeline(*ONE_DEVICE),
            finding("TV902", None),
            finding("TV103", None, severity=Severity.ERROR),
            finding("TV110", 1, severity=Severity.INFO),
        )
    ]
    assert codes == ["TV110", "TV103", "TV902"]


def test_the_import_limits_the_findings_that_rest_on_what_was_lost(ranked):
    lost = Note("launch-without-work", "9 of 10 launches have no device event.", Trust.POOR)
    trace = replace(timeline(*ONE_DEVICE), report=ImportReport(notes=(lost,)))
    found = ranked(
        trace,
        finding("TV101", 20),
        finding("TV301", 10, CostOf.HOST),
        finding("TV404", 5, CostOf.IDLE),
        finding("TV901", None),
    )
    trust = {one.code: (one.trust, len(one.limited_by)) for one in found}
    assert trust == {"TV101": ("poor", 1), "TV301": ("good", 0), "TV404": ("poor", 1), "TV901": ("good", 0)}


def test_idle_time_after_silent_graph_replays_is_not_trusted(ranked):
    replays = [launch(n * 10, 50 + n, name="cudaGraphLaunch") for n in range(1, 5)]
    trace = timeline(op("aten::mm", 0, 200), *replays, launch(60, 1), kernel("a", 70, 80, 1), launch(150, 2), kernel("b", 160, 170, 2))  # fmt: skip
    (one,) = ranked(trace, finding("TV404", 50, CostOf.IDLE))
    assert one.trust == "limited"
    assert one.limited_by[0].startswith("Idle time is not reliable: ")


def test_text_names_the_first_and_says_how_many_more(monkeypatch):
    trace = timeline(*ONE_DEVICE)
    given = [finding("TV110", 10 - n) for n in range(6)]
    monkeypatch.setattr(top_findings, "all_findings", lambda _facts: iter(given))
    out = io.StringIO()
    write_findings(Page(out), report(trace))
    lines = out.getvalue().splitlines()
    assert lines[:7] == [
        "",
        "Top 5 of 6 findings",
        "  - TV110 warning: TV110 was found",
        "  to win    at most 10.0 % of the span from first to last work (10.00 us of device time)",
        "  where     model.py(7): forward",
        "  evidence  1 of 2",
        "  fix       Mend it.",
    ]
    assert lines[-3:] == [
        "  to win: the most that this fix alone can save. Findings explain the same time more than once, so",
        "  these figures do not add up. 1 more finding: --format json lists all. traceview rule TV110",
        "  explains a rule.",
    ]


def test_text_says_that_nothing_was_found():
    out = io.StringIO()
    write_findings(Page(out), report(timeline(launch(0, 1), kernel("a", 2, 10, 1))))
    assert out.getvalue().splitlines() == ["", "Findings", "  No rule found anything in this trace."]


def test_report_and_check_find_the_same(repository):
    paths = sorted((repository / "sample_traces").glob("*.cuda-authored.json*"))
    assert len(paths) > 3
    names = [one.name for one in fields(Finding)]
    told = 0
    for path in paths:
        trace = load(path)
        both = [report(trace).findings, check(trace).findings]
        listed = [sorted((tuple(getattr(one, name) for name in names) for one in found), key=str) for found in both]
        assert listed[0] == listed[1], path.name
        told += len(listed[0])
    assert told > 3
