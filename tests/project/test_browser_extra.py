"""`make browser`: a machine where no browser can be installed is told, and tests everything else."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest


@pytest.fixture
def make_browser(repository, tmp_path):
    """Run the script behind `make browser` with a pip that ends with some status, and some programs on the PATH."""

    def run(*, pip, programs):
        tools = tmp_path / "tools"
        shutil.rmtree(tools, ignore_errors=True)
        tools.mkdir()
        for name in ("bash", "dirname", "env", "id"):
            (tools / name).symlink_to(shutil.which(name))
        fake = {"pip": pip, **programs}
        for name, status in fake.items():
            (tools / name).write_text(
                f'#!/bin/sh\necho {name} "$@" >>{tmp_path}/asked\nexit {status}\n', encoding="utf-8"
            )
            (tools / name).chmod(0o755)
        return subprocess.run(
            [str(repository / "tools" / "browser.sh")],
            env={"PATH": str(tools), "VENV": str(tmp_path), "PIP": "pip"}, capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


def test_where_pip_fails_it_is_said_and_the_next_run_tries_again(make_browser, tmp_path):
    done = make_browser(pip=1, programs={"chromium": 0})
    assert done.returncode == 0
    assert done.stderr == (
        "The dashboard and Playwright could not be installed, pip said why above. "
        "The tests of the dashboard in a browser will be skipped.\n"
    )
    assert (tmp_path / ".browser").read_text() == ""
    for _ in range(2):
        done = make_browser(pip=0, programs={"chromium": 0})
        assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / ".browser").read_text() == "1\n"
    assert (tmp_path / "asked").read_text().count("pip install --editable .[dashboard,browser]") == 2


def test_where_there_is_no_browser_it_is_said(make_browser, tmp_path):
    done = make_browser(pip=0, programs={"apt-get": 100})
    assert done.returncode == 0
    assert done.stderr.endswith(
        "No Chromium on the PATH and none could be installed: install the package chromium. "
        "The tests of the dashboard in a browser will be skipped.\n"
    )
    assert (tmp_path / ".browser").read_text() == ""
    if os.geteuid() == 0:
        assert "apt-get -qq update" in (tmp_path / "asked").read_text()
