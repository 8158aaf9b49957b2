"""Files that are no JSON: everything whole is read, everything else is counted, by either reader."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from same_trace import assert_same
from traceview import load
from traceview.parsers.kineto.reader import read, read_reference

if TYPE_CHECKING:
    from pathlib import Path

GOOD = (
    '{"ph": "X", "cat": "cpu_op", "name": "good", "pid": 1, "tid": 2, "ts": 10, "dur": 5, "args": {"External id": 7}}'
)


def event(name: str = '"bad"', ts: str = "20", dur: str = "1", args: str = "") -> str:
    return (
        f'{{"ph": "X", "cat": "python_function", "name": {name}, "pid": 1, "tid": 2, "ts": {ts}, "dur": {dur}, '
        f'"args": {{{args}}}}}'
    )


def read_both(folder: Path, data: str | bytes) -> Any:
    path = folder / "trace.json"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    fast, plain = read(path), read_reference(path)
    assert_same(fast, plain)
    return fast


def names(trace: Any) -> list[str]:
    return trace.events["name"].cast(pl.String).to_list()


def counts(trace: Any) -> dict[str, int]:
    return {kind: count.n for kind, count in trace.counts.items()}


@pytest.mark.parametrize(
    ("written", "name", "kind"),
    [
        (
            r'"torch\cuda\__init__.py(219): _lazy_init"',
            r"torch\cuda\__init__.py(219): _lazy_init",
            "repaired-backslash",
        ),
        (r'"torch\nn\functional.py(8): relu"', r"torch\nn\functional.py(8): relu", "repaired-backslash"),
        (r'"torch\utils\backend.py(8): f"', r"torch\utils\backend.py(8): f", "repaired-backslash"),
        (r'"C:\\torch\\nn\\x.py(8): f"', r"C:\torch\nn\x.py(8): f", None),
        (r'"two\nlines \"q\" \u00e9 \ud83d\ude00"', 'two\nlines "q" \u00e9 \U0001f600', None),
        (r'"half \ud83d"', "half \ufffd", "repaired-surrogate"),
        (r'"C:\temp\"', "C:\\temp\\", "repaired-backslash"),
        (
            '"{"device": "cpu", "dtype": "float32"}(12): run"',
            '{"device": "cpu", "dtype": "float32"}(12): run',
            "repaired-quote",
        ),
        ('"a "b" c"', 'a "b" c', "repaired-quote"),
        ('"a\tb\nc\x01"', "a\tb\nc\x01", None),
        ('"}, {"', "}, {", None),
        ('"a], [b}"', "a], [b}", None),
    ],
)
def test_names(tmp_path: Path, written: str, name: str, kind: str | None) -> None:
    trace = read_both(tmp_path, f'{{"traceEvents": [{GOOD}, {event(written)}, {GOOD}]}}')
    assert names(trace) == ["good", name, "good"]
    assert counts(trace) == ({kind: 1} if kind else {})


@pytest.mark.parametrize(
    ("argument", "text", "kind"),
    [
        ('"bw": inf', "null", "repaired-word"),
        ('"bw": -inf', "null", "repaired-word"),
        ('"bw": nan', "null", "repaired-word"),
        ('"bw": NaN', "null", "repaired-word"),
        ('"bw": Infinity', "null", "repaired-word"),
        ('"bw": N/A', "null", "repaired-word"),
        ('"bw": ', "null", "repaired-word"),
        ('"bw": [1, nan, "a", N/A]', '[1,null,"a",null]', "repaired-word"),
        ('"bw": [1, 2,]', "[1,2]", "repaired-comma"),
        ('"bw": 1,', "1", "repaired-comma"),
        ('"bw": 1,, "c": 2', "1", "repaired-comma"),
        ('"bw": 1 "c": 2', "1", "repaired-comma"),
        ('"bw": 007', "7", "repaired-number"),
        ('"bw": 0.-01', "null", "repaired-number"),
        (r'"bw": "C:\x"', r'"C:\\x"', "repaired-backslash"),
        (r'"bw": "a\"b"', r'"a\"b"', None),
        ('"bw": 123456789012345678901234567890', "123456789012345678901234567890", None),
        ('"bw": -1.5e-300', "-1.5e-300", None),
        (
            '"bw": {"a": [{"ph": "X", "ts": 1}, {"ph": "X", "ts": 2}]}',
            '{"a": [{"ph": "X", "ts": 1}, {"ph": "X", "ts": 2}]}',
            None,
        ),
    ],
)
def test_arguments(tmp_path: Path, argument: str, text: str, kind: str | None) -> None:
    trace = read_both(tmp_path, f'{{"traceEvents": [{GOOD}, {event(args=argument)}, {GOOD}]}}')
    assert trace.text_args["bw"].cast({"value": pl.String}).rows() == [(1, text)]
    expected = 2 if argument.count("nan") and "N/A" in argument else 1
    assert counts(trace) == ({kind: expected} if kind else {})


@pytest.mark.parametrize(
    ("ts", "ns", "kind"),
    [
        ('"1747133612345678.901"', 1747133612345678901, "repaired-time-in-quotes"),
        ("0.-01", -1, "repaired-number"),
        ("-3.-450", -3450, "repaired-number"),
        ("+5", 5000, "repaired-number"),
        ("5.", 5000, "repaired-number"),
    ],
)
def test_times(tmp_path: Path, ts: str, ns: int, kind: str) -> None:
    trace = read_both(tmp_path, f'{{"traceEvents": [{GOOD}, {event(ts=ts)}, {GOOD}]}}')
    assert trace.events["ts_ns"].to_list() == [10_000, ns, 10_000]
    assert counts(trace) == {kind: 1}


@pytest.mark.parametrize("ts", ["null", "true", '"soon"', "1e300", "99999999999999999999", "[1]", "{}"])
def test_event_without_a_time_is_lost_and_counted(tmp_path: Path, ts: str) -> None:
    trace = read_both(tmp_path, f'{{"traceEvents": [{GOOD}, {event(ts=ts)}, {GOOD}]}}')
    assert names(trace) == ["good", "good"]
    assert counts(trace) == {"lost-time": 1}


def test_event_without_a_sound_duration_is_kept(tmp_path: Path) -> None:
    trace = read_both(tmp_path, f'{{"traceEvents": [{event(dur=chr(34) + "long" + chr(34))}, {event(dur="null")}]}}')
    assert trace.events["dur_ns"].to_list() == [None, None]
    assert counts(trace) == {"lost-duration": 1}


@pytest.mark.parametrize(
    ("events", "kept", "kinds"),
    [
        (f"{GOOD}, {GOOD},", 2, {"repaired-comma": 1}),
        (f"{GOOD},, {GOOD}", 2, {"repaired-comma": 1}),
        (f", {GOOD}", 1, {"repaired-comma": 1}),
        (f"{GOOD} {GOOD}", 2, {"repaired-comma": 1}),
        (f"{GOOD}, null, {GOOD}", 2, {"lost-text": 1}),
        (f"{GOOD}, xx, yy {GOOD}", 2, {"lost-text": 1}),
        (f'{GOOD}, {{"name": "no phase", "ts": 1}}, {GOOD}', 2, {"lost-event": 1}),
        (f'{GOOD}, {{"ph": "X", "name": "cut of, {GOOD}, {GOOD}', 3, {"lost-event": 1}),
        (f'{GOOD}, {{"ph": "X", "args": {{"a": [1, 2, {GOOD}, {GOOD}', 3, {"lost-event": 1}),
        (f'{GOOD}, "External id": 5}}}}, {GOOD}, {GOOD}', 3, {"lost-text": 1}),
        (f"{GOOD}, {GOOD[:-2]}, {GOOD}", 2, {"lost-event": 1}),
    ],
)
def test_between_events(tmp_path: Path, events: str, kept: int, kinds: dict[str, int]) -> None:
    trace = read_both(tmp_path, f'{{"traceEvents": [{events}], "traceName": "t"}}')
    assert names(trace) == ["good"] * kept
    assert counts(trace) == kinds
    assert trace.head == {"traceName": "t"}
    assert not trace.truncated


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    bad = event('"caf@"').encode().replace(b"@", b"\xe9")
    trace = read_both(
        tmp_path, b'{"traceEvents": [' + GOOD.encode() + b"," + bad + b"," + event('"é"').encode() + b"]}"
    )
    assert names(trace) == ["good", "caf\ufffd", "é"]
    assert counts(trace) == {"repaired-utf8": 1}


@pytest.mark.parametrize("text", [f'{{"traceEvents": [{GOOD}, {GOOD}', f"[{GOOD}, {GOOD}", f"[{GOOD}, {GOOD},\n"])
def test_list_without_end(tmp_path: Path, text: str) -> None:
    trace = read_both(tmp_path, text)
    assert (trace.events.height, trace.truncated, counts(trace)) == (2, True, {})


def test_cut_in_an_event(tmp_path: Path) -> None:
    trace = read_both(tmp_path, f'{{"traceEvents": [{GOOD}, {GOOD}, {GOOD[:60]}')
    assert (trace.events.height, trace.truncated, counts(trace)) == (2, True, {"lost-cut": 1})


def test_cut_gzip_keeps_every_byte_before_the_cut(tmp_path: Path) -> None:
    events = [event(f'"e{k}"', ts=str(k)) for k in range(3000)]
    packed = gzip.compress(f'{{"traceEvents": [{",".join(events)}]}}'.encode(), mtime=0)
    half = packed[: len(packed) // 2]
    whole = __import__("zlib").decompressobj(31).decompress(half)
    trace = read_both(tmp_path, half)
    assert trace.events.height == whole.count(b"}}")
    assert trace.truncated


def test_two_files_written_into_one(tmp_path: Path) -> None:
    one = f'{{"traceEvents": [{GOOD}, {GOOD}], "traceName": "a"}}'
    trace = read_both(tmp_path, one + one)
    assert (trace.events.height, counts(trace)) == (2, {"lost-trailing": 2})


def test_two_writers_interleaved(tmp_path: Path) -> None:
    one = f'{{"traceEvents": [{GOOD},\n{GOOD},\n{GOOD}]}}'
    mixed = one[:200] + one[:150] + one[200:] + one[150:]
    path = tmp_path / "trace.json"
    path.write_text(mixed)
    trace = read(path)
    assert trace.events.height >= 3
    assert any(kind.startswith("lost-") for kind in counts(trace))


@pytest.mark.parametrize("count", [2, 30_000])
def test_a_list_of_objects_after_the_events_is_no_damage(tmp_path: Path, count: int) -> None:
    devices = ", ".join(f'{{"id": {one}, "name": "NVIDIA H100"}}' for one in range(count))
    trace = read_both(tmp_path, f'{{"traceEvents": [{GOOD}, {GOOD}], "deviceProperties": [{devices}]}}')
    assert (trace.events.height, counts(trace), trace.truncated) == (2, {}, False)
    assert len(trace.head["deviceProperties"]) == count


def test_damaged_metadata_do_not_hide_the_events(tmp_path: Path) -> None:
    trace = read_both(tmp_path, f'{{"schemaVersion": 1, "broken": "a"b", "traceEvents": [{GOOD}], "x": nan, "y": 1}}')
    assert names(trace) == ["good"]
    assert trace.head == {"schemaVersion": 1, "x": None, "y": 1}
    assert counts(trace) == {"lost-metadata": 1, "repaired-word": 1}


@pytest.mark.parametrize(
    "text",
    [
        '{"traceEvents": [' + "[" * 200_000,
        '{"traceEvents": [' + "{" * 200_000,
        '{"traceEvents": [' + '{"ph":' * 30_000,
        '{"traceEvents": [' + '{"args":[' * 20_000,
        '{"traceEvents": [{"ph": "X", "ts": 1, "args": {"a": ' + "[" * 100_000 + "]" * 100_000 + "}}]}",
        '{"traceEvents": [' + '"' * 200_001,
        '{"traceEvents": [{"ph": "X", "name": "' + "\\" * 200_001,
        '{"traceEvents": [' + " " * 300_000 + "}",
        '{"traceEvents": [' + '{"ph": "X", "name": "a ' * 20_000,
        '{"traceEvents": [' + '{"name": "' * 20_000,
        "[" + "}," * 100_000,
        '{"a": ' + "[" * 200_000,
    ],
)
def test_made_up_input_ends_soon(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)
    from traceview.errors import UnreadableTraceError

    for reader in (read, read_reference):
        try:
            trace = reader(path)
        except UnreadableTraceError:
            continue
        assert trace.truncated or trace.counts


def _packed_with(text: bytes, flip: int) -> bytes:
    packed = bytearray(gzip.compress(text))
    packed[flip] ^= 1
    return bytes(packed)


def test_a_damage_is_not_called_a_cut(tmp_path: Path) -> None:
    """Everything is there, but a checksum is wrong, or nothing tells the end."""
    text = f'{{"traceEvents": [{GOOD}, {GOOD}]}}'.encode()
    for data, damage in (
        (_packed_with(text, -6), "its checksum is wrong, so something of what was read is wrong or missing"),
        (gzip.compress(text)[:-3], "its text is whole, but the compressed stream around it has no proper end"),
    ):
        trace = read_both(tmp_path, data)
        assert (names(trace), trace.truncated, trace.damage) == (["good", "good"], True, damage)
    (note,) = load(tmp_path / "trace.json").report.notes
    assert note.kind == "damaged"
    assert note.text == f"The file is damaged: {damage}."


def test_a_cut_is_not_called_a_damage(tmp_path: Path) -> None:
    text = f'{{"traceEvents": [{GOOD}, {GOOD}'.encode()
    for data in (text, gzip.compress(text), gzip.compress(text + b"]}")[:-12]):
        trace = read_both(tmp_path, data)
        assert (trace.truncated, trace.damage) == (True, "")


def test_a_block_that_cannot_be_inflated_is_a_damage(tmp_path: Path) -> None:
    text = f'{{"traceEvents": [{GOOD}]}}'.encode()
    whole = gzip.compress(text[:60])
    broken = bytearray(gzip.compress(text[60:]))
    broken[10] |= 6  # A type of block that does not exist.
    trace = read_both(tmp_path, whole + bytes(broken))
    assert (trace.truncated, trace.damage) == (True, "what follows the damage could not be read")
