"""Chrome JSON: every event with its exact time, and the same answers when traceview reads it again."""

from __future__ import annotations

import io
import json
from decimal import Decimal

import polars as pl
import pytest

from authored_timeline import kernel, launch, op, timeline
from same_timeline import sample_inputs
from traceview import load
from traceview.exporting import chrome
from traceview.exporting.convert import convert
from traceview.exporting.marks import find_marks, no_marks
from traceview.gate import check

KINETO_SAMPLES = [path for path in sample_inputs() if ".json" in path.name]


def exported(whole):
    out = io.BytesIO()
    chrome.write(whole, find_marks(whole), out)
    return json.loads(out.getvalue(), parse_float=Decimal)


@pytest.mark.parametrize("path", sample_inputs(), ids=lambda path: path.name)
def test_every_event_with_its_exact_time(path):
    whole = load(path)
    events = [one for one in exported(whole)["traceEvents"] if one["ph"] in ("X", "i")]
    have = sorted((one["name"], int(one["ts"] * 1000), int(one.get("dur", 0) * 1000)) for one in events)
    want = whole.events.select(pl.col("name").cast(pl.String), "start_ns", "dur_ns")
    assert have == sorted(want.rows())


@pytest.mark.parametrize("path", KINETO_SAMPLES, ids=lambda path: path.name)
def test_read_again_it_gives_the_same_verdict(path, tmp_path):
    whole = load(path)
    convert(whole, tmp_path / "t.json.gz")
    again = load(tmp_path / "t.json.gz")
    for column in ("start_ns", "dur_ns", "kind", "name", "device", "stream", "correlation", "launch_id", "bytes"):
        assert again.events[column].equals(whole.events[column]), column
    assert again.devices.equals(whole.devices)
    assert [run.origin_unix_ns for run in again.runs] == [run.origin_unix_ns for run in whole.runs]
    one, other = check(whole), check(again)
    assert (one.verdict, one.summary) == (other.verdict, other.summary)


def test_what_is_written():
    whole = timeline(op('a"b', 0, 10, dims=[[2]]), launch(1, 7), kernel("k", 20, 30.001, 7), kernel("l", 25, 40, 8))
    out = io.BytesIO()
    assert chrome.write(whole, no_marks(whole), out) == 1
    document = json.loads(out.getvalue(), parse_float=str)
    events = {one["name"]: one for one in document["traceEvents"] if one["ph"] == "X"}
    assert events['a"b']["args"] == {"Input Dims": [[2]], "op": 'a"b'}
    assert (events["k"]["cat"], events["k"]["ts"], events["k"]["dur"]) == ("kernel", "20.000", "10.001")
    assert events["k"]["args"] == {"correlation": 7, "device": 0, "stream": 7, "op": 'a"b'}
    assert events["k"]["tid"] != events["l"]["tid"]
    arrows = [(one["ph"], one["id"], one["ts"]) for one in document["traceEvents"] if one["ph"] in "sf"]
    assert arrows == [("s", 2, "1.000"), ("f", 2, "20.000")]


def test_a_recorded_text_that_is_no_json_is_quoted():
    values = pl.Series(["NaN", "[1]", "{", '"x"'], dtype=pl.Categorical)
    assert chrome._texts(values).to_list() == ['"NaN"', "[1]", '"{"', '"x"']
