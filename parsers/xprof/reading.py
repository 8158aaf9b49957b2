"""One file, of either sort, into a timeline."""

from __future__ import annotations

import re
from mmap import ACCESS_READ, mmap
from typing import TYPE_CHECKING, Final

from traceview.errors import UnreadableTraceError
from traceview.memory import release_free
from traceview.parsers.kineto.source import GZIP_MAGIC, Source

from .mapping import to_timeline
from .source import SourceFile
from .space import read_space

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from traceview.timeline import Timeline

    from .wire import Data


def read(path: Path, *, run: int, progress: Callable[[float], None] | None) -> Timeline:
    """Read ``.xplane.pb`` or ``.trace.json``, packed or not; which of them it is, is told by its content.

    Raises:
        UnreadableTraceError: nothing could be read.
    """
    try:
        with open(path, "rb") as file:
            start = file.read(64)
            packed = start.startswith(GZIP_MAGIC)
            data: Data = b"" if packed or _is_json(start) else mmap(file.fileno(), 0, access=ACCESS_READ)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableTraceError("cannot-open", where=str(path), why=f"The file cannot be read: {reason}.") from None
    unpacked, cut = _unpacked(path) if packed else (None, False)
    if _is_json(start) or (packed and unpacked is None):
        from .trace_json import read_viewer_file

        viewer = read_viewer_file(path, progress=progress)
        return to_timeline(
            viewer.space, path, run=run, source=SourceFile.at(path), notes=viewer.notes, truncated=viewer.truncated
        )
    return _read_xspace(
        path, data if unpacked is None else unpacked, run=run, unpacked=unpacked, cut=cut, progress=progress
    )


def _read_xspace(
    path: Path, data: Data, *, run: int, unpacked: bytes | None, cut: bool, progress: Callable[[float], None] | None
) -> Timeline:
    space = read_space(data, progress=progress)
    if not space.planes:
        raise UnreadableTraceError(
            "xplane-damaged",
            where=str(path),
            why=f"no plane of this XSpace file (xplane.pb) is whole: it breaks off or is damaged at byte "
            f"{space.cut_at or 0:,} of {len(data):,}.",
            next_step="The copy is cut off or the profiler did not finish; copy or record it again.",
        )
    release_free()
    # The mapping must hold the only reference, so that it can let go of planes one by one.
    holder = [space]
    del space
    timeline = to_timeline(holder.pop(), path, run=run, source=SourceFile.at(path, unpacked), truncated=cut)
    release_free()
    return timeline


_JSON: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{\s*(?:[\"}]|$)|\[\s*(?:[{\]]|$))")


def _is_json(start: bytes) -> bool:
    """Whether it begins like a JSON object or list.

    An XSpace begins with a line feed and the length of its first plane, which can be that of a brace.
    """
    return _JSON.match(start) is not None


def _unpacked(path: Path) -> tuple[bytes | None, bool]:
    """Decompressed content of a packed XSpace and whether it breaks off; ``None`` if it is JSON, which is streamed."""
    source = Source(path)
    try:
        blocks = [source.read(1 << 22)]
        if _is_json(blocks[0][:64]):
            return None, False
        while block := source.read(1 << 22):
            blocks.append(block)
        return b"".join(blocks), source.truncated
    finally:
        source.close()
