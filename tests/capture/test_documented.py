"""The examples of docs/capture.md that need a framework, and the documents of the command."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import jsonschema
import pytest

from live_frameworks import live
from traceview.capture.torch_settings import read_settings
from traceview.cli.main import main

EXAMPLE = re.compile(r"^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_examples_of_the_page(repository, tmp_path):
    live("torch")
    live("jax")
    page = (repository / "docs" / "capture.md").read_text(encoding="utf-8")
    program = "import os\nos.environ['JAX_PLATFORMS'] = 'cpu'\n" + "\n".join(EXAMPLE.findall(page))
    assert program.count("profile_") > 5
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {
        "attend.json.gz", "loop.json.gz", "matmul.xplane.pb", "matmul.xplane.pb.traceview.json", "loop.xplane.pb",
        "loop.xplane.pb.traceview.json",
    }  # fmt: skip


def test_every_setting_that_is_written_is_described(repository):
    torch = live("torch")
    page = (repository / "docs" / "capture.md").read_text(encoding="utf-8")
    assert [name for name in read_settings(torch) if f"`{name}`" not in page] == []


def test_the_document_of_the_command_keeps_its_schema(repository, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    schema = json.loads((repository / "docs" / "schemas" / "capture.json").read_text())
    assert main(["capture", "nsys", "--print", "--format", "json", "--", "./app"]) == 0
    jsonschema.Draft202012Validator(schema).validate(json.loads(capsys.readouterr().out))
