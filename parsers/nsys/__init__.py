"""Nsight Systems: SQLite exports, folders of Parquet or Arrow tables, and raw reports through ``nsys`` itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from traceview.formats import Probe
    from traceview.timeline import Timeline

_SQLITE: Final = b"SQLite format 3\x00"
_REPORT: Final = b"NVIDIA Tegra Profiler Report"


class NsysFormat:
    """Entry point of the format; heavy imports wait until a file is parsed."""

    name = "nsys"
    title = "Nsight Systems"

    def sniff(self, probe: Probe) -> float:
        """By the header of a raw report, or by the tables of a database."""
        if probe.head.startswith(_REPORT):
            return 1.0
        if not probe.head.startswith(_SQLITE):
            return 0.0
        from traceview.parsers.nsys.sniffing import is_export

        return 0.95 if is_export(probe.path) else 0.0

    def sniff_folder(self, folder: Path) -> float:
        """By the tables of an export of one file per table; see :class:`traceview.formats.FolderFormat`."""
        from traceview.parsers.nsys.directory import is_export

        return 0.95 if is_export(folder) else 0.0

    def parse(self, path: Path, *, run: int, progress: Callable[[float], None] | None) -> Timeline:
        """Read one file or folder; see :meth:`traceview.formats.Format.parse`."""
        from traceview.memory import release_free
        from traceview.parsers.nsys.reader import read

        timeline = read(path, run=run, progress=progress)
        release_free()
        return timeline

    def depends_on_more(self, path: Path) -> bool:
        """A raw report is read through ``nsys``, or an export beside it; see :mod:`traceview.formats`."""
        if path.is_dir():
            return False
        with path.open("rb") as file:
            return file.read(len(_REPORT)) == _REPORT


FORMAT = NsysFormat()
