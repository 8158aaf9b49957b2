"""Command lines: which program is meant, and how nsys is asked for it."""

from __future__ import annotations

import argparse
import json
import shlex
import stat
import sys

import pytest

from traceview.capture.bootstrap import Outcome
from traceview.capture.command_lines import nsys_command, python_program
from traceview.cli import capture
from traceview.cli.main import main
from traceview.errors import UsageError


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    return "train.py"


@pytest.mark.parametrize(
    ("words", "options", "target", "module", "arguments"),
    [
        (["train.py", "--lr", "1"], (), "train.py", False, ("--lr", "1")),
        (["python3", "train.py"], (), "train.py", False, ()),
        ([sys.executable, "-u", "-X", "dev", "train.py", "-m"], ("-u", "-X", "dev"), "train.py", False, ("-m",)),
        (["python3", "-m", "pkg.train", "x"], (), "pkg.train", True, ("x",)),
    ],
)
def test_a_python_command_is_taken_apart(script, words, options, target, module, arguments):
    found = python_program(words)
    assert (found.options, found.target, found.module, found.arguments) == (options, target, module, arguments)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["torchrun", "train.py"], "torchrun: is no Python interpreter and no script"),
        (["python3"], "there is no script or module to run"),
        (["python3", "-c", "pass"], "there is no script or module to run"),
        (["python3", "missing.py"], "missing.py: there is no such file"),
        (["/nowhere/python3", "train.py"], "/nowhere/python3: there is no such program"),
    ],
)
def test_what_cannot_be_run_is_said(script, words, why):
    with pytest.raises(UsageError, match=why):
        python_program(words)


def test_nsys_is_asked_for_everything():
    words = nsys_command(["python", "a.py"], out="run.nsys-rep", graph_nodes=True, delay=2, duration=0.5)
    assert shlex.join(words) == (
        "nsys profile --trace=cuda,nvtx,osrt,cudnn,cublas --sample=none --cpuctxsw=none --output=run "
        "--force-overwrite=true --cuda-graph-trace=node --delay=2 --duration=0.5 python a.py"
    )


def test_ranges_of_nsys():
    assert "--capture-range=cudaProfilerApi" in nsys_command(["a"], out="o", capture_range="cuda")
    nvtx = nsys_command(["a"], out="o", capture_range="nvtx:traceview.stage:denoise")
    assert "--nvtx-capture=traceview.stage:denoise" in nvtx
    with pytest.raises(UsageError, match="is neither cuda nor nvtx:NAME"):
        nsys_command(["a"], out="o", capture_range="nvtx:")


# ---- the command


def test_print_runs_nothing(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["capture", "nsys", "--print", "--", "./app", "a b"]) == 0
    assert capsys.readouterr().out.endswith("--cuda-graph-trace=graph ./app 'a b'\n")
    assert main(["capture", "nsys", "--print", "--format", "json", "--", "./app"]) == 0
    assert json.loads(capsys.readouterr().out)["command"][:2] == ["nsys", "profile"]


def test_without_nsys_the_command_to_run_elsewhere_is_said(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["capture", "nsys", "--", "./app"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(
        "traceview: error: Nsight Systems (nsys) is not installed here. Where it is, run: nsys profile"
    )
    assert err.count("\n") == 1


@pytest.mark.parametrize("code", [0, 5])
def test_nsys_is_run_and_the_exit_code_handed_on(capfd, tmp_path, monkeypatch, code):
    monkeypatch.chdir(tmp_path)
    fake = tmp_path / "nsys"
    # Writes the report that its --output names, as nsys does.
    fake.write_text(
        f'#!{sys.executable}\nimport sys\nout = next(a for a in sys.argv if a.startswith("--output="))\n'
        f'open(out.split("=")[1] + ".nsys-rep", "w").write("x" * 2000)\nsys.exit({code})\n'
    )
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["capture", "nsys", "-o", "run", "--", "./app", "--secret"]) == code
    err = capfd.readouterr().err
    assert (
        err
        == f"traceview: app ended with exit code {code}; wrote run.nsys-rep (2.0 kB). Next: traceview report run.nsys-rep\n"
    )
    assert main(["capture", "nsys", "-o", "run", "--", "./app"]) == 2
    assert "run.nsys-rep: exists already." in capfd.readouterr().err


def test_an_old_report_is_not_taken_for_a_new_one(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fake = tmp_path / "nsys"
    fake.write_text("#!/bin/sh\nexit 0\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    (tmp_path / "run.nsys-rep").write_text("old")
    assert main(["capture", "nsys", "-o", "run", "--force", "--", "./app"]) == 2
    assert capfd.readouterr().err == (
        "traceview: app ended with exit code 0: nsys wrote no report; what it printed says why.\n"
    )


@pytest.mark.parametrize(
    ("asked", "outcome", "notes"),
    [
        (3, Outcome(steps=3), []),
        (None, Outcome(), []),
        (3, Outcome(steps=2), ["only 2 of 3 steps were recorded: the program ended before the others."]),
        (3, Outcome(), ["no step of an optimizer ran, so none of the 3 steps is marked: --steps counts those."]),
        (3, Outcome(error="no trace"), ["no trace"]),
    ],
)
def test_steps_that_did_not_run_are_said(asked, outcome, notes):
    options = argparse.Namespace(profiler="torch", steps=asked)
    assert [note["text"] for note in capture._notes(options, outcome)] == notes


def test_no_warm_up_may_be_asked_for(capsys):
    # Nothing runs: there is no such file.
    assert main(["capture", "torch", "--steps", "1", "--warmup=0", "--", "none.py"]) == 2
    assert "none.py: there is no such file." in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["capture", "torch", "--steps", "1", "--warmup=-1", "--", "none.py"])
    assert "'-1' is not a whole number from 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["jax", "--steps", "3"], "--steps: is not for jax but for torch."),
        (["torch", "--print"], "--print: is not for torch but for nsys."),
        (["torch", "--warmup", "1"], "--warmup: counts steps, so it needs --steps."),
        (["nsys", "--contract", "a=b"], "--contract: is not for nsys but for torch and jax."),
        (["torch", "-o", "nowhere/x.json"], "nowhere: is no folder."),
        (["torch", "--contract", "=x"], "contract '': is no name with a short text"),
    ],
)
def test_options_of_another_profiler_are_refused(capsys, script, arguments, why):
    assert main(["capture", *arguments, "--", "train.py"]) == 2
    assert why in capsys.readouterr().err
