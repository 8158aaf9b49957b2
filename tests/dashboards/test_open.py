"""Ways to open a trace, and what is said when it is none."""

from __future__ import annotations

import json

import pytest
from streamlit.util import calc_hash

from traceview import samples
from traceview.dashboards import state, uploads
from traceview.dashboards.shelf import Job, State, content_id


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    folder = tmp_path / "uploads"
    folder.mkdir()
    monkeypatch.setenv(uploads.FOLDER_VARIABLE, str(folder))
    return folder


def test_every_sample_is_offered(show):
    shown = show("open")
    assert {one.name for one in samples.catalogue()} <= {
        button.key.removeprefix("sample-") for button in shown.test.button if button.key
    }


def test_a_sample_is_one_click_away(show):
    shown = show("open")
    shown.test.button(key="sample-flash-requested-math-ran").click().run()
    assert not shown.test.exception
    assert any("math" in text for text in shown.texts)
    assert shown.test.query_params["trace"] == state.shelf().jobs[0].id


def test_a_pair_is_compared_with_one_click(show):
    shown = show("open")
    shown.test.button(key="pair-flash-requested").click().run()
    assert not shown.test.exception
    assert any(text.startswith("Faster: a step takes 3.211 ms instead of 10.22 ms") for text in shown.texts)
    assert shown.test.query_params["before"] != shown.test.query_params["after"]


def test_a_dropped_file_is_written_to_disk_and_answered(show, repository, root):
    sample = repository / "sample_traces" / "mixed-backends.cuda-authored.json"
    shown = show("open")
    shown.test.file_uploader[0].upload("mine.json", sample.read_bytes()).run()
    assert not shown.test.exception
    assert "mine.json   ·" in shown.words
    (written,) = root.rglob("*.json")
    assert written.read_bytes() == sample.read_bytes()


def test_a_dropped_file_that_is_no_trace_is_told_and_not_kept(show, root):
    shown = show("open")
    shown.test.file_uploader[0].upload("notes.txt", b"nothing of the kind").run()
    assert not shown.test.exception
    assert shown.texts[0].startswith("notes.txt: ")
    assert "**This could not be done**" in shown.words
    assert list(root.iterdir()) == []


def test_a_path_is_opened(show, repository):
    shown = show("open")
    shown.test.text_input(key="path").input(str(repository / "sample_traces" / "rocm.hip-authored.json"))
    shown.test.button[0].click().run()
    assert "rocm.hip-authored.json   ·" in shown.words


def test_a_path_that_is_not_there_is_told(show, tmp_path):
    shown = show("open")
    shown.test.text_input(key="path").input(str(tmp_path / "missing.json"))
    shown.test.button[0].click().run()
    assert "missing.json" in shown.texts[0]


def test_traces_of_the_command_line_are_opened_once(show, repository, monkeypatch):
    path = str(repository / "sample_traces" / "graph-replay.cuda-authored.json")
    monkeypatch.setenv(state.TRACES_VARIABLE, json.dumps([path]))
    shown = show("open")
    assert "graph-replay.cuda-authored.json   ·" in shown.words


@pytest.mark.parametrize("linked", [True, False])
def test_a_page_opens_the_trace_of_the_command_line_by_itself(show, repository, monkeypatch, linked):
    path = str(repository / "sample_traces" / "graph-replay.cuda-authored.json")
    trace_id = content_id([path])
    state.shelf().forget(trace_id)
    monkeypatch.setenv(state.TRACES_VARIABLE, json.dumps([path]))
    shown = show("overview", trace_id if linked else None)
    assert "graph-replay.cuda-authored.json   ·" in shown.words
    assert shown.test.query_params["trace"] == trace_id
    assert "This server does not have the trace" in show("overview", "0" * 16).words


def test_what_is_open_is_listed(show, as_open):
    as_open("cuda")
    assert ":material/check_circle: ready" in show("open").marked


def test_a_trace_can_be_removed_and_its_upload_goes(show, repository, root):
    sample = repository / "sample_traces" / "bad" / "healthy.json"
    shown = show("open")
    shown.test.file_uploader[0].upload("mine.json", sample.read_bytes()).run()
    trace_id = shown.test.query_params["trace"]
    assert list(root.rglob("mine.json"))
    # The page of the trace is shown now; what the button does is done in the same session.
    shown.test._page_hash = calc_hash("")
    shown.test.query_params.clear()
    shown.test.run()
    shown.test.button(key=f"remove-{trace_id}").click().run()
    assert not shown.test.exception
    assert state.shelf().get(trace_id) is None
    assert not list(root.rglob("mine.json"))
    assert trace_id not in [key.removeprefix("remove-") for key in (one.key for one in shown.test.button) if key]


def test_of_many_traces_the_last_ones_are_listed_and_the_others_folded(show, monkeypatch):
    jobs = tuple(Job(f"{at:016x}", f"run{at}.json", ("x",), state=State.READY) for at in range(9))
    monkeypatch.setattr(type(state.shelf()), "jobs", property(lambda _: jobs))
    shown = show("open")
    assert [one.label for one in shown.test.expander if "opened before" in one.label] == ["3 opened before these"]
    assert len([one for one in shown.test.button if one.label == "Remove"]) == 9


def test_content_on_disk_leaves_memory(monkeypatch):
    removed = []

    class Manager(state.MemoryUploadedFileManager):
        def remove_file(self, session_id, file_id):
            removed.append((session_id, file_id))

    class Context:
        session_id = "s"
        uploaded_file_mgr = Manager("/upload")

    class File:
        file_id = "f"

    monkeypatch.setattr(state, "get_script_run_ctx", Context)
    state.drop_from_memory([File()])
    assert removed == [("s", "f")]
