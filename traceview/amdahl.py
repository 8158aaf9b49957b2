"""What a change of one part can win: Amdahl's law.

The figures are ceilings of one change alone. They do not add: the share of a stage grows when another one shrinks.
Three times faster on a stage of 10 % saves 6.7 %.
"""

from __future__ import annotations


def speedup(share: float, factor: float) -> float | None:
    """How much faster the whole gets if a part gets ``factor`` times faster: ``1 / ((1 - p) + p / s)``.

    Args:
        share: Part of the whole time, 0 to 1.
        factor: How many times faster; ``float("inf")`` removes the part.

    Returns:
        The speedup, ``None`` if nothing would be left (the part is the whole and is removed).
    """
    left = (1 - share) + share / factor
    return 1 / left if left > 0 else None


def speedup_by(wall_ns: int, saved_ns: int) -> float | None:
    """How much faster the whole gets if some of its time is saved; ``None`` if nothing would be left."""
    return wall_ns / (wall_ns - saved_ns) if saved_ns < wall_ns else None
