"""`make live`: the frameworks that live tests record with are pinned, and a machine without them is told."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib

import pytest


def test_the_frameworks_are_pinned_and_no_dependency(repository):
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    pinned = [found[1] for one in extras["live"] if (found := re.fullmatch(r"(\w+)==[\d.]+", one))]
    assert pinned == ["jax", "torch"]
    everywhere = " ".join([*project["dependencies"], *extras["dev"]])
    assert "torch" not in everywhere
    assert "jax" not in everywhere


@pytest.fixture
def make_live(repository, tmp_path):
    """Run `make live` with an environment whose pip ends with some status."""

    def run(status):
        python = tmp_path / "bin" / "python"
        python.parent.mkdir(exist_ok=True)
        python.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\nexit {status}\n', encoding="utf-8")
        python.chmod(0o755)
        (tmp_path / ".dev").touch()
        environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
        return subprocess.run(
            ["make", "--no-print-directory", "live", f"VENV={tmp_path}"],
            cwd=repository, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


def test_a_machine_without_them_is_told_and_goes_on(make_live, tmp_path):
    done = make_live(1)
    assert done.returncode == 0
    assert done.stderr.startswith("PyTorch and JAX could not be installed, pip said why above: the tests that record")
    assert (tmp_path / ".live").read_text() == ""
    # The next run tries again; once installed, no more.
    for _ in range(2):
        done = make_live(0)
        assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / ".live").read_text() == "1\n"
    assert (tmp_path / "asked").read_text().count("install --editable .[dev,live]") == 2
