"""``traceview capture torch`` and ``jax``: a program is run unchanged, and what it did is in the trace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from live_frameworks import live
from traceview import load
from traceview.stages import assign_stages

pytestmark = pytest.mark.slow

TORCH = """
import os, sys, time
from pathlib import Path
import torch
from traceview.capture import stage
import beside
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    with stage("train"):
        model(torch.ones(3, 8)).sum().backward()
        optimizer.step()
print("argv", sys.argv[1:], __name__, beside.WORD)
sys.stdout.flush()
if sys.argv[1] == "raise":
    raise ValueError("planted")
if sys.argv[1] == "exit":
    sys.exit(7)
if sys.argv[1] == "wait":
    Path("ready").touch()
    time.sleep(600)
"""
JAX = """
import jax
jax.config.update("jax_platforms", "cpu")  # Fails once a backend is up: nothing may have started one.
import jax.numpy as jnp
compiled = jax.jit(lambda x: x @ x)
for _ in range(3):
    compiled(jnp.ones((64, 64))).block_until_ready()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TORCH)
    (tmp_path / "infer.py").write_text(JAX)
    (tmp_path / "beside.py").write_text("WORD = 'beside'\n")
    return tmp_path


TRACEVIEW = Path(sys.executable).with_name("traceview")


def capture(*arguments):
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [TRACEVIEW, "capture", *arguments], check=False, capture_output=True, text=True, timeout=600, env=environment
    )


def said(done):
    """What traceview said, without what the frameworks write to standard error."""
    return [line for line in done.stderr.splitlines() if line.startswith("traceview: ")]


def test_the_steps_of_an_optimizer_and_the_exit_code(folder):
    live("torch")
    done = capture(
        "torch", "-o", "t.json.gz", "--steps", "3", "--warmup", "1", "--contract", "model=linear", "--format", "json",
        "--", sys.executable, "train.py", "exit", "--flag",
    )  # fmt: skip
    assert done.returncode == 7
    answer = json.loads(done.stdout)
    assert (answer["program"], answer["exit_code"], answer["trace"]) == ("train.py", 7, "t.json.gz")
    assert (answer["steps"], answer["notes"]) == (3, [])
    assert answer["recorded_s"] > 0, "also when the last step ended it"
    assert answer["next"] == ["traceview report t.json.gz"]
    assert "argv ['exit', '--flag'] __main__ beside" in done.stderr
    timeline = load("t.json.gz")
    info = timeline.runs[0].capture
    assert (info.steps, info.warmup_calls, dict(info.contract)) == (3, 1, {"model": "linear"})
    assert sorted(set(timeline.events["step"].drop_nulls())) == [1, 2, 3]
    assert "train" in set(assign_stages(timeline).ranges["stage"])
    assert "--flag" not in str(timeline.runs)


def test_what_is_not_as_asked_for_is_said(folder):
    live("torch")
    (folder / "top.py").write_text("import torch\ntorch.backends.cuda.enable_flash_sdp(False)\n" + TORCH)
    done = capture("torch", "-o", "t.json", "--steps", "9", "--", "top.py", "end")
    assert done.returncode == 0
    few, changed, wrote = said(done)
    assert few == "traceview: note: only 5 of 9 steps were recorded: the program ended before the others."
    assert changed == (
        "traceview: note: sdpa.flash changed while it was recorded, so nobody knows which call saw which value. If the "
        "program sets it at its top, a recording that starts after the set-up has one value (--delay, or --steps with "
        "--warmup)."
    )
    assert "wrote t.json (" in wrote
    assert load("t.json").runs[0].capture.changed == ("sdpa.flash",)


def test_an_error_of_the_program_is_its_own_and_the_trace_is_there(folder):
    live("torch")
    done = capture("torch", "-o", "t.json", "--", "train.py", "raise")
    assert done.returncode == 1
    assert done.stdout == "argv ['raise'] __main__ beside\n"
    assert "ValueError: planted" in done.stderr
    assert "bootstrap" not in done.stderr
    assert "runpy" not in done.stderr
    (line,) = said(done)
    assert line.startswith("traceview: train.py ended with exit code 1; wrote t.json (")
    assert line.endswith(" s recorded). Next: traceview report t.json")
    assert load("t.json").runs[0].capture.steps is None


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="signals of POSIX")
def test_a_program_that_is_stopped_leaves_its_trace(folder):
    live("torch")
    with subprocess.Popen(
        [TRACEVIEW, "capture", "torch", "-o", "t.json", "--", "train.py", "wait"],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    ) as running:  # fmt: skip
        while not (folder / "ready").exists() and running.poll() is None:
            time.sleep(0.05)
        running.send_signal(signal.SIGTERM)
        err = running.communicate(timeout=300)[1]
    assert running.returncode == 128 + signal.SIGTERM
    assert "train.py ended with exit code 143; wrote t.json" in err
    assert "train" in set(assign_stages(load("t.json")).ranges["stage"])


def test_jax_starts_with_the_first_work_of_the_program(folder):
    live("jax")
    done = capture("jax", "-o", "t.xplane.pb", "--", sys.executable, "-m", "infer")
    assert (done.returncode, done.stdout) == (0, "")
    assert said(done)[0].startswith("traceview: infer ended with exit code 0; wrote t.xplane.pb (")
    timeline = load("t.xplane.pb")
    assert timeline.runs[0].capture.framework == "jax"
    assert timeline.device_work.height >= 3


def test_a_delay_that_is_never_over_says_so(folder):
    live("jax")
    done = capture("jax", "-o", "t.xplane.pb", "--delay", "50", "--", "infer.py")
    assert done.returncode == 2
    (line,) = said(done)
    assert line == (
        "traceview: infer.py ended with exit code 0: the program ended before --delay 50 s was over without anything to "
        "record, so there is no trace."
    )
    assert not (folder / "t.xplane.pb").exists()


def test_a_python_without_traceview_says_so(folder):
    fake = folder / "python3"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    done = capture("torch", "-o", "t.json", "--", str(fake), "train.py")
    assert done.returncode == 2
    (line,) = said(done)
    assert line == (
        f"traceview: error: {fake}: this Python could not start the recording. Is traceview installed in it? "
        "(python -m pip install traceview)"
    )
