"""From a path to the tables behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.parsers.nsys.database import Database
from traceview.parsers.nsys.directory import Directory
from traceview.parsers.nsys.mapping import to_timeline
from traceview.parsers.nsys.rep_file import exported, is_report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from traceview.parsers.nsys.tables import Tables
    from traceview.timeline import Timeline


def read(path: Path, *, run: int, progress: Callable[[float], None] | None, engine: str | None = None) -> Timeline:
    """Read an export, or a raw report through ``nsys``.

    Args:
        path: A database, a folder of tables, or a raw report.
        run: Index of the file in this load.
        progress: Called with the share that was read.
        engine: How a database is read: ``"adbc"``, ``"sqlite3"``, or ``None`` for the fastest that is installed.

    Raises:
        UnreadableTraceError: nothing could be read; the message says why and what to do.
    """
    if path.is_dir():
        return to_timeline(lambda: Directory(path), path, run=run, progress=progress)
    source = exported(path, progress) if is_report(path) else path

    def tables() -> Tables:
        return Database(source, engine)

    return to_timeline(tables, path, run=run, progress=progress)
