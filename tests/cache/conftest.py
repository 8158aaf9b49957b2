"""A cache in a folder of the test, and a trace to read through it."""

from __future__ import annotations

import pytest

import traceview.cache_memory
from settled_trace import SAMPLE, settled
from traceview.cache import Cache


@pytest.fixture
def remarks():
    return []


@pytest.fixture
def cache(tmp_path, remarks):
    """A cache that keeps everything, however long it takes: no test depends on how busy the machine is."""
    return Cache(tmp_path / "cache", worth_seconds=0, least_bytes=0, detail_share=1e9, remark=remarks.append)


@pytest.fixture
def trace(tmp_path):
    """A copy that was written some time ago."""
    path = tmp_path / "trace.json.gz"
    path.write_bytes(SAMPLE.read_bytes())
    return settled(path)


@pytest.fixture(autouse=True)
def _old_files_are_settled(monkeypatch):
    # No test can set the time of the last change of anything, which the cache looks at too.
    monkeypatch.setattr(traceview.cache_memory, "SETTLED_NS", 0)


@pytest.fixture
def parsed(monkeypatch):
    """Counts how often a trace was really read."""
    from traceview import loading

    count = []
    read = loading._read
    monkeypatch.setattr(loading, "_read", lambda *args: count.append(1) or read(*args))
    return count
