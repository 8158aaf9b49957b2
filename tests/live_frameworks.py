"""The frameworks that live tests record with: installed by `make live`, absent where that could not be done."""

from __future__ import annotations

import importlib
import os
import warnings
from typing import Any

import pytest


def live(name: str) -> Any:
    """A framework, or a skip that says how to get it.

    `make test` sets TRACEVIEW_LIVE after it has installed them: then one that cannot be imported is a failure, so that
    a broken installation does not pass for a green run.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # What a framework says when it is imported is no matter of these tests.
        if os.environ.get("TRACEVIEW_LIVE"):
            return importlib.import_module(name)
        return pytest.importorskip(name, reason=f"{name} is not installed: make live", exc_type=ImportError)
