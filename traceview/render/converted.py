"""What ``traceview convert`` wrote, in words and as a JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from traceview.render.names import plain
from traceview.render.transfer_text import size
from traceview.render.units import counted

if TYPE_CHECKING:
    from traceview.exporting.convert import Converted
    from traceview.timeline import Timeline

_WORDS: Final = {
    "parquet": "a Parquet file",
    "perfetto": "a Perfetto trace",
    "chrome": "Chrome trace JSON",
}
_NEXT: Final = {
    "parquet": "Any reader of Parquet reads it, and traceview loads it as it loads a trace.",
    "perfetto": "Open it at https://ui.perfetto.dev; it stays in your browser.",
    "chrome": "Open it at https://ui.perfetto.dev or chrome://tracing; it stays in your browser.",
}


def converted_text(result: Converted) -> str:
    """A few lines: what was written, what to know, what to do with it."""
    what = _WORDS[result.form.value]
    lines = [f"wrote {plain(str(result.path))}: {counted(result.events, 'event')} as {what}, {size(result.bytes)}."]
    if result.moved:
        overlap, lie = ("overlaps", "lies") if result.moved == 1 else ("overlap", "lie")
        lines.append(
            f"{counted(result.moved, 'slice')} {overlap} others of the same track without nesting and {lie} on a track "
            "beside it."
        )
    return "\n".join([*lines, _NEXT[result.form.value], ""])


def converted_document(result: Converted, timeline: Timeline) -> dict[str, Any]:
    """``traceview.convert/1``."""
    return {
        "schema": "traceview.convert/1",
        "files": [str(run.path) for run in timeline.runs],
        "output": str(result.path),
        "format": result.form.value,
        "events": result.events,
        "bytes": result.bytes,
        "overlapping": result.moved,
    }
