"""What a limit is about, as measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measure:
    """What a limit is about, as measured.

    Attributes:
        value: The measured value; ``None`` if the trace does not tell.
        words: What was seen, or why it is not told.
        doubt: Why the true value may be higher; ``None`` if it cannot be.
        at_most: The highest that it can be then; ``None`` if that is not known.
    """

    value: float | None
    words: str
    doubt: str | None = None
    at_most: float | None = None
