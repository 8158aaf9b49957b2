"""A share of one in words: the same style in every sentence and table that a person reads."""

from __future__ import annotations


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
