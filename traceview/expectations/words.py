"""Numbers in the sentences of judgements."""

from __future__ import annotations


def percent(share: float) -> str:
    """A share of one in per cent; what is not all is not shown as all, what is something not as nothing."""
    if 0 < share < 0.0005:
        return "<0.1 %"
    shown = min(share * 100, 99.9) if 0.9995 <= share < 1 else share * 100
    return f"{shown:.1f} %"


def time(ns: int) -> str:
    """A duration in ms, with digits that suit its size."""
    return f"{ns / 1e6:.3f} ms" if ns < 10**8 else f"{ns / 1e6:,.1f} ms"


def calls(count: int, what: str = "call") -> str:
    """``1 call``, ``1,234 calls``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
