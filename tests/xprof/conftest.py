"""Profiles to read: authored ones, and real ones by path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from traceview.timeline import Timeline


@pytest.fixture(scope="session")
def profiles(corpus: Path) -> Path:
    """The folder of real XProf profiles."""
    return corpus / "xprof"


@pytest.fixture
def loaded(tmp_path) -> Callable[..., Timeline]:
    """Write bytes to a file and load it."""
    import traceview

    def load(data: bytes, name: str = "host.xplane.pb") -> Timeline:
        path = tmp_path / name
        path.write_bytes(data)
        timeline = traceview.load(path)
        timeline.validate()
        return timeline

    return load
