"""Whole numbers in text that a trace holds: names of ranges, planes and threads are whatever their author wrote."""

from __future__ import annotations

from typing import Final

MOST: Final = 10**15
"""Larger numbers count nothing in a program; sums of a few below it fit every integer column."""


def read_number(text: str | None, most: int = MOST) -> int | None:
    """The number that ASCII digits write; ``None`` for any other text, and for one above ``most``.

    Args:
        text: What was matched in a name, of any length.
        most: The largest number that is taken.
    """
    if not text or not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0") or "0"
    # Python refuses to read thousands of digits, so their number is looked at first.
    if len(digits) > len(str(most)):
        return None
    number = int(digits)
    return number if number <= most else None
