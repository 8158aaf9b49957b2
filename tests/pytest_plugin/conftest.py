"""Run a test file with pytest, the plugin found by its entry point as in any other project."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import sample_traces
import traceview
from traceview.expectations import reading  # noqa: F401
from traceview.gate import check
from traceview.parsers import kineto  # noqa: F401
from traceview.pytest_plugin import profiling, session_report  # noqa: F401
from traceview.render import documents, outputs  # noqa: F401

# pytester forgets the modules that an inner run imports, and NumPy and Polars cannot be imported twice: they, and what
# reads and judges, are imported here.
SAMPLES = Path(sample_traces.__file__).parent
SLOW = SAMPLES / "flash-requested-math-ran.cuda-authored.json.gz"
FAST = SAMPLES / "flash-requested-flash-ran.cuda-authored.json.gz"
NO_WORK = SAMPLES / "bad" / "no-work.json"
check(traceview.load(SLOW))


@pytest.fixture
def run(pytester, monkeypatch):
    """Write a test file, in which SLOW, FAST and NO_WORK are paths of traces, and run it in this process."""
    for name in ("CI", "GITHUB_ACTIONS", "FORCE_COLOR", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)

    def run_file(body, *arguments, subprocess=False):
        names = f"SLOW = {str(SLOW)!r}\nFAST = {str(FAST)!r}\nNO_WORK = {str(NO_WORK)!r}\nimport pytest\n"
        pytester.makepyfile(names + body)
        inner = pytester.runpytest_subprocess if subprocess else pytester.runpytest_inprocess
        # The warnings filters of this process are no part of the test.
        return inner("-p", "no:cacheprovider", "-W", "default", *arguments)

    return run_file


@pytest.fixture
def program(pytester):
    """Run the installed program in the folder of the test file."""

    def output(*arguments):
        done = pytester.run(Path(sys.executable).parent / "traceview", *arguments)
        return done.stdout.str()

    return output


@pytest.fixture
def without_torch(pytester, monkeypatch):
    """A `torch` that is not there, whether it is installed or not, for runs in a process of their own."""
    pytester.makepyfile(sitecustomize="import sys\nsys.modules['torch'] = None\n")
    path = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(pytester.path), *([path] if path else [])]))
