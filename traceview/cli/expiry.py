"""Days on the command line: today, and the last day on which something is accepted."""

from __future__ import annotations

import argparse
from datetime import UTC, date, datetime


def day(text: str) -> date | str:
    """An option value that is a date from today on, or ``never``."""
    if text == "never":
        return text
    try:
        last = date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date such as 2027-06-30, and not never") from None
    if last < today():
        raise argparse.ArgumentTypeError(f"{text} is over, so nothing would be accepted; give a later day, or never")
    return last


def today() -> date:
    """The day in UTC, so that every machine of a team agrees."""
    return datetime.now(tz=UTC).date()
