"""Uploads go to disk, stay in their folder, and go when the session ends."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from traceview.dashboards import uploads as module
from traceview.dashboards.uploads import Uploads, safe_parts


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv(module.FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("trace.json.gz", ["trace.json.gz"]),
        ("run/rank0.json", ["run", "rank0.json"]),
        ("../../etc/passwd", ["etc", "passwd"]),
        ("/etc/passwd", ["etc", "passwd"]),
        ("..\\..\\x.json", ["x.json"]),
        (".hidden", ["hidden"]),
        ("<b>*.json", ["<b>*.json"] if os.name != "nt" else ["_b__.json"]),
        ("run (2) [a], b=1 & c@d#e.json", ["run (2) [a], b=1 & c@d#e.json"]),
        ("Lauf übermäßig 日本.json", ["Lauf übermäßig 日本.json"]),
        ("a\nb\x1b[31m.json", ["a_b_[31m.json"]),
        ("..", ["trace"]),
        ("", ["trace"]),
        ("a" * 300 + ".json", ["a" * 195 + ".json"]),
        ("日" * 300 + ".json", ["日" * 65 + ".json"]),
        ("\ud800.json", ["?.json"]),
    ],
)
def test_a_name_cannot_lead_out_of_its_folder(name, parts):
    assert safe_parts(name) == parts


def test_files_of_one_name_are_all_kept(root):
    folder, paths = Uploads().write([("t.json", io.BytesIO(b"one")), ("t.json", io.BytesIO(b"two"))])
    assert [Path(path).read_bytes() for path in paths] == [b"one", b"two"]
    assert all(path.startswith(folder + os.sep) for path in paths)
    assert folder.startswith(str(root))


def test_the_same_content_twice_keeps_one_folder(root):
    uploads = Uploads()
    first, _ = uploads.write([("t.json", io.BytesIO(b"x"))])
    uploads.keep("id", first)
    second, _ = uploads.write([("t.json", io.BytesIO(b"x"))])
    uploads.keep("id", second)
    assert os.listdir(root) == [os.path.basename(first)]


def test_one_goes_when_its_trace_is_forgotten(root):
    uploads = Uploads()
    for name in ("first", "second"):
        folder, _ = uploads.write([("t.json", io.BytesIO(name.encode()))])
        uploads.keep(name, folder)
    uploads.forget("first")
    uploads.forget("never seen")
    assert os.listdir(root) == [os.path.basename(folder)]


def test_all_go_when_the_session_ends(root):
    uploads = Uploads()
    folder, _ = uploads.write([("t.json", io.BytesIO(b"x"))])
    uploads.keep("id", folder)
    uploads.clear()
    assert os.listdir(root) == []


def test_a_message_does_not_show_where_an_upload_lies(root):
    folder, (path,) = Uploads().write([("run/t.json", io.BytesIO(b"x"))])
    assert module.without_folders(f"{path}: this is text. Copy {path} again.") == (
        "run/t.json: this is text. Copy run/t.json again."
    )
    assert module.without_folders("/data/t.json: no") == "/data/t.json: no"
    assert folder not in module.without_folders(path)
