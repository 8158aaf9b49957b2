"""What all tests share: where the external traces are, and how Hypothesis behaves."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parent.parent

# `sample_traces` is no installed package: tests get its trace builder by path. The root of the checkout must not be
# on sys.path, where `parsers/` would be a package of its own.
_spec = importlib.util.spec_from_file_location("sample_traces", ROOT / "sample_traces" / "__init__.py")
assert _spec is not None
assert _spec.loader is not None
sys.modules["sample_traces"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sys.modules["sample_traces"])

# No test, and no program that a test starts, touches the cache of the user who runs it.
os.environ["TRACEVIEW_NO_CACHE"] = "1"

# The same examples on every machine, and no failure because a shared machine was slow for a moment.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=100)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real traces, which is no part of the repository; the test is skipped without it."""
    folder = Path(os.environ.get("TRACEVIEW_CORPUS") or ROOT.parent / "shared" / "corpus")
    if not folder.is_dir():
        pytest.skip("no real traces here: set TRACEVIEW_CORPUS to their folder")
    return folder


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return ROOT
