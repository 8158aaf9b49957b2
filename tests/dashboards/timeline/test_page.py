"""The page without a browser: the component itself does not run here, all that is told below it does."""

from __future__ import annotations

import pytest

from traceview.dashboards.timeline import detail


@pytest.mark.parametrize("name", ["cuda", "ranks", "nsys", "tpu", "cpu", "no-device", "cut"])
def test_every_kind_of_trace_is_shown(show, as_open, name):
    shown = show("timeline", as_open(name))
    assert "This could not be done" not in shown.words, shown.words
    assert any("Click an event" in one for one in shown.marked)
    assert shown.test.query_params["t0"] == "0"


def test_an_event_of_the_address_is_told_exactly(show, as_open, opened):
    events = opened("cuda").timeline.events
    kernel = events.filter(events["kind"] == "kernel").row(3, named=True)
    shown = show("timeline", as_open("cuda"), event=str(kernel["id"]))
    told = dict(shown.tables[0].itertuples(index=False))
    assert kernel["name"] in shown.texts
    assert told["start"] == f"{kernel['start_ns']:,} ns"
    assert told["duration"] == f"{kernel['dur_ns']:,} ns"
    assert told["launched by"].endswith(f"(event {kernel['launch_id']})")
    assert int(shown.test.query_params["t0"]) < kernel["start_ns"]
    again = shown.test.toggle(key="timeline-arguments").set_value(True).run()
    assert not again.exception
    assert "grid" in {row[0] for row in again.dataframe[1].value.itertuples(index=False)}


def test_an_area_of_the_address_is_told_in_numbers(show, as_open, opened):
    end = int((opened("cuda").timeline.events["start_ns"] + opened("cuda").timeline.events["dur_ns"]).max())
    shown = show("timeline", as_open("cuda"), t0="0", t1=str(end), a0="0", a1=str(end), lanes="p0d0s7")
    busy = opened("cuda").check.table.busy_ns
    assert busy > 0
    assert f"GPU 0 busy {busy / 1e6:.2f} ms" in shown.words
    assert [table.columns[0] for table in shown.tables] == ["name", "stage", "kind"]


def test_a_search_of_the_address_is_told(show, as_open):
    shown = show("timeline", as_open("cuda"), t0="0", t1="1000", q="SOFTMAX")
    assert "events with “SOFTMAX” in the name" in shown.words
    assert all("softmax" in name.lower() for name in shown.tables[0]["name"])
    assert show("timeline", as_open("cuda"), t0="0", t1="1000", q="no such").texts == [
        "No event has “no such” in its name."
    ]


@pytest.mark.parametrize(
    "query",
    [
        {"t0": "x", "t1": "1"},
        {"t0": "-5", "t1": "99999999999999999999999"},
        {"event": "999999999"},
        {"event": "-1", "t0": "5", "t1": "1"},
        {"t0": "0", "t1": "9", "a0": "9", "a1": "1", "lanes": "p0d0s7,,<b>"},
    ],
)
def test_an_address_that_makes_no_sense_is_no_error(show, as_open, query):
    assert "This could not be done" not in show("timeline", as_open("cuda"), **query).words


def test_more_events_than_a_browser_should_hold_are_merged(show, as_open, monkeypatch):
    monkeypatch.setattr(detail, "MOST_EVENTS", 100)
    shown = show("timeline", as_open("cuda"), t0="0", t1="1000000", q="softmax")
    assert "events with “softmax” in the name" in shown.words


def test_a_trace_without_events_says_so(show, opened):
    trace = opened("bad/only-metadata.json")
    assert trace.timeline.events.height == 0
    assert "The trace holds no event that could be drawn." in show("timeline", trace.id).words
