"""The examples of README and docs work as they are printed.

``console`` blocks: each line after ``$ `` is run by bash and its output (standard error included) compared with the
lines that follow; ``...`` stands for anything, and ``echo $?`` prints the status of the command above. ``python``
blocks are run, one after the other in one namespace per page. A block whose fence says ``file=NAME`` is first written
to that file. Each page runs in a folder of its own that has a link to the sample traces.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
FENCE = re.compile(r"^```(?P<language>\w+)(?: file=(?P<file>\S+))?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page):
    return [match.groupdict() for match in FENCE.finditer(page.read_text(encoding="utf-8"))]


def environment(folder):
    bin_folder = str(Path(sys.executable).parent)
    plain = {"COLUMNS": "120", "NO_COLOR": "1", "PYTHONPATH": str(folder), "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    kept = {name: value for name, value in os.environ.items() if name not in {"FORCE_COLOR", "GITHUB_ACTIONS", "CI"}}
    return kept | plain | {"PATH": bin_folder + os.pathsep + os.environ["PATH"]}


def matches(want, got):
    checker = doctest.OutputChecker()
    return checker.check_output(want, got, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)


@pytest.fixture
def folder(tmp_path):
    if (ROOT / "sample_traces").exists():
        (tmp_path / "sample_traces").symlink_to(ROOT / "sample_traces")
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples_of_a_page(page, folder):
    install(page, folder)
    python = "\n".join(block["body"] for block in blocks(page) if block["language"] == "python" and not block["file"])
    if python:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", python],
            cwd=folder, env=environment(folder), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    status = 0
    for block in blocks(page):
        if block["language"] == "console":
            for command, want in commands(block["body"]):
                done = subprocess.run(
                    ["bash", "-c", f"exec 2>&1; (exit {status})\n{command}"],
                    cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                    check=False,
                )  # fmt: skip
                got, status = done.stdout, done.returncode
                assert matches(want, got), f"$ {command}\n--- printed on the page:\n{want}\n--- printed now:\n{got}"


def install(page, folder):
    """Write the files of a page; a ``pyproject.toml`` among them makes its package known, as pip would."""
    for block in blocks(page):
        if block["file"]:
            (folder / block["file"]).write_text(block["body"], encoding="utf-8")
    if (folder / "pyproject.toml").exists():
        import tomllib

        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        info = folder / f"{project['name']}-{project['version']}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
        groups = [
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
            for group, entries in project["entry-points"].items()
        ]
        (info / "entry_points.txt").write_text("".join(groups))


def commands(body):
    """Each command of a console block with the output printed below it."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def test_a_wrong_output_is_found():
    assert matches("found 3 kernels\n", "found 3 kernels\n")
    assert matches("found ... kernels\n", "found 17 kernels\n")
    assert not matches("found 3 kernels\n", "found 4 kernels\n")
    assert list(commands("$ true\n$ echo a\na\n")) == [("true", ""), ("echo a", "a\n")]
