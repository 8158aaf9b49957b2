"""The folder of the cache: where it is, who may use it, what stays in it, and what it costs when it is of no use."""

from __future__ import annotations

import json
import logging
import os
import signal
import stat
import subprocess
import sys

import pytest

from same_timeline import assert_same_timeline
from settled_trace import SAMPLE
from traceview import load
from traceview.cache import Cache, user_cache
from traceview.cache_place import user_folder
from traceview.errors import UsageError


def test_nobody_else_may_look(trace, cache):
    load(trace, cache=cache)
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((cache.folder / "seen").stat().st_mode) == 0o700
    text = b"".join(path.read_bytes() for path in cache.folder.rglob("*") if path.is_file())
    assert os.fsencode(trace.parent) not in text


def test_the_least_recently_used_goes(cache, tmp_path):
    paths = []
    for number in range(3):
        paths.append(tmp_path / f"t{number}.json.gz")
        paths[-1].write_bytes(SAMPLE.read_bytes())
        load(paths[-1], cache=cache)
        entry = next(one for one in cache.entries() if one.name == paths[-1].name)
        os.utime(entry.path, (1000 + number, 1000 + number))
    load(paths[0], cache=cache)  # used again
    # Entries of the same size but for a few bytes: each holds how long its load took, in as many digits as that needs.
    cache.limit_bytes = sum(entry.bytes for entry in cache.entries()) + cache.entries()[0].bytes // 2
    (tmp_path / "t3.json.gz").write_bytes(SAMPLE.read_bytes())
    load(tmp_path / "t3.json.gz", cache=cache)
    assert sorted(entry.name for entry in cache.entries()) == ["t0.json.gz", "t2.json.gz", "t3.json.gz"]
    assert sum(entry.bytes for entry in cache.entries()) <= cache.limit_bytes
    cache.limit_bytes = 10
    (tmp_path / "t4.json.gz").write_bytes(SAMPLE.read_bytes())
    load(tmp_path / "t4.json.gz", cache=cache)
    assert cache.entries() == []


def test_a_cache_that_cannot_be_written_costs_one_remark(trace, tmp_path, remarks):
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "cache", worth_seconds=0, least_bytes=0, remark=remarks.append)
    assert_same_timeline(load(trace), load(trace, cache=cache))
    assert remarks == ["the trace could not be cached (Not a directory; traceview cache path says where)"]


def _refusing(function):
    def refuses(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    return lambda monkeypatch: monkeypatch.setattr(os, function, refuses)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda folder, _: folder.write_text(""), "Not a directory"),
        (lambda folder, _: folder.symlink_to(folder), "File exists"),
        (lambda folder, _: folder.symlink_to("/proc/none/x"), "File exists"),
        (lambda folder, _: (folder.mkdir(), (folder / "seen").write_text("")), "File exists"),
        (lambda _, monkeypatch: _refusing("mkdir")(monkeypatch), "Permission denied"),
        (lambda _, monkeypatch: _refusing("listdir")(monkeypatch), None),
        (lambda _, monkeypatch: _refusing("replace")(monkeypatch), "Permission denied"),
    ],
)
def test_whatever_is_wrong_with_the_folder_the_load_works(spoil, reason, trace, cache, remarks, monkeypatch):
    want = load(trace)
    spoil(cache.folder, monkeypatch)
    assert_same_timeline(want, load(trace, cache=cache))
    assert remarks == ([f"the trace could not be cached ({reason}; traceview cache path says where)"] if reason else [])


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="limits of POSIX")
def test_a_full_disk_costs_one_remark(trace, tmp_path):
    # A limit on the size of files ends a write halfway, as a full disk does.
    program = (
        "import resource, sys\nfrom pathlib import Path\nimport traceview\nfrom traceview.cache import Cache\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "cache = Cache(Path(sys.argv[2]), worth_seconds=0, least_bytes=0, remark=print)\n"
        "assert traceview.load(sys.argv[1], cache=cache).events.height > 1000\n"
        "print(cache.entries(), sorted(path.name for path in cache.folder.iterdir()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, trace, tmp_path / "c"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    remark, left = done.stdout.splitlines()
    assert remark.startswith("the trace could not be cached (")
    assert left == "[] ['seen']"


def test_the_environment_decides(monkeypatch, tmp_path):
    monkeypatch.setenv("TRACEVIEW_NO_CACHE", "1")
    assert user_cache() is None
    for off in ("", "0"):
        monkeypatch.setenv("TRACEVIEW_NO_CACHE", off)
        monkeypatch.setenv("TRACEVIEW_CACHE_DIR", str(tmp_path / "c"))
        assert user_cache().folder == user_folder() == tmp_path / "c"
    monkeypatch.setenv("TRACEVIEW_CACHE_LIMIT_MB", "5")
    assert user_cache().limit_bytes == 5_000_000
    monkeypatch.setenv("TRACEVIEW_CACHE_LIMIT_MB", "-5")
    with pytest.raises(UsageError, match="not a whole number of megabytes"):
        user_cache()
    monkeypatch.setenv("TRACEVIEW_CACHE_LIMIT_MB", "5")
    monkeypatch.delenv("TRACEVIEW_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert user_folder().is_relative_to(tmp_path)
    assert not user_folder().exists()


def test_without_a_home_nothing_is_cached_and_that_is_said(monkeypatch):
    monkeypatch.setenv("TRACEVIEW_NO_CACHE", "0")
    for name in ("TRACEVIEW_CACHE_DIR", "XDG_CACHE_HOME", "TRACEVIEW_CACHE_LIMIT_MB"):
        monkeypatch.delenv(name, raising=False)
    # As for a user number that the system does not know, in a container say.
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    remarks = []
    assert user_cache(remarks.append) is None
    (remark,) = remarks
    assert remark == (
        "this user has no home folder, so nothing can be cached (TRACEVIEW_CACHE_DIR names another place, "
        "TRACEVIEW_NO_CACHE=1 turns the cache off)"
    )
    with pytest.raises(UsageError, match="no home folder"):
        user_folder()


def test_without_a_listener_a_remark_is_logged(trace, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        load(trace, cache=Cache(tmp_path / "file" / "c", worth_seconds=0, least_bytes=0))
    assert caplog.messages == ["the trace could not be cached (Not a directory; traceview cache path says where)"]


def test_clearing_leaves_what_is_not_ours(trace, cache):
    load(trace, cache=cache)
    (cache.folder / "other.txt").write_text("mine")
    (cache.folder / "1-x.parquet").write_text("mine")
    (entry,) = cache.entries()
    assert cache.clear() == (1, entry.bytes)
    assert sorted(path.name for path in cache.folder.iterdir()) == ["1-x.parquet", "other.txt"]
    assert cache.clear() == (0, 0)


def test_entries_say_what_they_are(trace, cache):
    load(trace, cache=cache)
    (entry,) = cache.entries()
    assert (entry.name, entry.files, entry.source_bytes) == ("trace.json.gz", 1, trace.stat().st_size)
    assert (entry.events, entry.bytes) == (load(trace).events.height, entry.path.stat().st_size)
    assert json.loads(json.dumps(entry.seconds)) >= 0
