"""The contract between the loader and a parser: how a format introduces itself.

A parser package offers one object that keeps :class:`Format` under the entry-point group
``traceview.parsers``; nothing else in traceview needs to know about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from traceview.timeline import Timeline

ENTRY_POINT_GROUP = "traceview.parsers"


@dataclass(frozen=True, slots=True)
class Probe:
    """What the loader knows about a file before a parser sees it.

    Attributes:
        path: The file.
        size: Its size in bytes.
        head: Its first bytes (up to 64 KiB) as they are on disk.
        text: The same after decompression, if the file is compressed; equal to ``head`` otherwise.
        compression: ``"gzip"`` or ``""``.
    """

    path: Path
    size: int
    head: bytes
    text: bytes
    compression: str


class Format(Protocol):
    """One trace format."""

    name: str
    """Format id, e.g. ``"kineto"``."""
    title: str
    """Name for people, e.g. ``"PyTorch profiler (Kineto)"``."""

    def sniff(self, probe: Probe) -> float:
        """How sure this parser is that the file is of its format, 0 to 1, by content and never by name alone."""

    def parse(self, path: Path, *, run: int, progress: Callable[[float], None] | None) -> Timeline:
        """Read one file into a timeline.

        Launch attribution is not the parser's business: ``launch_id``, ``op_id``, ``parent_id``, ``step`` and
        ``stage`` stay null.

        Args:
            path: The file.
            run: Index of this file among the files of one load; becomes the ``run`` of its rows.
            progress: Called with the share of the file that has been read, 0 to 1; ``None`` for no reports.

        Raises:
            UnreadableTraceError: nothing could be read; the message says why and what to do.
        """


@runtime_checkable
class FolderFormat(Protocol):
    """What a format adds to :class:`Format` if one trace of it can be a folder: ``parse`` then gets the folder's path.

    A folder that a format claims is one trace; the loader does not look for traces inside it.
    """

    def sniff_folder(self, folder: Path) -> float:
        """How sure this parser is that the whole folder is one trace of its format, 0 to 1, by what lies in it."""


@runtime_checkable
class Choosing(Protocol):
    """What a format may offer beside :class:`Format`: to choose among its files of one folder.

    Some profilers write the same recording twice, or keep earlier runs beside the last one.
    """

    def choose(self, paths: Sequence[Path]) -> dict[Path, str]:
        """Which of these files are left out, each with the reason. Files that the user named are never asked about.

        Args:
            paths: Files of this format that were found in folders or by patterns.
        """


@runtime_checkable
class FinishedFormat(Protocol):
    """What a format says beside :class:`Format` if its files hold whole results of :func:`traceview.load`.

    Nothing is linked anew in them, and one of them is loaded by itself.
    """

    finished: bool


@runtime_checkable
class DependentFormat(Protocol):
    """What a format offers beside :class:`Format` if what it reads of a file can depend on more than this file.

    Such traces are never cached.
    """

    def depends_on_more(self, path: Path) -> bool:
        """Whether that is so of this file."""
