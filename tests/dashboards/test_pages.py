"""Every page for every kind of trace: no exception, the answer, and a reason where facts are missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from traceview.dashboards import state
from traceview.dashboards.shelf import Job, State
from traceview.report_parts import PartNote

PAGES = ["overview", "dispatch", "gaps", "recompiles"]
NAMES = ["cuda", "nsys", "tpu", "cpu", "no-device", "cut"]


@pytest.mark.parametrize("name", NAMES)
def test_every_page_shows_every_kind_of_trace(show, as_open, name):
    trace_id = as_open(name)
    for page in PAGES:
        shown = show(page, trace_id)
        assert "This could not be done" not in shown.words, shown.words
        assert shown.texts or shown.tables
        assert shown.test.query_params["trace"] == trace_id


@pytest.mark.parametrize(
    ("name", "headline", "verdict"),
    [
        ("cuda", "math", "**Failed**"),
        (
            "nsys",
            "6 SDPA calls fell back to math: 1.874 ms of device time on 2 devices together, 87.8 % of busy time.",
            "**Failed**",
        ),
        (
            "tpu",
            "8 attention calls of XLA ran unfused: 2.400 ms of device time on 2 devices together, 56.6 % of busy time.",
            "**Failed**",
        ),
    ],
)
def test_the_first_thing_said_is_the_answer_and_then_what_to_do(show, as_open, name, headline, verdict):
    shown = show("overview", as_open(name))
    assert headline in shown.texts[0]
    assert shown.texts[1].startswith("What to do: ")
    assert any(verdict in one for one in shown.marked)


def test_the_overview_of_a_tpu_shows_waiting_beside_work(show, as_open):
    shown = show("overview", as_open("tpu"))
    stages = next(frame for frame in shown.tables if "waits or idle ms" in frame.columns)
    assert dict(zip(stages["stage"], stages["waits or idle ms"], strict=True))["mlp"] == pytest.approx(1.2)
    assert ("Device waits", "16.7 %") in [(one.label, one.value) for one in shown.test.metric]


def test_one_step_can_be_looked_at_alone(show, as_open):
    shown = show("overview", as_open("tpu"))
    box = shown.test.selectbox(key="step")
    assert len(box.options) == 5
    box.select_index(2).run()
    assert not shown.test.exception
    # The browser writes the choice into the address; a page with that address has it again.
    assert show("overview", as_open("tpu"), step=box.options[2]).test.selectbox(key="step").index == 2
    assert show("overview", as_open("tpu"), step="no such step").test.selectbox(key="step").index == 0


def test_parts_without_facts_say_why(show, as_open):
    assert "No device work is recorded" in show("gaps", as_open("cpu")).words
    nothing = show("overview", as_open("no-device")).words
    assert "not recorded" in nothing
    assert "The trace has no device work" in nothing
    assert "not recorded" in show("dispatch", as_open("bad/only-metadata.json")).words


def test_copies_and_compilations_that_a_trace_would_not_show_are_not_called_none(show, as_open, monkeypatch):
    trace = state.shelf().get(as_open("no-device")).opened
    notes = (PartNote("transfers", "Neither device work nor ops are recorded."),)
    hidden = replace(
        trace.report,
        transfers=replace(trace.report.transfers, transfers=None, notes=notes),
        recompiles=replace(trace.report.recompiles, recompiles=None, notes=()),
    )
    monkeypatch.setattr(trace, "report", hidden)
    words = show("recompiles", trace.id).words
    assert "Compilations: not recorded" in words
    assert "Copies: not recorded" in words
    assert "Neither device work nor ops are recorded." in words


def test_a_cut_file_says_what_was_still_read(show, as_open):
    words = show("overview", as_open("cut")).words
    assert "8 events, the file is cut off" in words
    assert "Limits the trust: The file ends before its own end: what follows the cut is missing." in words
    assert "1 piece of the file could not be used" in words


def test_the_slow_row_is_explained_before_anybody_asks(show, as_open):
    shown = show("dispatch", as_open("cuda"))
    assert any(text.startswith("Change: ") for text in shown.texts)
    assert any("refused" in one for one in shown.marked)
    assert any("[[expect]]" in one.value for one in shown.test.code)


def test_a_row_of_the_address_is_the_chosen_one(show, as_open):
    shown = show("dispatch", as_open("nsys"), row="1")
    assert shown.test.query_params["row"] == "1"
    assert any(text.startswith("attention: flash-2") for text in shown.texts)


@pytest.mark.parametrize("row", ["99999", "x"])
def test_a_row_that_is_not_there_does_no_harm(show, as_open, row):
    assert any("Change: " in text for text in show("dispatch", as_open("cuda"), row=row).texts)


def test_every_form_of_the_check_can_be_taken_away(show, as_open):
    shown = show("dispatch", as_open("cuda"))
    labels = [one.label for one in shown.test.get("download_button")]
    assert labels[-5:] == ["text", "json", "markdown", "sarif", "junit"]


def test_slow_paths_need_a_reason_to_be_accepted(show, as_open):
    shown = show("dispatch", as_open("cuda"))
    assert any("this trace is no good example" in text for text in shown.texts)
    shown.test.text_input(key="reason").input("known, see the plan").run()
    assert any(text.startswith("It states ") for text in shown.texts)
    assert any('reason = "known, see the plan"' in one.value for one in shown.test.code)


def test_a_rule_of_the_address_is_shown(show):
    assert "TV102 attention-math" in show("rules", rule="tv102").words
    assert "Choose a rule" in show("rules", rule="nothing").words


def test_terms_can_be_searched(show):
    shown = show("rules")
    shown.test.text_input(key="term").input("garbage").run()
    assert shown.tables[-1]["term"].tolist() == ["garbage-collection"]


@pytest.mark.parametrize("page", ["overview", "gaps"])
def test_without_a_trace_a_page_says_so(show, page):
    assert "No trace is open." in show(page).words


def test_a_link_to_a_trace_that_the_server_does_not_have_says_so(show):
    assert "This server does not have the trace of this link" in show("overview", "0" * 16).words


def test_a_trace_that_is_being_read_shows_how_far_it_is(show, monkeypatch):
    monkeypatch.setattr(state, "WAIT_S", 0.0)
    job = Job("f" * 16, "<b>large</b>.json", ("x",), phase="Reading", share=0.25)
    monkeypatch.setattr(state.shelf(), "get", lambda trace_id: job)
    shown = show("overview", job.id)
    assert "<b>large</b>.json" in shown.texts
    assert [one.label for one in shown.test.button] == ["Stop reading"]
    job.state, job.error = State.FAILED, ("x.json: this is no trace.",)
    job.done.set()
    assert "x.json: this is no trace." in show("overview", job.id).texts
    job.state = State.LEFT
    assert "Reading this trace was stopped." in show("overview", job.id).words


def test_where_the_time_went_is_shown_while_what_ran_is_judged(show, opened, monkeypatch):
    monkeypatch.setattr(state, "WAIT_S", 0.0)
    trace = opened("cuda")
    job = Job(trace.id, trace.title, ("x",), phase="Judging what ran", share=1.0, report=trace.report)
    monkeypatch.setattr(state.shelf(), "get", lambda trace_id: job)
    shown = show("overview", job.id)
    # Where the answer will stand, and not below how far the judging is.
    assert shown.texts[0].startswith("A step takes 10.22 ms")
    assert [text for text in shown.marked if "Judging what ran" in text] == [
        ":material/hourglass_top: Judging what ran …"
    ]
    assert any(text.startswith("At most ") for text in shown.texts)
    assert "**Failed**" not in shown.words
    assert [one.label for one in shown.test.button] == ["Stop reading"]
    assert "A step takes" not in show("dispatch", job.id).words


def test_a_defect_of_a_page_is_one_line(show, as_open, monkeypatch):
    from traceview.dashboards.pages import gaps

    def fail(result):
        raise KeyError("defect\nsecond line")

    monkeypatch.setattr(gaps, "gap_sentence", fail)
    words = show("gaps", as_open("cuda")).words
    assert "defect in traceview (KeyError: 'defect\\nsecond line')" in words
    assert "Traceback" not in words
