"""Timelines that traceview wrote itself: one Parquet file each, see ``docs/timeline-file.md``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from traceview.formats import Probe
    from traceview.timeline import Timeline

_MAGIC: Final = b"PAR1"


class TimelineFormat:
    """Entry point of the format; heavy imports wait until a file is parsed."""

    name = "timeline"
    title = "traceview timeline (Parquet)"
    finished = True

    def sniff(self, probe: Probe) -> float:
        """By the mark in the metadata of a Parquet file, which lies at its end."""
        if not probe.head.startswith(_MAGIC):
            return 0.0
        from traceview.timeline_file import marked

        return 1.0 if marked(probe.path) else 0.0

    def parse(self, path: Path, *, run: int, progress: Callable[[float], None] | None) -> Timeline:  # noqa: ARG002 - the contract of every format; a timeline is alone, and read at once
        """Read a timeline with all its runs; see :meth:`traceview.formats.Format.parse`."""
        from traceview.errors import UnreadableTraceError
        from traceview.timeline_facts import UnfitFileError
        from traceview.timeline_file import read

        try:
            return read(path)[0]
        except UnfitFileError as error:
            raise UnreadableTraceError(
                "timeline-unfit",
                where=str(path),
                why=f"this timeline file cannot be read: {error}.",
                next_step="Convert the trace again with the traceview that is installed.",
            ) from error


FORMAT = TimelineFormat()
