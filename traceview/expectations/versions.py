"""Versions as people write them."""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = re.compile(r"\d+(?:\.\d+){0,3}(?:[a-z.+-][0-9A-Za-z.+-]*)?")


def is_version(text: str) -> bool:
    """``2.9``, ``2.9.1`` and ``2.9.1+cu128`` are versions, ``latest`` is none."""
    return _VERSION.fullmatch(text) is not None
