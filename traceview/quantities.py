"""A share of one and a time in words: the same style in every sentence and table that a person reads."""

from __future__ import annotations

from typing import Final

_NEARLY_A_SECOND: Final = 999_950_000
"""From here on four digits of milliseconds would round up to a second."""


def milliseconds(ns: int) -> str:
    """``"1.234 ms"``; from a second on ``"1.651 s"``, as every duration of a report is written."""
    if ns < _NEARLY_A_SECOND:
        return f"{ns / 1e6:,.3f} ms"
    seconds = ns / 1e9
    return f"{seconds:,.{max(0, 4 - len(str(int(seconds + 0.0005))))}f} s"


def percent(share: float) -> str:
    """A share of one, e.g. ``"73.1 %"``; what is not all is not shown as all, what is something not as nothing."""
    if 0 < share < 0.0005:
        return "<0.1 %"
    shown = min(share * 100, 99.9) if 0.9995 <= share < 1 else share * 100
    return f"{shown:.1f} %"


def signed_percent(share: float | None) -> str:
    """A change as a share of what was, with its sign: ``"+3.2 %"``, ``"-68.6 %"``; ``"-"`` where it is not known."""
    if share is None:
        return "-"
    sign = "+" if share > 0 else "-" if share < 0 else ""
    return f"{sign}{percent(abs(share))}" if abs(share) < 10 else f"{sign}{abs(share) * 100:,.0f} %"
