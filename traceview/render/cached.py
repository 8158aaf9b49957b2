"""The cache of loaded traces, in words and as a JSON document."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from traceview.render.names import plain
from traceview.render.transfer_text import size
from traceview.render.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.cache import Cache, Entry


def cache_text(cache: Cache, entries: Sequence[Entry] | None, cleared: tuple[int, int] | None) -> str:
    """A list of what is kept, what was removed, or the folder.

    Args:
        cache: The cache.
        entries: What is in it, if it was asked for.
        cleared: Number and bytes of what was removed, if that was asked for.
    """
    folder = plain(str(cache.folder))
    if cleared is not None:
        return f"removed {counted(cleared[0], 'cached trace')}, {size(cleared[1])}.\n"
    if entries is None:
        return f"{folder}\n"
    if not entries:
        return f"The cache is empty: {folder}\n"
    kept = f"{counted(len(entries), 'cached trace')}, {size(sum(entry.bytes for entry in entries))} of "
    rows = [
        (
            size(entry.source_bytes), size(entry.bytes), f"{entry.events:,}", f"{entry.seconds:.1f}",
            _day(entry.used_unix_s), entry.name + (f" and {entry.files - 1} more" if entry.files > 1 else ""),
        )
        for entry in entries
    ]  # fmt: skip
    table = [("trace", "cached", "events", "load s", "last used (UTC)", "name"), *rows]
    widths = [max(len(row[at]) for row in table) for at in range(5)]
    lines = [
        "  ".join([*(cell.rjust(width) for cell, width in zip(row, widths, strict=False)), plain(row[5])])
        for row in table
    ]
    return "\n".join([f"{kept}{size(cache.limit_bytes)} in {folder}", "", *lines, ""])


def _day(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M")


def cache_document(cache: Cache, entries: Sequence[Entry] | None, cleared: tuple[int, int] | None) -> dict[str, Any]:
    """``traceview.cache/1``."""
    listed = [
        {
            "name": entry.name,
            "files": entry.files,
            "source_bytes": entry.source_bytes,
            "bytes": entry.bytes,
            "events": entry.events,
            "load_s": entry.seconds,
            "used_unix_s": entry.used_unix_s,
        }
        for entry in entries or ()
    ]
    return {
        "schema": "traceview.cache/1",
        "folder": str(cache.folder),
        "limit_bytes": cache.limit_bytes,
        "entries": listed if entries is not None else None,
        "removed": cleared[0] if cleared else None,
        "removed_bytes": cleared[1] if cleared else None,
    }
