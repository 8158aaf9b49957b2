"""What held the host while a device stood idle, counted and ranked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from traceview.timeline import Timeline


MOST_OF_IT: Final = 0.5
"""What holds at least this part of some idle time is where most of it is."""

LEAST_NAMED: Final = 0.05
"""What holds less of it says nothing about it."""


@dataclass(frozen=True, slots=True)
class Culprit:
    """Events of one name that held the host.

    Attributes:
        name: Their name.
        op: Op around them; ``None`` if there is none or it is the event itself.
        count: How many of them.
        ns: Idle time charged to them, ns.
    """

    name: str
    op: str | None
    count: int
    ns: int

    @property
    def words(self) -> str:
        """``cudaStreamSynchronize in aten::nonzero``."""
        return f"{self.name} in {self.op}" if self.op else self.name


def culprits(timeline: Timeline, pieces: pl.DataFrame, *, most: int) -> tuple[Culprit, ...]:
    """The names that hold most of some idle time, by falling time.

    Args:
        timeline: With launches linked.
        pieces: Some rows of :data:`traceview.gaps.GAP_PIECES`; those without a culprit are left out.
        most: At most so many.
    """
    held = pieces.select("culprit_id", ns=pl.col("end_ns") - pl.col("start_ns"))
    rows = _named(timeline, held, []).head(most)
    return tuple(Culprit(row["name"], row["op"], row["count"], row["ns"]) for row in rows.iter_rows(named=True))


def leading_culprits(timeline: Timeline, held: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """For each group of idle time the names that hold most of it: ``by``, ``culprit`` in words, and ``culprit_ns``.

    Args:
        timeline: With launches linked.
        held: Idle time with columns ``by``, ``culprit_id`` (null: nobody's) and ``ns``.
        by: Columns that make the groups.
    """
    first = _named(timeline, held, by).unique(by, keep="first", maintain_order=True)
    words = pl.when(pl.col("op").is_null()).then("name").otherwise(pl.format("{} in {}", "name", "op"))
    return first.select(*by, culprit=words, culprit_ns="ns")


def _named(timeline: Timeline, held: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Idle time by name and op within each group, most first."""
    events = timeline.events
    by_event = held.filter(pl.col("culprit_id").is_not_null()).group_by(*by, "culprit_id").agg(pl.col("ns").sum())
    culprit = by_event["culprit_id"]
    op_id = events["op_id"].gather(culprit)
    return (
        by_event.with_columns(
            name=events["name"].gather(culprit),
            op=events["name"].gather(op_id).set(op_id == culprit, None),
        )
        .group_by(*by, "name", "op")
        .agg(count=pl.len(), ns=pl.col("ns").sum())
        .with_columns(pl.col("name").cast(pl.String), pl.col("op").cast(pl.String))
        .sort("ns", "name", "op", descending=[True, False, False])
    )
