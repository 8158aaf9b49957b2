"""The broken twins are what they say, and the product makes of each what is expected."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import pytest

from sample_traces import broken
from traceview.cli.main import main
from traceview.errors import UnreadableTraceError
from traceview.loading import load
from traceview.timeline import Trust

FOLDER = Path(broken.__file__).parent / "bad"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
VALID_JSON = {
    "healthy.json": 17, "one-line.json": 17, "lone-surrogate.json": 17, "times-in-quotes.json": 17, "big-integer.json": 17,
    "time-zero.json": 18, "negative-duration.json": 18, "no-launches.json": 13, "no-work.json": 13,
    "repeated-correlation.json": 17, "only-metadata.json": 0,
}  # fmt: skip


def test_every_file_has_an_expectation():
    assert {p.name for p in FOLDER.iterdir()} - {"expected.json", "README.md"} == set(EXPECTED)


@pytest.mark.parametrize("file", VALID_JSON)
def test_files_that_are_valid_json_hold_that_many_events(file):
    events = json.loads((FOLDER / file).read_bytes())["traceEvents"]
    assert sum(e["ph"] in "Xi" for e in events) == VALID_JSON[file]


@pytest.mark.parametrize(
    "file", sorted(set(EXPECTED) - set(VALID_JSON) - {"byte-order-mark.json", "bad-checksum.json.gz"})
)
def test_the_others_are_no_json_of_a_trace(file):
    try:
        content = json.loads((FOLDER / file).read_bytes())
    except ValueError:
        return
    assert "traceEvents" not in content


def test_gzip_files_are_damaged():
    with pytest.raises(EOFError):
        gzip.decompress((FOLDER / "cut.json.gz").read_bytes())
    text = zlib.decompressobj(31).decompress((FOLDER / "cut.json.gz").read_bytes()).decode()
    assert broken.healthy().startswith(text)
    with pytest.raises(gzip.BadGzipFile, match="CRC"):
        gzip.decompress((FOLDER / "bad-checksum.json.gz").read_bytes())


LOADS = [file for file, expected in EXPECTED.items() if expected["outcome"] == "loads"]
REFUSED = [file for file, expected in EXPECTED.items() if expected["outcome"] == "refused"]


@pytest.mark.parametrize("file", EXPECTED)
def test_the_command_line_answers_or_says_one_line(file, capsys):
    expected = EXPECTED[file]
    assert main(["report", str(FOLDER / file)]) == expected["exit"]
    shown = capsys.readouterr()
    if expected["outcome"] == "refused":
        assert shown.out == ""
        assert len(shown.err.splitlines()) == 1
        assert file in shown.err
        assert expected.get("says", "") in shown.err
    else:
        assert shown.out
        assert not shown.err


@pytest.mark.parametrize("file", LOADS)
def test_what_is_intact_is_kept_and_the_rest_counted(file):
    pytest.importorskip("traceview.parsers.kineto.reader")
    expected = EXPECTED[file]
    timeline = load(FOLDER / file)
    timeline.validate()
    report = timeline.report
    counts = {kind: count.n for kind, count in report.counts.items() if kind.startswith(("lost-", "repaired-"))}
    wanted = {kind: n for kind, n in expected["counts"].items() if kind.startswith(("lost-", "repaired-"))}
    assert counts == wanted
    assert timeline.events.height == expected["events"]
    assert timeline.device_work.height == expected["device_work"]
    assert expected["truncated"] in (None, report.truncated)
    assert not expected["doubted"] or report.trust != Trust.GOOD
    assert set(expected["counts"]) <= set(report.counts)
    assert set(expected["notes"]) <= {note.kind for note in report.notes}


@pytest.mark.parametrize("file", REFUSED)
def test_what_is_no_trace_is_refused_with_a_next_step(file):
    with pytest.raises(UnreadableTraceError) as caught:
        load(FOLDER / file)
    assert caught.value.code == EXPECTED[file]["code"]
    assert caught.value.next_step
