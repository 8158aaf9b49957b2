"""What sort of file is this? Looks at content, asks every installed parser, and names what none of them reads."""

from __future__ import annotations

import importlib.metadata
import os
import stat
from typing import TYPE_CHECKING, Final

from traceview import foreign
from traceview.errors import TraceviewError, UnreadableTraceError, UsageError
from traceview.formats import ENTRY_POINT_GROUP, FolderFormat, Format, Probe

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HEAD_BYTES: Final = 64 * 1024
"""How much of a file, and of its decompressed text, a parser sees when it is asked."""

GZIP_MAGIC: Final = b"\x1f\x8b"

SURE: Final = 0.5
"""A parser that answers less than this does not claim the file."""


class BrokenParserError(TraceviewError):
    """An installed parser plug-in cannot be imported."""


def installed_formats() -> tuple[Format, ...]:
    """Every parser offered under the entry-point group ``traceview.parsers``, sorted by name.

    Raises:
        BrokenParserError: a plug-in cannot be imported; the message names it.
    """
    formats = []
    for entry in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
        try:
            formats.append(entry.load())
        except (ImportError, AttributeError) as error:
            raise BrokenParserError(
                "broken-parser",
                where=f"parser {entry.name!r} ({entry.value})",
                why=f"cannot be imported: {error}.",
                next_step="Repair or uninstall the package that provides it.",
            ) from error
    return tuple(sorted(formats, key=lambda known: known.name))


def probe(path: Path) -> Probe:
    """Read the head of a file, decompressed if it is gzip.

    Raises:
        UsageError: the file does not exist, is no regular file, or may not be read.
        UnreadableTraceError: the file is empty, or says it is gzip and cannot be decompressed at all.
    """
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(
                "not-a-file",
                where=str(path),
                why="is a folder." if stat.S_ISDIR(status.st_mode) else "is a pipe or device, not a regular file.",
                next_step="Save the trace to a file and give its path.",
            )
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
    except FileNotFoundError:
        raise UsageError(
            "no-such-file", where=str(path), why="no such file or folder.", next_step="Check the path."
        ) from None
    except PermissionError:
        raise UsageError(
            "no-permission", where=str(path), why="may not be read: permission denied.", next_step="Check its mode."
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError("cannot-open", where=str(path), why=f"cannot be opened: {reason}.") from None
    if not head:
        raise UnreadableTraceError(
            "empty-file",
            where=str(path),
            why="the file is empty (0 bytes).",
            next_step="The profiler probably did not finish writing; record the trace again.",
        )
    if not head.startswith(GZIP_MAGIC):
        return Probe(path=path, size=status.st_size, head=head, text=head, compression="")
    text = decompressed_head(head)
    if not text:
        raise UnreadableTraceError(
            "bad-gzip",
            where=str(path),
            why="starts like a gzip file but nothing in it can be decompressed.",
            next_step="The file is damaged or cut off at its start; copy or record it again.",
        )
    return Probe(path=path, size=status.st_size, head=head, text=text, compression="gzip")


def decompressed_head(data: bytes, limit: int = HEAD_BYTES) -> bytes:
    """What can be decompressed from the start of a gzip stream, at most ``limit`` bytes.

    The input goes in piece by piece: a damaged stream must still yield what lies before the damage.
    """
    from isal import isal_zlib

    stream = isal_zlib.decompressobj(wbits=31)
    text = bytearray()
    for at in range(0, len(data), 512):
        try:
            text += stream.decompress(data[at : at + 512], limit - len(text))
        except isal_zlib.error:  # type: ignore[misc]  # the stub declares an instance
            break
        if len(text) >= limit or stream.eof:
            break
    return bytes(text)


def recognise(seen: Probe, formats: Sequence[Format]) -> Format:
    """The parser for a file.

    Args:
        seen: What :func:`probe` returned.
        formats: The installed parsers.

    Raises:
        UnreadableTraceError: no parser claims the file; the message says what it is and what to do.
    """
    scores = sorted(((known.sniff(seen), known) for known in formats), key=lambda pair: pair[0], reverse=True)
    best, winner = scores[0] if scores else (0.0, None)
    known = foreign.identify(seen)
    # A file of another tool often looks like a trace of ours too (Ascend writes the same JSON with the same op
    # names), so its own mark counts for more than a parser's general impression, unless the parser is for it.
    if winner is not None and best >= SURE and (known is None or known.format == winner.name):
        return winner
    readable = {one.name for one in formats}
    raise foreign.refusal(seen, known or foreign.fallback(seen), readable)


def recognise_folder(folder: Path, formats: Sequence[Format]) -> Format | None:
    """The parser for which a whole folder is one trace, ``None`` if it is just a folder.

    Args:
        folder: The folder.
        formats: The installed parsers.
    """
    claims = [(known.sniff_folder(folder), known) for known in formats if isinstance(known, FolderFormat)]
    best, winner = max(claims, key=lambda pair: pair[0], default=(0.0, None))
    return winner if best >= SURE else None
