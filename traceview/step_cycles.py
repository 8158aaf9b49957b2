"""Steps of a program that marks none, but whose stages follow each other in the same order again and again."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEAST_CYCLES: Final = 3
_LEAST_EQUAL: Final = 0.8
_MOST_NAMES: Final = 30


def find_cycles(stages: pl.DataFrame) -> pl.DataFrame:
    """Rounds of stages: from the start of the first to the end of the last stage of a round.

    A round begins with the stage that makes the most rounds alike. Several calls of one stage in a row count as one.

    Args:
        stages: Outermost ranges of stages: columns of the events, and ``stage``.

    Returns:
        The first range of each round, ``dur_ns`` up to the end of its last one; no rows if fewer than three rounds, or
        less than four of five, are alike, or if only one stage is there.
    """
    found = [_of_thread(rows) for _, rows in stages.sort("start_ns").group_by("thread", maintain_order=True)]
    found = [rows for rows in found if rows.height]
    return max(found, key=lambda rows: int(rows["dur_ns"].sum())) if found else stages.clear()


def _of_thread(rows: pl.DataFrame) -> pl.DataFrame:
    names = rows["stage"].to_list()
    distinct = list(dict.fromkeys(names))
    if not 1 < len(distinct) <= _MOST_NAMES:
        return rows.clear()
    best: tuple[int, list[int]] = (0, [])
    for leader in distinct:
        starts = [at for at, name in enumerate(names) if name == leader and (at == 0 or names[at - 1] != leader)]
        alike = _alike(names, starts)
        if alike > best[0]:
            best = (alike, starts)
    alike, starts = best
    if alike < _LEAST_CYCLES or alike < _LEAST_EQUAL * len(starts):
        return rows.clear()
    ends = (rows["start_ns"] + rows["dur_ns"]).to_list()
    last = [max(ends[first:stop]) for first, stop in zip(starts, [*starts[1:], len(names)], strict=True)]
    chosen = rows[starts]
    return chosen.with_columns(dur_ns=pl.Series(last, dtype=pl.Int64) - chosen["start_ns"])


def _alike(names: Sequence[str], starts: Sequence[int]) -> int:
    """How many rounds have the most common order of at least two stages."""
    rounds = [
        tuple(name for name, _ in groupby(names[first:stop]))
        for first, stop in zip(starts, [*starts[1:], len(names)], strict=True)
    ]
    return max((n for order, n in Counter(rounds).items() if len(order) > 1), default=0)
