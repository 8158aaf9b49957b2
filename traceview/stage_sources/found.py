"""What a source of stages hands on, and what the trace offers to all of them."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import nesting

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceview.timeline import Timeline


class Source(StrEnum):
    """What names a stage, best first."""

    MARK = "mark"
    """An annotation ``traceview.stage:NAME``."""
    PATTERN = "pattern"
    """A regular expression of the user."""
    PHASE = "engine label"
    """The label that a serving engine puts around an iteration: prefill, decode, mixed."""
    ANNOTATION = "annotation"
    """``record_function``, an NVTX range, a ``TraceAnnotation``."""
    FRAME = "Python function"
    """A function of a known program, from recorded stacks."""
    MODULE = "nn.Module"
    """A module, from recorded stacks."""
    SCOPE = "XLA scope"
    """A named scope of a compiled program."""
    AUTOGRAD = "autograd thread"
    """Backward work, which runs on a thread of its own."""


STAGE_RANGES: Final = {"id": pl.UInt32, "stage": pl.String}
"""Columns of a frame of stage ranges: a host event, and the stage that it opens, ``/`` between outer and inner."""

NO_RANGES: Final = pl.DataFrame(schema=STAGE_RANGES)

MOST_NAMES: Final = 30
"""More distinct names than this are layers or calls, not stages."""


class HostTree:
    """The call trees of the host threads.

    Args:
        timeline: With launches linked.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline

    @cached_property
    def parent(self) -> NDArray[np.int32]:
        """Parent of each event, or :data:`traceview.nesting.NO_PARENT`."""
        return self.timeline.events["parent_id"].cast(pl.Int32).fill_null(nesting.NO_PARENT).to_numpy()

    def mask(self, ids: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """One flag per event, set for some of them."""
        flags = np.zeros(self.timeline.events.height, bool)
        flags[ids] = True
        return flags

    def nearest(self, ids: NDArray[np.uint32], *, strict: bool = False) -> NDArray[np.int32]:
        """For each event the innermost of ``ids`` that is it or (``strict``: that truly) encloses it; -1 for none."""
        if not len(self.parent):
            return self.parent
        found = nesting.nearest_marked(self.parent, self.mask(ids))
        if not strict:
            return found
        return np.where(self.parent >= 0, found[self.parent], np.int32(nesting.NO_PARENT))

    def around(self, ids: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """One flag per event, set for those that enclose any of ``ids``."""
        flags = np.zeros(len(self.parent), bool)
        above = np.unique(self.parent[ids])
        above = above[above >= 0]
        while len(above):
            above = above[~flags[above]]
            flags[above] = True
            above = np.unique(self.parent[above])
            above = above[above >= 0]
        return flags

    def names(self, kinds: tuple[str, ...]) -> pl.Series:
        """The distinct names (text) of host events of some kinds."""
        return self.timeline.host_names(kinds).cast(pl.String)

    def named(self, kinds: tuple[str, ...], names: pl.Series | None = None) -> pl.DataFrame:
        """Host events of some kinds: ``id``, ``name`` (text), ``thread``, ``dur_ns``, by id.

        Args:
            kinds: The kinds.
            names: The names (text) that count; not given: all.
        """
        wanted = pl.col("thread").is_not_null() & pl.col("kind").is_in(list(kinds))
        if names is not None:
            wanted &= pl.col("name").is_in(names.cast(pl.Categorical).implode())
        events = self.timeline.events.select("id", "thread", "dur_ns", "kind", "name")
        return (
            (events if names is None or len(names) else events.clear())
            .filter(wanted)
            .select("id", "thread", "dur_ns", name=pl.col("name").cast(pl.String))
        )
