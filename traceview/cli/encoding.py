"""What a terminal or log gets whose encoding does not hold a character."""

from __future__ import annotations

import codecs
from typing import Final, TextIO

PLAIN_FOR: Final = {
    "×": "x", "…": "...", "→": "->", "–": "-", "—": "-", "−": "-", "µ": "u", "’": "'",
    "•": "-", "✓": "+", "✗": "x", "≥": ">=", "≤": "<=", "≠": "!=", "\u00a0": " ",
}  # fmt: skip
"""Characters of our own texts and how they are written in ASCII. Every other one becomes ``?``."""

_HANDLER: Final = "traceview-plain"


def tolerate(stream: TextIO) -> None:
    """Let ``stream`` write a stand-in for what its encoding does not hold: that is no reason to fail."""
    codecs.register_error(_HANDLER, _stand_in)
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors=_HANDLER)


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    failed = error.object[error.start : error.end]
    return "".join(PLAIN_FOR.get(character, "?") for character in failed), error.end
