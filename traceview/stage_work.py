"""The device work of each stage with all its parts.

It is kept as stretches of one sorted table, so that thousands of stages cost no more than a few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from traceview import intervals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class StageWork:
    """Device work by stage.

    Args:
        work: Columns ``stage``, ``device``, ``launch_id``, ``start_ns``, ``dur_ns``, ``device_ns``, ``floor_ns``; the
            last two are null where the floor is not known.
        paths: Every stage, those around others included.
    """

    def __init__(self, work: pl.DataFrame, paths: Sequence[str]) -> None:
        # In this order the parts of a stage follow it; plain text has `a-b` between `a` and `a/b`.
        order = sorted(paths, key=lambda path: path.split("/"))
        numbers = pl.DataFrame({"stage": order, "at": range(len(order))}, schema={"stage": pl.String, "at": pl.UInt32})
        rows = work.join(numbers, on="stage", how="inner", maintain_order="left").sort("at", maintain_order=True)
        self._at = rows["at"].to_numpy()
        self._number = {path: at for at, path in enumerate(order)}
        self._next = _ends(order)
        self._device = rows["device"].to_numpy()
        self._launch = rows["launch_id"].cast(pl.Int64).fill_null(-1).to_numpy()
        self._start, self._dur = rows["start_ns"].to_numpy(), rows["dur_ns"].to_numpy()
        self._known, self._floor = (rows[name].fill_null(0).to_numpy() for name in ("device_ns", "floor_ns"))

    def pieces(self, path: str) -> int:
        """How many pieces of device work it has."""
        mine = self._of(path)
        return int(mine.stop - mine.start)

    def launches(self, path: str) -> int:
        """How many host calls launched them."""
        called = self._launch[self._of(path)]
        return pl.Series(called[called >= 0]).n_unique()

    def union_ns(self, path: str) -> int:
        """Time in which any of it runs, summed over devices, ns."""
        mine = self._of(path)
        device, starts = self._device[mine], self._start[mine]
        ends = starts + self._dur[mine]
        return sum(intervals.total(starts[device == one], ends[device == one]) for one in np.unique(device))

    def floors(self, path: str) -> tuple[int, int, int]:
        """Device time; that of work of known floor; and the floor of that work, ns."""
        mine = self._of(path)
        return int(self._dur[mine].sum()), int(self._known[mine].sum()), int(self._floor[mine].sum())

    def _of(self, path: str) -> slice:
        first = self._number[path]
        low, high = np.searchsorted(self._at, [first, self._next[first]])
        return slice(int(low), int(high))


def _ends(order: Sequence[str]) -> NDArray[np.intp]:
    """For each path the number of the first one after it that is no part of it."""
    ends = np.full(len(order), len(order), np.intp)
    open_: list[int] = []
    for at, path in enumerate(order):
        while open_ and not path.startswith(f"{order[open_[-1]]}/"):
            ends[open_.pop()] = at
        open_.append(at)
    return ends
