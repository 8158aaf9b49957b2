"""Traces are read once each, known by content, kept a few at a time, and can be left."""

from __future__ import annotations

import shutil
import threading

import pytest

from traceview.dashboards import shelf as shelf_module
from traceview.dashboards.shelf import Shelf, State, content_id
from traceview.errors import UnreadableTraceError, UsageError


@pytest.fixture
def sample(repository):
    return str(repository / "sample_traces" / "no-device-work.cuda-authored.json")


def ready(job):
    assert job.done.wait(300)
    return job


def test_a_trace_is_known_by_what_it_holds(sample, tmp_path):
    copy = tmp_path / "other-name.json"
    shutil.copyfile(sample, copy)
    assert content_id([sample]) == content_id([str(copy)])
    copy.write_text(copy.read_text().replace("4242", "4243"))
    assert content_id([sample]) != content_id([str(copy)])


def test_the_order_of_ranks_does_not_matter(repository):
    ranks = [str(repository / "sample_traces" / "two-ranks" / f"rank{n}.cuda-authored.json") for n in (0, 1)]
    assert content_id(ranks) == content_id(ranks[::-1])
    assert content_id(ranks) != content_id(ranks[:1])


def test_the_same_content_is_read_once(sample, tmp_path):
    shelf = Shelf()
    first = ready(shelf.open([sample]))
    copy = tmp_path / "copy.json"
    shutil.copyfile(sample, copy)
    assert shelf.open([str(copy)]) is first
    assert first.state is State.READY
    assert first.opened.report.trace.format == "kineto"


def test_the_one_not_used_for_longest_is_let_go_and_read_again(repository, sample):
    shelf = Shelf(most=1)
    first = ready(shelf.open([sample]))
    other = ready(shelf.open([str(repository / "sample_traces" / "bad" / "healthy.json")]))
    assert first.opened is None
    assert other.opened is not None
    again = ready(shelf.get(first.id))
    assert again.opened is not None
    assert other.opened is None


def test_what_was_just_read_is_not_the_one_to_go(repository, sample, monkeypatch):
    reading, go_on = threading.Event(), threading.Event()
    real = shelf_module._analyse

    def slow(job):
        if job.title == "no-device-work.cuda-authored.json":
            reading.set()
            assert go_on.wait(300)
        real(job)

    monkeypatch.setattr(shelf_module, "_analyse", slow)
    shelf = Shelf(most=1)
    other = ready(shelf.open([str(repository / "sample_traces" / "bad" / "healthy.json")]))
    first = shelf.open([sample])
    assert reading.wait(300)
    shelf.get(other.id)
    go_on.set()
    assert ready(first).opened is not None
    assert other.opened is None


def test_a_trace_is_called_by_the_first_file_that_was_read(repository, tmp_path):
    (tmp_path / "a-note.json").write_text("{}")
    shutil.copyfile(repository / "sample_traces" / "bad" / "healthy.json", tmp_path / "run.json")
    shelf = Shelf()
    assert ready(shelf.open([str(tmp_path)])).opened.title == "run.json"
    shelf.forget(shelf.jobs[0].id)
    assert ready(shelf.open([str(tmp_path)], title="mine")).opened.title == "mine"


def test_a_trace_whose_file_is_gone_is_forgotten(sample, tmp_path, repository):
    copy = tmp_path / "copy.json"
    shutil.copyfile(sample, copy)
    shelf = Shelf(most=1)
    job = ready(shelf.open([str(copy)]))
    ready(shelf.open([str(repository / "sample_traces" / "bad" / "healthy.json")]))
    copy.unlink()
    assert shelf.get(job.id) is None
    assert shelf.get("0" * 16) is None


def test_what_is_no_trace_is_told_at_once(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("nothing of the kind")
    with pytest.raises(UnreadableTraceError, match=r"notes\.txt"):
        Shelf().open([str(path)])
    with pytest.raises(UsageError, match="missing"):
        Shelf().open([str(tmp_path / "missing.json")])


def test_a_defect_is_one_line_and_no_traceback(sample, monkeypatch):
    def fail(timeline, **_more):
        raise ValueError("first line\nsecond line")

    monkeypatch.setattr("traceview.report.report", fail)
    job = ready(Shelf().open([sample]))
    assert job.state is State.FAILED
    (line,) = job.error
    assert line.startswith("defect in traceview (ValueError: first line); please report it")


def test_reading_can_be_left(sample, monkeypatch):
    reading, go_on = threading.Event(), threading.Event()
    real = shelf_module._analyse

    def slow(job):
        reading.set()
        assert go_on.wait(300)
        real(job)

    monkeypatch.setattr(shelf_module, "_analyse", slow)
    shelf = Shelf()
    job = shelf.open([sample])
    assert reading.wait(300)
    shelf.leave(job.id)
    assert job.done.is_set()
    assert job.state is State.LEFT
    go_on.set()
    monkeypatch.setattr(shelf_module, "_analyse", real)
    again = ready(shelf.open([sample]))
    assert again is not job
    assert again.state is State.READY
    assert job.opened is None


def test_progress_is_told(sample, monkeypatch):
    seen = []
    real = shelf_module._analyse

    def watched(job):
        real(job)
        seen.append((job.share, job.phase))

    monkeypatch.setattr(shelf_module, "_analyse", watched)
    ready(Shelf().open([sample]))
    assert seen == [(1.0, "Cutting the steps by stage")]


def test_what_is_given_by_path_is_cached_and_an_upload_is_not(sample, tmp_path, monkeypatch):
    from traceview import loading
    from traceview.dashboards.uploads import FOLDER_VARIABLE

    asked = []
    real = loading.load
    monkeypatch.setattr(loading, "load", lambda *a, **k: asked.append(k["cache"]) or real(*a, **k))
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    ready(Shelf().open([sample]))
    uploaded = tmp_path / "one" / "mine.json"
    uploaded.parent.mkdir()
    shutil.copyfile(sample, uploaded)
    ready(Shelf().open([str(uploaded)]))
    assert asked == [True, False]
