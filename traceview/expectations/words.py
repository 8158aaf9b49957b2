"""Numbers in the sentences of judgements."""

from __future__ import annotations


def time(ns: int) -> str:
    """A duration in ms, with digits that suit its size."""
    return f"{ns / 1e6:.3f} ms" if ns < 10**8 else f"{ns / 1e6:,.1f} ms"


def calls(count: int, what: str = "call", several: str = "") -> str:
    """``1 call``, ``1,234 calls``; ``several`` is the plural where it is not the word with an ``s``."""
    return f"{count:,} {what if count == 1 else several or what + 's'}"
