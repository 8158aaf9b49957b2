"""The cache: the same timeline, whatever happens to files, entries and processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

import traceview.cache as module
import traceview.cache_memory
from authored_timeline import op, timeline
from same_timeline import assert_same_timeline, sample_inputs
from settled_trace import SAMPLE, settled
from traceview import load, sniffing, sources, timeline_file
from traceview.cache import Cache
from traceview.errors import StrictModeError, TraceviewError, UnreadableTraceError


def find_traces(path):
    return sources.find([path], sniffing.installed_formats())


@pytest.mark.parametrize("path", sample_inputs(), ids=lambda path: path.name)
def test_every_sample_opens_the_same(path, cache, parsed):
    first = load(path, cache=cache)
    again = load(path, cache=cache)
    assert len(parsed) == 1
    assert_same_timeline(first, again)
    assert_same_timeline(load(path), again)


@pytest.mark.slow
def test_real_traces_open_the_same(corpus, cache):
    """What an entry holds is the same on more traces in the tests of its file."""
    count = 0
    for path in [*(corpus / "nsys").iterdir(), *(corpus / "pytorch").glob("[n-s]*-*.json.gz")]:
        if path.stat().st_size > 500_000:
            continue
        try:
            first = load(path, cache=cache)
        except TraceviewError:
            continue
        again = load(path, cache=cache)
        for name in ("events", "processes", "threads", "devices", "inputs"):
            one, other = getattr(first, name), getattr(again, name)
            assert one.schema == other.schema
            assert one.equals(other)
        assert (first.report, first.runs, list(first.details)) == (again.report, again.runs, list(again.details))
        count += 1
    assert count >= 6
    assert len(cache.entries()) == count


def test_details_that_are_not_kept_come_from_the_trace(trace, cache, parsed):
    cache.detail_share = 0
    first = load(trace, cache=cache)
    again = load(trace, cache=cache)
    assert len(parsed) == 1
    assert_same_timeline(first, again)
    assert len(parsed) == 2, "it is read once more, and only once, for all that is missing"
    third = load(trace, cache=cache)
    trace.write_bytes(trace.read_bytes() + b" ")
    missing = next(key for key in third.details if key not in module.ASKED_FOR and key != "External id")
    with pytest.raises(UnreadableTraceError, match="has changed since it was loaded"):
        third.details[missing]


def test_answers_ask_for_no_detail_that_is_not_kept():
    from collections.abc import Mapping

    from traceview import gate, report
    from traceview.explaining import explain_trace
    from traceview.gap_report import gap_report
    from traceview.recompile_report import recompile_report
    from traceview.time_report import stage_report, step_report
    from traceview.transfer_report import transfer_report

    asked = set()

    class Noting(Mapping):
        def __init__(self, details):
            self.details = details

        def __getitem__(self, key):
            asked.add(key)
            return self.details[key]

        def __iter__(self):
            return iter(self.details)

        def __len__(self):
            return len(self.details)

    questions = (
        gate.check, report.report, report.kernel_report, explain_trace, gap_report, recompile_report, stage_report,
        step_report, transfer_report,
    )  # fmt: skip
    for path in sample_inputs():
        if path.name.startswith(("jax-tpu", "gaps", "two-ranks.nsys")):
            whole = load(path)
            noting = replace(whole, details=Noting(whole.details))
            for question in questions:
                question(noting)
    assert len(asked) > 5
    assert asked - module.ASKED_FOR == set()


def test_a_damaged_entry_is_made_anew_with_one_remark(trace, cache, parsed, remarks):
    first = load(trace, cache=cache)
    (entry,) = cache.entries()
    data = bytearray(entry.path.read_bytes())
    data[len(data) // 2] ^= 1
    entry.path.write_bytes(data)
    assert_same_timeline(first, load(trace, cache=cache))
    assert len(parsed) == 2
    assert remarks == ["a cached trace was damaged and is made anew (its checksum is wrong)"]
    load(trace, cache=cache)
    assert len(parsed) == 2


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: b"", lambda data: b"x" * 100])
def test_a_cut_entry_is_made_anew(damage, trace, cache, parsed, remarks):
    first = load(trace, cache=cache)
    (entry,) = cache.entries()
    entry.path.write_bytes(damage(entry.path.read_bytes()))
    assert_same_timeline(first, load(trace, cache=cache))
    assert len(remarks) == 1


def test_a_change_of_the_file_is_seen(trace, cache, parsed):
    load(trace, cache=cache)
    before = trace.stat()
    other = next(path for path in sample_inputs() if path.name.startswith("flash-requested-flash")).read_bytes()
    trace.write_bytes(other + b"\0" * max(0, before.st_size - len(other)))
    os.utime(trace, ns=(before.st_atime_ns, before.st_mtime_ns))
    changed = load(trace, cache=cache)
    assert len(parsed) == 2
    assert changed.events.equals(load(trace).events)


def test_the_same_content_at_another_place_or_time_is_known(trace, cache, parsed, tmp_path):
    first = load(trace, cache=cache)
    os.utime(trace)
    assert_same_timeline(first, load(trace, cache=cache))
    (tmp_path / "elsewhere").mkdir()
    copy = Path(shutil.copy(trace, tmp_path / "elsewhere" / trace.name))
    moved = load(copy, cache=cache)
    assert len(parsed) == 1
    assert moved.runs[0].path == copy
    assert_same_timeline(first, moved, paths=False)
    # Remarks may name the file, so that another name is another load.
    renamed = Path(shutil.copy(trace, tmp_path / "elsewhere" / "b.json.gz"))
    load(renamed, cache=cache)
    assert len(parsed) == 2


def test_what_was_written_a_moment_ago_is_looked_at_again(trace, cache, parsed, monkeypatch):
    monkeypatch.setattr(traceview.cache_memory, "SETTLED_NS", 10**12)
    load(trace, cache=cache)
    assert list((cache.folder / "seen").iterdir()) == []
    load(trace, cache=cache)
    assert len(parsed) == 1, "known by its content"


def test_other_code_makes_another_entry(trace, cache, parsed, monkeypatch):
    from traceview import content

    load(trace, cache=cache)
    monkeypatch.setattr(content, "__version__", "0.0.0")
    load(trace, cache=cache)
    monkeypatch.setattr(content, "_own_code", lambda: [("loading.py", 1, 2)])
    load(trace, cache=cache)
    assert len(parsed) == 3


def test_what_lies_beside_the_traces_counts(cache, parsed, tmp_path):
    folder = tmp_path / "ranks"
    shutil.copytree(next(path for path in sample_inputs() if path.name == "two-ranks"), folder)
    one = load(folder, cache=cache)
    assert_same_timeline(one, load(folder, cache=cache))
    assert len(parsed) == 1
    (folder / "notes.txt").write_text("hello")
    assert_same_timeline(load(folder), load(folder, cache=cache))
    assert cache.entries()[0].files == 2


def test_strict_says_the_same(cache, parsed):
    bad = SAMPLE.parent / "bad" / "cut-between-events.json"
    with pytest.raises(StrictModeError) as first:
        load(bad, strict=True, cache=cache)
    with pytest.raises(StrictModeError) as again:
        load(bad, strict=True, cache=cache)
    assert str(first.value) == str(again.value)
    assert len(parsed) == 1
    assert load(bad, cache=cache).report == load(bad).report


def test_a_trace_that_cannot_be_read_is_not_cached(cache, tmp_path):
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(UnreadableTraceError):
        load(tmp_path / "x.json", cache=cache)
    assert not cache.folder.exists()


def test_small_and_fast_traces_leave_no_mark(trace, tmp_path):
    load(trace, cache=Cache(tmp_path / "a"))
    load(trace, cache=Cache(tmp_path / "a", least_bytes=0, worth_seconds=60))
    assert not (tmp_path / "a").exists()


KILLED = """
import os, signal, sys
from pathlib import Path
import traceview
from traceview import timeline_file
from traceview.cache import Cache

moment, trace, folder = sys.argv[1:]
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if moment == "before the rename":
    os.replace = die
elif moment == "half written":
    class Column(timeline_file._Column):
        def part(self, start, count):
            if start or self.key == "grid":
                die()
            return super().part(start, count)
    timeline_file._Column, timeline_file._ROWS = Column, 100
elif moment == "after the rename":
    os.replace = lambda *args, real=os.replace: (real(*args), die())
traceview.load(trace, cache=Cache(Path(folder), worth_seconds=0, least_bytes=0, detail_share=1e9))
"""


@pytest.mark.parametrize("moment", ["half written", "before the rename", "after the rename"])
def test_a_killed_process_leaves_no_bad_entry(moment, trace, cache, parsed, remarks):
    done = subprocess.run([sys.executable, "-c", KILLED, moment, trace, cache.folder], check=False)
    assert done.returncode == -signal.SIGKILL
    whole = len(cache.entries())
    assert whole == (moment == "after the rename")
    assert_same_timeline(load(trace), load(trace, cache=cache))
    assert len(cache.entries()) == 1
    assert remarks == []
    left = [path for path in cache.folder.iterdir() if path.name.startswith("traceview-new-")]
    for path in left:
        os.utime(path, (0, 0))
    cache._evict()
    assert [path.name for path in cache.folder.iterdir() if path.name.startswith("traceview-new-")] == []


def test_many_at_once(trace, cache, remarks):
    want = load(trace)
    failures = []

    def work():
        try:
            for _ in range(4):
                assert_same_timeline(want, load(trace, cache=cache))
                for entry in cache.entries()[:1]:
                    entry.path.unlink(missing_ok=True)
        except BaseException as error:  # noqa: BLE001 - a thread must say why it failed
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert remarks == []


def test_what_two_read_at_once_is_kept_once(trace, cache, parsed, monkeypatch):
    other = Cache(cache.folder, worth_seconds=0, least_bytes=0, detail_share=1e9)
    write = timeline_file.write
    within = []

    def write_late(*arguments, **options):
        if not within:
            within.append(1)
            load(trace, cache=other)  # Another process that reads, and is done, while this one writes.
            assert len(cache.entries()) == 1
        write(*arguments, **options)

    monkeypatch.setattr(timeline_file, "write", write_late)
    first = load(trace, cache=cache)
    assert len(parsed) == 2
    assert len(cache.entries()) == 1
    cache._keep(cache.entries()[0].path.name.split("-")[1], first, find_traces(trace), 1, 1.0)
    assert len(cache.entries()) == 1
    assert_same_timeline(first, load(trace, cache=cache))
    assert len(parsed) == 2


def test_a_name_that_is_not_utf8_is_cached_too(cache, tmp_path, parsed):
    trace = Path(os.fsdecode(os.fsencode(tmp_path) + b"/tr\xffce.json.gz"))
    try:
        trace.write_bytes(SAMPLE.read_bytes())
    except OSError:
        pytest.skip("this file system takes no such name")
    trace.with_name(trace.name + ".traceview.json").write_text("{}")
    first = load(trace, cache=cache)
    assert_same_timeline(first, load(trace, cache=cache))
    assert len(parsed) == 1


def test_a_timeline_file_is_not_cached(cache, tmp_path):
    timeline_file.write(timeline(op("a", 0, 1)), tmp_path / "t.parquet")
    load(tmp_path / "t.parquet", cache=cache)
    assert not cache.folder.exists()


def test_a_raw_report_is_not_cached(tmp_path):
    from traceview.parsers.nsys import FORMAT

    (tmp_path / "r.nsys-rep").write_bytes(b"NVIDIA Tegra Profiler Report 2024@1@1")
    assert FORMAT.depends_on_more(tmp_path / "r.nsys-rep")
    assert not FORMAT.depends_on_more(SAMPLE)
    assert not FORMAT.depends_on_more(tmp_path)


def test_code_that_is_written_over_while_it_runs_is_still_the_old_code(trace, cache, parsed, monkeypatch):
    from traceview import content

    load(trace, cache=cache)
    monkeypatch.setattr(content, "_files", lambda folder: [("loading.py", 1, 2)])
    load(trace, cache=cache)
    assert len(parsed) == 1


def test_what_a_capture_wrote_beside_the_trace_is_part_of_its_content(trace, cache):
    first = load(trace, cache=cache)
    assert first.runs[0].capture is None
    sidecar = trace.with_name(trace.name + ".traceview.json")
    for version in ("2.8.0", "2.9.0"):
        document = {
            "schema": "traceview.capture/1",
            "session": "0" * 32,
            "framework": "torch",
            "versions": {"torch": version},
        }
        sidecar.write_text(json.dumps(document))
        settled(sidecar)
        for _ in range(2):
            again = load(trace, cache=cache)
            assert_same_timeline(again, load(trace))
            assert again.runs[0].capture is not None
            assert again.runs[0].capture.versions["torch"] == version
    sidecar.unlink()
    assert load(trace, cache=cache).runs[0].capture is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_beside_the_trace_holds_nothing_up(trace, cache):
    os.mkfifo(trace.with_name(trace.name + ".traceview.json"))
    assert_same_timeline(load(trace, cache=cache), load(trace))
