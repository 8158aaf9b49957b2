"""The document that a capture leaves: read without trust, picked up by the loader, shown as conditions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import sample_traces
from traceview import load
from traceview.capture_info import MOST_BYTES, SUFFIX, CaptureInfo, agreed, read_document, read_text
from traceview.errors import UnreadableTraceError
from traceview.render.capture_words import capture_facts
from traceview.report_parts import describe

INFO = CaptureInfo(
    session="0123456789abcdef",
    framework="jax",
    versions={"jax": "0.10.2"},
    gpus=("NVIDIA H100",),
    settings={"sdpa.flash": True, "sdpa.math": False, "deterministic": True, "sdpa.priority": ("flash", "math")},
    changed=("sdpa.math",),
    contract={"model": "dit", "batch": 8},
    warmup_calls=4,
    steady=True,
    steps=3,
)


def test_what_is_written_is_read_back():
    assert read_text(json.dumps(INFO.document()).encode()).info == INFO
    assert read_document(CaptureInfo().document()) == read_document(json.loads(json.dumps(CaptureInfo().document())))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"{", "it is not valid JSON"),
        (b"[" * 200_000, "it is not valid JSON"),
        (b'"\xff"', "it is not valid JSON"),
        (b" " * (MOST_BYTES + 1), "it is larger than 256 KiB"),
        (b"[]", "it is no JSON object"),
        (b"{}", "it is without a schema, this version reads traceview.capture/1"),
        (
            b'{"schema": "traceview.capture/9"}',
            "it is of schema 'traceview.capture/9', this version reads traceview.capture/1",
        ),
    ],
)
def test_what_is_no_document_says_so_in_one_sentence(data, problem):
    assert (read_text(data).info, read_text(data).problem) == (None, problem)


@pytest.mark.parametrize(
    ("key", "value", "left"),
    [
        ("session", "../../etc", None),
        ("framework", "x" * 99, None),
        ("versions", ["torch"], {}),
        ("versions", {"torch": {"deep": 1}, "jax": "1.0"}, {"jax": "1.0"}),
        ("settings", {"a": [[[1]]], "b c": True, "\x1b[31m": 1}, {"b c": True}),
        ("settings", {"x": float("nan"), "y": 10**40}, {}),
        ("contract", {f"n{at}": at for at in range(99)}, {f"n{at}": at for at in range(64)}),
        ("contract", {"long": "x" * 999}, {}),
        ("gpus", ["ok", 3], ("ok",)),
        ("steps", -1, None),
        ("steps", True, None),
    ],
)
def test_a_wrong_part_is_left_out_and_named(key, value, left):
    read = read_document({**INFO.document(), key: value})
    assert getattr(read.info, key) == left
    assert read.problem == f"parts that cannot be used were left out ({key})"
    assert read.info.warmup_calls == 4


def test_files_of_one_run_keep_what_they_agree_on():
    other = read_document({**INFO.document(), "session": "ffffffffffffffff", "settings": {"sdpa.flash": True}}).info
    both = agreed((INFO, other))
    assert (both.session, dict(both.settings), dict(both.versions)) == (None, {"sdpa.flash": True}, {"jax": "0.10.2"})
    assert agreed((INFO, None)) is None
    assert agreed(()) is None


@pytest.fixture
def trace(tmp_path):
    """A trace that no capture made."""
    return shutil.copy(Path(sample_traces.__file__).parent / "torch-cpu-attention.json", tmp_path / "trace.json")


def sidecar(trace, data):
    path = trace.with_name(trace.name + SUFFIX)
    path.write_bytes(data)
    return path


def test_a_sidecar_is_read_with_its_trace(trace):
    assert load(trace).runs[0].capture is None
    sidecar(trace, json.dumps(INFO.document()).encode())
    timeline = load(trace)
    assert timeline.runs[0].capture == INFO
    assert describe(timeline).capture == INFO
    assert [note for note in timeline.report.notes if note.kind == "capture-unreadable"] == []


@pytest.mark.parametrize("data", [b"{", b"\x00" * 9, b"[]", b"x" * (MOST_BYTES + 9)])
def test_a_broken_sidecar_is_one_note_and_no_failure(trace, data):
    sidecar(trace, data)
    (note,) = [note for note in load(trace, strict=True).report.notes if note.kind == "capture-unreadable"]
    assert note.text.startswith("trace.json.traceview.json beside the trace: it is ")
    assert note.trust == "good"


def test_a_sidecar_that_is_a_folder_is_one_note(trace):
    trace.with_name(trace.name + SUFFIX).mkdir()
    (note,) = [note for note in load(trace).report.notes if note.kind == "capture-unreadable"]
    assert note.text == "trace.json.traceview.json beside the trace: it is no regular file."


def test_a_sidecar_is_no_stranger_in_a_folder_of_traces(trace):
    sidecar(trace, json.dumps(INFO.document()).encode())
    for given in (trace.parent, str(trace.parent / "*")):
        timeline = load(given)
        assert timeline.runs[0].capture == INFO
        assert [note.kind for note in timeline.report.notes if note.kind == "files-skipped"] == []


def test_a_sidecar_given_as_a_trace_says_what_it_is(trace):
    path = sidecar(trace, json.dumps(INFO.document()).encode())
    with pytest.raises(
        UnreadableTraceError, match=r"what traceview.capture wrote beside a trace.* give the trace beside"
    ):
        load(path)


def test_what_stands_in_the_trace_outweighs_a_sidecar_of_another_recording(trace):
    content = json.loads(trace.read_text())
    inside = {**INFO.document(), "session": "aaaaaaaaaaaa", "framework": "torch"}
    trace.write_text(json.dumps({"traceview": inside, **content}))
    sidecar(trace, json.dumps(INFO.document()).encode())
    timeline = load(trace)
    assert timeline.runs[0].capture.framework == "torch"
    (note,) = [note.text for note in timeline.report.notes if note.kind == "capture-unreadable"]
    assert (
        note == "trace.json.traceview.json is of another recording than the trace, which holds its own: it is not used."
    )


def test_a_broken_document_in_a_trace_is_one_note(trace):
    content = json.loads(trace.read_text())
    trace.write_text(json.dumps({"traceview": {"schema": "other"}, **content}))
    timeline = load(trace)
    assert timeline.runs[0].capture is None
    (note,) = [note.text for note in timeline.report.notes if note.kind == "capture-unreadable"]
    assert note.startswith("What traceview.capture wrote into the trace: it is of schema 'other', this version reads")


def test_the_conditions_in_words():
    assert capture_facts(INFO) == [
        ("captured", "jax 0.10.2; 4 warm-up calls, steady, 3 steps"),
        ("settings", "attention flash on; attention math changed while recording; deterministic on"),
        ("contract", "model dit, batch 8"),
    ]
    assert capture_facts(CaptureInfo()) == []
