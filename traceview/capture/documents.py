"""What is written down about a recording, and where."""

from __future__ import annotations

import json
import os
import uuid
from typing import TYPE_CHECKING, Any

from traceview.capture_info import CaptureInfo, is_name, is_plain
from traceview.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from traceview.capture_info import Setting


def new_session() -> str:
    """A unique id that says nothing about machine or user."""
    return uuid.uuid4().hex


def checked_contract(contract: Mapping[str, Any] | None) -> dict[str, Setting]:
    """What the user says was measured, as plain values.

    Raises:
        UsageError: a name or a value cannot be written down.
    """
    found: dict[str, Setting] = {}
    for name, value in (contract or {}).items():
        if not is_name(name) or not is_plain(value):
            raise UsageError(
                "bad-contract",
                where=f"contract {str(name)[:60]!r}",
                why="is no name with a short text, number, switch or list of texts.",
                next_step='Give plain values, such as contract={"dtype": "bfloat16", "batch": 8}.',
            )
        found[name] = tuple(value) if isinstance(value, list | tuple) else value
    return found


def write_sidecar(trace: str | os.PathLike[str], info: CaptureInfo) -> Path:
    """Write the sidecar of a trace, whole or not at all."""
    # Polars comes with it, which a program that only marks stages does not wait for.
    from traceview.sidecars import sidecar_of

    path = sidecar_of(trace)
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(json.dumps(info.document(), indent=1) + "\n", encoding="utf-8")
    os.replace(unfinished, path)
    return path


def checked_path(path: str | os.PathLike[str]) -> str:
    """Where the trace goes.

    Raises:
        UsageError: it cannot go there.
    """
    text = os.fspath(path)
    folder = os.path.dirname(text) or "."
    if not text or os.path.isdir(text):
        raise UsageError("bad-path", where=text, why="is no name for a file.", next_step="Give the file to write.")
    if not os.path.isdir(folder):
        raise UsageError("no-folder", where=folder, why="is no folder.", next_step="Make it first.")
    return text
