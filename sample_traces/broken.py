"""Broken twins."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def build(folder: Path) -> list[Path]:
    """Write them below ``folder``."""
    del folder
    return []
