"""What held the host while a device stood idle, counted and ranked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from traceview.timeline import Timeline


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
    events = timeline.events
    by_event = (
        pieces.filter(pl.col("culprit_id").is_not_null())
        .group_by("culprit_id", maintain_order=True)
        .agg(ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
    )
    held = by_event["culprit_id"]
    op_id = events["op_id"].gather(held)
    named = by_event.with_columns(
        name=events["name"].gather(held),
        op=events["name"].gather(op_id).set(op_id == held, None),
    )
    rows = (
        named.group_by("name", "op", maintain_order=True)
        .agg(count=pl.len(), ns=pl.col("ns").sum())
        .with_columns(pl.col("name").cast(pl.String), pl.col("op").cast(pl.String))
        .sort("ns", "name", "op", descending=[True, False, False])
        .head(most)
    )
    return tuple(Culprit(row["name"], row["op"], row["count"], row["ns"]) for row in rows.iter_rows(named=True))
