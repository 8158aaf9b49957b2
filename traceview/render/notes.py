"""Remarks on a result as the last table of its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.render.grids import Grid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.report_parts import PartNote


def notes_grid(notes: Sequence[PartNote]) -> Grid | None:
    """The remarks, each once; ``None`` without any."""
    return sentences_grid([note.text for note in notes])


def sentences_grid(said: Sequence[str]) -> Grid | None:
    """The same of texts."""
    texts = dict.fromkeys(_sentence(text) for text in said)
    return Grid("Notes", (), [], items=tuple(texts)) if texts else None


def _sentence(text: str) -> str:
    text = f"{text[:1].upper()}{text[1:]}"
    return text if text.endswith(".") else f"{text}."
