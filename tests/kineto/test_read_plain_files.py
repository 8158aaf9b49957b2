"""What a sound file turns into, with either reader."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from same_trace import with_labels
from traceview.errors import UnreadableTraceError
from traceview.parsers.kineto.raw import EVENT_COLUMNS
from traceview.parsers.kineto.reader import read, read_reference

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

READERS = pytest.mark.parametrize("reader", [read, read_reference])

KERNEL = """{
    "ph": "X", "cat": "kernel", "name": "void f<4>(float*)::{lambda()#1}", "pid": 0, "tid": "stream 7",
    "ts": 1712195495519689.047, "dur": 5.5,
    "args": {
      "External id": 17, "stream": 7, "correlation": 18446744073709551616,
      "grid": [1, 2, 3], "est. achieved occupancy %": 0.5, "queued": "12"
    }
  }"""


def file_of(folder: Path, text: str) -> Path:
    path = folder / "trace.json"
    path.write_text(text, encoding="utf-8")
    return path


@READERS
def test_kernel_event(reader: Callable[..., Any], tmp_path: Path) -> None:
    trace = reader(file_of(tmp_path, f'{{"traceEvents": [{KERNEL}], "displayTimeUnit": "ms"}}'))
    assert list(trace.events.frame().schema.items()) == list(EVENT_COLUMNS.items())
    assert trace.events.frame().row(0) == (
        "X", "kernel", "void f<4>(float*)::{lambda()#1}",
        0, -(1 << 62), 1712195495519689047, 5500, None,
    )  # fmt: skip
    assert trace.labels == ("stream 7",)
    assert {name: frame.rows() for name, frame in trace.int_args.items()} == {
        "External id": [(0, 17)],
        "stream": [(0, 7)],
        "queued": [(0, 12)],
    }
    assert {name: frame.cast({"value": pl.String}).rows() for name, frame in trace.text_args.items()} == {
        "correlation": [(0, "18446744073709551616")],
        "grid": [(0, "[1, 2, 3]")],
        "est. achieved occupancy %": [(0, "0.5")],
    }
    assert trace.head == {"displayTimeUnit": "ms"}
    assert not trace.counts
    assert not trace.truncated


@READERS
@pytest.mark.parametrize(
    ("written", "ns"),
    [
        ("0", 0),
        ("5", 5000),
        ("0.001", 1),
        ("1.5", 1500),
        ("100.7", 100700),
        ("0.0005", 1),
        ("0.00049999999999999999", 0),
        ("-0.0005", -1),
        ("-1.25", -1250),
        ("1.0005", 1001),
        ("1.23456", 1235),
        ("1e3", 1_000_000),
        ("1.5E-3", 2),
        ("9007199254740993.001", 9007199254740993001),
        ("9223372036854775.807", 9223372036854775807),
        ("9000000000000000", 9_000_000_000_000_000_000),
        ("0.1234567", 123),
        ("0.12345678", 123),
        ("-0", 0),
    ],
)
def test_times_are_exact(reader: Callable[..., Any], tmp_path: Path, written: str, ns: int) -> None:
    trace = reader(file_of(tmp_path, f'{{"traceEvents": [{{"ph": "X", "ts": {written}, "dur": {written}}}]}}'))
    assert trace.events["ts_ns"].to_list() == [ns]
    assert trace.events["dur_ns"].to_list() == [ns]


@READERS
def test_what_may_be_missing_is_null(reader: Callable[..., Any], tmp_path: Path) -> None:
    trace = reader(file_of(tmp_path, '{"traceEvents": [{"ph": "i", "ts": 1}, {"ph": "M", "name": "n"}, {}]}'))
    assert trace.events.frame().rows() == [
        ("i", None, None, None, None, 1000, None, None),
        ("M", None, "n", None, None, None, None, None),
    ]
    assert not trace.counts


@READERS
def test_repeated_keys_the_last_one_wins(reader: Callable[..., Any], tmp_path: Path) -> None:
    event = '{"ph": "X", "ts": 1, "ts": 2, "args": {"device": 1, "device": 2, "x": "a", "x": "b"}}'
    trace = reader(file_of(tmp_path, f'{{"traceEvents": [{event}]}}'))
    assert trace.events["ts_ns"].to_list() == [2000]
    assert trace.int_args["device"].rows() == [(0, 2)]
    assert trace.text_args["x"]["value"].to_list() == ['"b"']


@READERS
def test_identities(reader: Callable[..., Any], tmp_path: Path) -> None:
    events = [
        {"ph": "X", "ts": 1, "pid": "25738", "tid": "stream 7", "id": "0x1f"},
        {"ph": "X", "ts": 1, "pid": "", "tid": 18446744073709551615, "id": 1.5},
        {"ph": "X", "ts": 1, "pid": None, "tid": "007", "id": -5},
        {"ph": "X", "ts": 1, "pid": 9223372036854775807, "tid": True, "id": 'a"b'},
        {"ph": "X", "ts": 1, "pid": "1234567890123456789", "tid": -9223372036854775808, "id": "stream 7"},
    ]
    trace = reader(file_of(tmp_path, json.dumps({"traceEvents": events})))
    assert with_labels(trace, "pid") == [25738, "", None, 9223372036854775807, 1234567890123456789]
    assert with_labels(trace, "tid") == ["stream 7", "18446744073709551615", "007", "true", "-9223372036854775808"]
    assert with_labels(trace, "flow_id") == ["0x1f", "1.5", -5, 'a"b', "stream 7"]


@READERS
def test_other_keys_of_an_event_are_kept_like_arguments(reader: Callable[..., Any], tmp_path: Path) -> None:
    event = (
        '{"ph": "s", "ts": 1, "bp": "e", "sf": 7, "device": 3, "x": 1, "o": {"ph": "M"}, "args": {"x": 2, "name": 5}}'
    )
    trace = reader(file_of(tmp_path, f'{{"traceEvents": [{event}]}}'))
    assert {name: frame["value"].to_list() for name, frame in trace.text_args.items()} == {
        "bp": ['"e"'], "sf": ["7"], "o": ['{"ph": "M"}'], "event:x": ["1"], "x": ["2"], "name": ["5"],
    }  # fmt: skip
    assert trace.int_args["device"].rows() == [(0, 3)]


@READERS
@pytest.mark.parametrize(
    "text",
    [
        '{"schemaVersion": 1, "traceEvents": [%s], "traceName": "t"}',
        '\ufeff{"schemaVersion": 1, "traceEvents" : [ %s ] , "traceName": "t"}\n\n',
        '\n\n{"schemaVersion": 1,\n"traceName": "t",\n"traceEvents":\n[\n%s\n]}',
        '{"traceEvents": [%s], "schemaVersion": 1, "traceName": "t"}',
    ],
)
def test_places_of_metadata(reader: Callable[..., Any], tmp_path: Path, text: str) -> None:
    trace = reader(file_of(tmp_path, text % f"{KERNEL},\n  {KERNEL}"))
    assert trace.events.height == 2
    assert trace.head == {"schemaVersion": 1, "traceName": "t"}
    assert not trace.counts
    assert not trace.truncated


@READERS
def test_list_as_document(reader: Callable[..., Any], tmp_path: Path) -> None:
    trace = reader(file_of(tmp_path, f"[{KERNEL}, {KERNEL}]"))
    assert (trace.events.height, trace.head, trace.truncated) == (2, {}, False)


@READERS
@pytest.mark.parametrize("text", ['{"traceEvents": []}', '{"distributedInfo": {"rank": 3}}'])
def test_no_events_at_all(reader: Callable[..., Any], tmp_path: Path, text: str) -> None:
    trace = reader(file_of(tmp_path, text))
    assert trace.events.height == 0
    assert list(trace.events.frame().schema.items()) == list(EVENT_COLUMNS.items())
    assert not trace.truncated


@READERS
@pytest.mark.parametrize(
    "text", ["", "  \n", "hello", '{"schema": "1.0.1", "nodes": []}', '{"traceEvents": 5', "\x00" * 50]
)
def test_no_trace(reader: Callable[..., Any], tmp_path: Path, text: str) -> None:
    if text.startswith('{"traceEvents"'):
        assert reader(file_of(tmp_path, text)).events.height == 0
        return
    with pytest.raises(UnreadableTraceError) as caught:
        reader(file_of(tmp_path, text))
    assert caught.value.code == "no-trace-events"


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableTraceError, match="No such file"):
        read(tmp_path / "absent.json")


@READERS
def test_gzip_of_several_members(reader: Callable[..., Any], tmp_path: Path) -> None:
    text = f'{{"traceEvents": [{KERNEL}, {KERNEL}]}}'.encode()
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(text[:100]) + gzip.compress(text[100:]))
    assert reader(path).events.height == 2
    assert not reader(path).truncated


def test_progress_ends_at_one(tmp_path: Path) -> None:
    path = file_of(tmp_path, json.dumps({"traceEvents": [{"ph": "X", "ts": k} for k in range(2000)]}))
    seen: list[float] = []
    read(path, progress=seen.append, block_bytes=4096)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
