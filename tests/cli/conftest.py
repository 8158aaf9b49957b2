"""Run the command line in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

import sample_traces
from traceview.cli.main import main


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def samples():
    return Path(sample_traces.__file__).parent


@pytest.fixture
def run(capsys, monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)

    def run_command(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as exit_:
            code = exit_.code
        captured = capsys.readouterr()
        return Done(int(code or 0), captured.out, captured.err)

    return run_command
