"""The contract between the loader and a parser: how a format introduces itself.

A parser package offers one object that keeps :class:`Format` under the entry-point group
``traceview.parsers``; nothing else in traceview needs to know about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from traceview.timeline import Timeline

ENTRY_POINT_GROUP = "traceview.parsers"

SEARCH_LIMIT: Final = 256 * 1024 * 1024
"""How much decompressed text is searched when the head alone cannot tell."""

_BLOCK: Final = 1 << 20


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

    def holds(self, *marks: bytes, limit: int = SEARCH_LIMIT) -> bool:
        """Whether one of ``marks`` occurs in the text, beyond its head too: for the rare file whose head cannot tell.

        Args:
            marks: Of at most 64 bytes each.
            limit: How much decompressed text is searched.
        """
        tail = b""
        for block in self._text_blocks(limit):
            if any(mark in tail + block for mark in marks):
                return True
            tail = block[-64:]
        return False

    def _text_blocks(self, limit: int) -> Iterator[bytes]:
        """The text in pieces, up to ``limit``, or to where it cannot be decompressed."""
        from isal import isal_zlib

        stream = isal_zlib.decompressobj(wbits=31) if self.compression else None
        size = 0
        with self.path.open("rb") as file:
            packed = b""
            while size < limit and (packed or (packed := file.read(_BLOCK))):
                if stream is None:
                    text, packed = packed, b""
                else:
                    try:
                        # A block can stand for a thousand times its size, which need not be held at once.
                        text = stream.decompress(packed, _BLOCK)
                    except isal_zlib.error:  # type: ignore[misc]  # the stub declares an instance
                        return
                    packed = stream.unconsumed_tail
                    if stream.eof:
                        packed, stream = stream.unused_data, isal_zlib.decompressobj(wbits=31)
                size += len(text)
                yield text


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
