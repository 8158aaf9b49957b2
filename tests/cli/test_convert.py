"""``traceview convert`` and ``traceview cache``: what they say, refuse and leave behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import sys

import jsonschema
import pytest

from traceview import load
from traceview.exporting import convert as module


@pytest.fixture
def trace(samples, tmp_path):
    return shutil.copy(samples / "gaps-and-copies.cuda-authored.json", tmp_path / "trace.json")


@pytest.fixture
def schema(repository):
    def validator(name):
        return jsonschema.Draft202012Validator(
            json.loads((repository / "docs" / "schemas" / f"{name}.json").read_text())
        )

    return validator


def test_what_is_said(trace, tmp_path, run):
    out = tmp_path / "run.pftrace"
    done = run("convert", trace, "-o", out)
    assert (done.code, done.err) == (0, "")
    assert re.sub(r"[\d.]+ kB", "N kB", done.out) == (
        f"wrote {out}: 240 events as a Perfetto trace, N kB.\n"
        "Open it at https://ui.perfetto.dev; it stays in your browser.\n"
    )


def test_slices_that_overlap_are_counted(samples, tmp_path, run):
    (tmp_path / "t.json").write_text(
        '{"schemaVersion": 1, "deviceProperties": [], "traceEvents": ['
        '{"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 0, "dur": 10, "args": {"device": 0, "stream": 7}},'
        '{"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 5, "dur": 10, "args": {"device": 0, "stream": 7}}]}'
    )
    for name in ("a.pftrace", "a.json"):
        lines = run("convert", tmp_path / "t.json", "-o", tmp_path / name).out.splitlines()
        assert lines[1] == "1 slice overlaps others of the same track without nesting and lies on a track beside it."


@pytest.mark.parametrize(
    ("name", "form", "head"),
    [
        ("a.parquet", "parquet", b"PAR1"), ("a.PFTRACE", "perfetto", b"\n"), ("a.perfetto-trace", "perfetto", b"\n"),
        ("a.pftrace.gz", "perfetto", b"\x1f\x8b"), ("a.json", "chrome", b'{"schemaVersion"'),
        ("a.json.gz", "chrome", b"\x1f\x8b"),
    ],
)  # fmt: skip
def test_the_name_says_what_to_write(name, form, head, trace, tmp_path, run, schema):
    done = run("convert", trace, "-o", tmp_path / name, "--json")
    assert (done.code, done.err) == (0, "")
    schema("convert").validate(done.json)
    assert (done.json["format"], done.json["events"]) == (form, 240)
    assert done.json["bytes"] == (tmp_path / name).stat().st_size
    assert (tmp_path / name).read_bytes().startswith(head)


def test_format_outweighs_the_name(trace, tmp_path, run):
    assert run("convert", trace, "-o", tmp_path / "out.bin", "--format", "parquet").code == 0
    assert load(tmp_path / "out.bin").events.equals(load(trace).events)


@pytest.mark.parametrize(
    ("output", "more", "message"),
    [
        ("x.txt", [], "{}/x.txt: the end of this name does not say what to write. Let it end in .parquet, .pftrace or .json, or give --format parquet, perfetto or chrome."),
        ("there.json", [], "{}/there.json: the file exists. Give --force to replace it, or another name."),
        ("trace.json", ["--force"], "--output {}/trace.json: that file was read as input and would be overwritten. Choose another name."),
        ("link.json", ["--force"], "--output {}/link.json: that file was read as input and would be overwritten. Choose another name."),
        ("no/such/x.json", [], "{}/no/such/x.json: there is no folder {}/no/such. Create it first."),
        ("folder", ["--format", "chrome"], "{}/folder: that is a folder. Name a file in it."),
        ("pipe.json", ["--force"], "{}/pipe.json: that is no regular file. Name a file."),
    ],
)  # fmt: skip
def test_refused_before_the_trace_is_read(output, more, message, trace, tmp_path, run, monkeypatch):
    (tmp_path / "there.json").write_text("mine")
    (tmp_path / "link.json").symlink_to(trace)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    monkeypatch.setattr("traceview.loading._read", None)
    done = run("convert", trace, "-o", tmp_path / output, *more)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"traceview: error: {message.replace('{}', str(tmp_path))}\n"
    assert (tmp_path / "there.json").read_text() == "mine"


def test_a_trace_of_a_folder_is_not_overwritten(samples, tmp_path, run):
    folder = tmp_path / "ranks"
    shutil.copytree(samples / "two-ranks", folder)
    target = folder / "rank0.cuda-authored.json"
    before = target.read_bytes()
    done = run("convert", folder, "-o", target, "--force")
    assert done.code == 2
    assert "would be overwritten" in done.err
    assert target.read_bytes() == before


def test_replacing_keeps_the_mode(trace, tmp_path, run):
    out = tmp_path / "a.json.gz"
    out.write_text("old")
    out.chmod(0o640)
    assert run("convert", trace, "-o", out, "--force").code == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o640
    assert load(out).events.height == 240


@pytest.mark.parametrize("name", ["a.parquet", "a.pftrace", "a.json.gz"])
def test_a_write_that_fails_leaves_nothing(name, trace, tmp_path, run, monkeypatch):
    out = tmp_path / name
    out.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "replace", full)
    done = run("convert", trace, "-o", out, "--force")
    assert done.code == 2
    assert "cannot write: No space left on device." in done.err
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "trace.json"])


def test_the_cache_on_the_command_line(trace, tmp_path, run, schema, monkeypatch):
    from traceview import cache as cached

    monkeypatch.setenv("TRACEVIEW_CACHE_DIR", str(tmp_path / "c"))
    monkeypatch.delenv("TRACEVIEW_NO_CACHE")
    for name, value in (("WORTH_SECONDS", 0), ("LEAST_BYTES", 0)):
        monkeypatch.setitem(cached.Cache.__init__.__kwdefaults__, name.lower(), value)
    plain = run("report", trace, "--no-cache")
    assert not (tmp_path / "c").exists()
    assert run("report", trace) == plain == run("report", trace)
    listed = run("cache", "--format", "json").json
    schema("cache").validate(listed)
    (entry,) = listed["entries"]
    assert (entry["name"], entry["events"], entry["source_bytes"]) == ("trace.json", 240, os.stat(trace).st_size)
    lines = run("cache").out.splitlines()
    assert re.fullmatch(rf"1 cached trace, [\d.]+ kB of 2\.15 GB in {tmp_path}/c", lines[0])
    assert lines[2].split() == ["trace", "cached", "events", "load", "s", "last", "used", "(UTC)", "name"]
    assert lines[3].endswith("  trace.json")

    (file,) = (tmp_path / "c").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-50])
    done = run("report", trace)
    assert done.out == plain.out
    assert done.err == "traceview: note: a cached trace was damaged and is made anew (its checksum is wrong).\n"

    assert run("cache", "path").out == f"{tmp_path}/c\n"
    done = run("cache", "clear", "--format", "json")
    schema("cache").validate(done.json)
    assert done.json["removed"] == 1
    assert run("cache").out == f"The cache is empty: {tmp_path}/c\n"
    assert run("cache", "clear").out == "removed 0 cached traces, 0 B.\n"


@pytest.mark.parametrize("action", ["list", "clear"])
def test_a_cache_folder_that_is_none_is_said(tmp_path, run, monkeypatch, action):
    (tmp_path / "file").write_text("mine")
    for given in (tmp_path / "file", tmp_path / "file" / "below"):
        monkeypatch.setenv("TRACEVIEW_CACHE_DIR", str(given))
        done = run("cache", action)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"traceview: error: {given}: cannot be {action}ed: Not a dir")
    assert (tmp_path / "file").read_text() == "mine"
    monkeypatch.setenv("TRACEVIEW_CACHE_DIR", str(tmp_path / "none"))
    assert run("cache", action).code == 0


def test_a_limit_that_is_no_number(trace, run, monkeypatch):
    monkeypatch.setenv("TRACEVIEW_NO_CACHE", "")
    monkeypatch.setenv("TRACEVIEW_CACHE_LIMIT_MB", "much")
    done = run("report", trace)
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "traceview: error: TRACEVIEW_CACHE_LIMIT_MB: 'much' is not a whole number of megabytes. Give one such as 500.\n"
    )


@pytest.mark.skipif(os.name == "nt" or sys.platform == "darwin", reason="names there are text")
def test_a_folder_whose_name_is_not_utf8(trace, samples, tmp_path, run, monkeypatch):
    from traceview import cache as cached

    odd = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    os.mkdir(odd)
    first = run("report", trace, "--format", "json").json
    shutil.copy(trace, odd)
    assert run("report", f"{odd}/trace.json").code == 0
    for name in ("t.parquet", "t.pftrace", "t.json.gz"):
        assert run("convert", trace, "-o", f"{odd}/{name}").code == 0
    again = run("report", f"{odd}/t.parquet", "--format", "json").json
    assert again["steps"] == first["steps"]

    database = samples / "flash-requested-math-ran.nsys-authored.sqlite"
    shutil.copy(database, odd)
    there = run("check-dispatch", f"{odd}/{database.name}")
    assert (there.code, there.err) == (1, "")
    assert there.out.splitlines()[0] == run("check-dispatch", database).out.splitlines()[0]

    monkeypatch.setenv("TRACEVIEW_CACHE_DIR", f"{odd}/cache")
    monkeypatch.delenv("TRACEVIEW_NO_CACHE")
    for name in ("worth_seconds", "least_bytes"):
        monkeypatch.setitem(cached.Cache.__init__.__kwdefaults__, name, 0)
    assert run("report", trace) == run("report", trace)
    assert len(run("cache", "--format", "json").json["entries"]) == 1


@pytest.mark.parametrize("name", ["t.parquet", "t.pftrace", "t.json"])
def test_a_target_that_cannot_be_written_is_named(trace, tmp_path, run, monkeypatch, name):
    """A limit on the size of files stands for a full disk: the system refuses the write in the same way."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        done = run("convert", trace, "-o", tmp_path / name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"traceview: error: --output {tmp_path / name}: cannot write: ")
    assert "defect" not in done.err
    assert [entry.name for entry in tmp_path.iterdir()] == ["trace.json"]


def test_standard_output_is_refused(trace, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("convert", trace, "-o", "-", "--format", "chrome")
    assert (done.code, done.err) == (
        2, "traceview: error: -: a converted trace does not go to standard output. Name a file; ./- is one called so.\n",
    )  # fmt: skip
    assert not (tmp_path / "-").exists()
