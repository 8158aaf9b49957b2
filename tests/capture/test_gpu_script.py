"""``sample_traces/make_gpu.py`` without a GPU: it says so, and its dry run on the CPU records, tells and compares."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sample_traces
from live_frameworks import live

pytestmark = pytest.mark.slow

SCRIPT = Path(sample_traces.__file__).parent / "make_gpu.py"


def run(*arguments):
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments], check=False, capture_output=True, text=True, timeout=600, env=environment
    )


def own_lines(text):
    """Without what the frameworks write to standard error."""
    return [line for line in text.splitlines() if line.startswith("make_gpu: ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    live("torch")
    folder = tmp_path_factory.mktemp("gpu")
    done = run(folder, "--device", "cpu", "--only", "sdpa-bf16-math-only", "--only", "host")
    assert done.returncode == 0, done.stderr
    return folder


def test_without_a_gpu_it_says_so_in_one_line(tmp_path):
    live("torch")
    done = run(tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert own_lines(done.stderr) == ["make_gpu: torch finds no GPU here; --device cpu is a dry run."]
    assert not (tmp_path / "out").exists()


def test_the_table_holds_what_was_asked_and_what_pytorch_says(folder):
    table = json.loads((folder / "gpu-truth.json").read_text())
    attention, host = table["cases"]
    assert (attention["name"], attention["says"]["choice"], attention["failed"]) == (
        "sdpa-bf16-math-only",
        "math",
        None,
    )
    assert attention["asked"]["only"] == ["math"]
    assert host["says"]["items_per_step"] == 20
    assert all((folder / case["trace"]).stat().st_size < 1_000_000 for case in table["cases"])


def test_the_check_agrees_and_finds_what_differs(folder):
    done = run(folder, "--check")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "2 of 2 traces agree; 0 cases could not be recorded.")
    path = folder / "gpu-truth.json"
    text = path.read_text()
    table = json.loads(text)
    table["cases"][0]["says"]["choice"] = "flash"
    table["cases"][1]["says"]["items_per_step"] = 21
    path.write_text(json.dumps(table))
    done = run(folder, "--check")
    path.write_text(text)
    assert done.returncode == 1
    assert "math found, the framework says flash" in done.stdout
    assert "60 reads of one number found, 63 planted" in done.stdout


def test_without_a_recording_nothing_is_compared(tmp_path):
    done = run(tmp_path, "--check")
    assert done.returncode == 2
    assert own_lines(done.stderr)[0].endswith("gpu-truth.json does not exist: record first.")


def test_the_jax_half(tmp_path):
    live("jax")
    done = run(tmp_path, "--framework", "jax", "--device", "cpu", "--only", "jax-attention-xla")
    assert done.returncode == 0, done.stderr
    done = run(tmp_path, "--check")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "1 of 1 traces agree; 0 cases could not be recorded.")
