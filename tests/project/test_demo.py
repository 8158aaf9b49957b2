"""``make demo`` tells the whole story: what ran, why, what to change, and that the change was one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def demo(repository):
    def run(trace):
        environment = {**os.environ, "BIN": str(Path(sys.executable).parent), "NO_COLOR": "1"}
        return subprocess.run(
            ["bash", "tools/demo.sh", trace],
            cwd=repository, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


def test_the_story_from_the_failure_to_the_fix(demo, repository):
    makefile = (repository / "Makefile").read_text()
    (trace,) = [line.split("?= ")[1] for line in makefile.splitlines() if line.startswith("DEMO_TRACE")]
    done = demo(trace)
    assert (done.returncode, done.stderr) == (0, "")
    told = [
        "== What ran?", "Authored, not measured.", "FAIL: 6 SDPA calls fell back to math", "Exit status 1:",
        "== Why, and what is to change?", "flash by F1: query, key and value are float32.", "change    flash: Run attention in",
        "== And after the change?", "Authored, not measured.", "PASS: every attention call ran fused (9 flash-2).",
        "Exit status 0:", "== What was it worth?", "denoise           3  24.085", "denoise           3  3.092", "Next:",
    ]  # fmt: skip
    at = 0
    for words in told:
        assert words in done.stdout[at:], words
        at = done.stdout.index(words, at) + len(words)


def test_another_trace_is_asked_alone(demo):
    done = demo("sample_traces/mixed-backends.cuda-authored.json")
    assert done.returncode == 0
    assert "Exit status 0:" in done.stdout
    assert "== And after" not in done.stdout


def test_what_cannot_be_read_ends_it(demo):
    done = demo("sample_traces/bad/empty.json")
    assert done.returncode == 2
    assert "The demo could not run (exit status 2); the line above says why." in done.stderr
    assert "Next:" not in done.stdout
