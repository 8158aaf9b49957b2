"""Remarks on a result as the last table of its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.render.grids import Grid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.report_parts import PartNote


def notes_grid(notes: Sequence[PartNote]) -> Grid | None:
    """The remarks, each once; ``None`` without any."""
    texts = dict.fromkeys(_sentence(note.text) for note in notes)
    return Grid("Notes", (), [], tuple(f"- {text}" for text in texts)) if texts else None


def _sentence(text: str) -> str:
    text = f"{text[:1].upper()}{text[1:]}"
    return text if text.endswith(".") else f"{text}."
