"""Where the program waits for a device or reads a value from it, and what that costs the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.host_marks import waiting_calls
from traceview.knowledge.idle_causes import Cause
from traceview.schema import Column, FrameSchema

if TYPE_CHECKING:
    from traceview.steady_state import SteadyState
    from traceview.timeline import Timeline

HOST_WAITS: Final = FrameSchema(
    "host_waits",
    "Waits of the host by name, most idle time first. Without a device: the reads of values, each of which would wait.",
    (
        Column("name", pl.String, "", "the outermost op or call that waits, e.g. `aten::item`"),
        Column("op", pl.String, "", "op around it", nullable=True),
        Column("count", pl.UInt32, "", "how many of them"),
        Column("per_step", pl.Float64, "", "how many per step past the warm-up", nullable=True),
        Column("host_ns", pl.Int64, "ns", "sum of their durations"),
        Column("idle_ns", pl.Int64, "ns", "idle time of the devices that they explain"),
        Column("event_id", pl.UInt32, "", "the longest of them"),
    ),
)


def host_waits(timeline: Timeline, pieces: pl.DataFrame, steady: SteadyState | None = None) -> pl.DataFrame:
    """The :data:`HOST_WAITS` of a trace.

    Args:
        timeline: With launches linked.
        pieces: The :func:`traceview.gaps.causes` of :func:`traceview.gaps.idle`.
        steady: The steps past the warm-up.
    """
    events = timeline.events
    rows = waiting_calls(timeline)
    if not len(rows):
        return HOST_WAITS.empty()
    chosen = pl.Series(rows)
    calls = events.select(pl.col("id", "process", "step", "dur_ns", "name", "op_id").gather(chosen))
    waited = pieces.filter(pl.col("cause").cast(pl.String).is_in([Cause.SYNC.value, Cause.COPY_TO_HOST.value]))
    idle = waited.group_by(id="culprit_id").agg(idle_ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
    around = calls["op_id"]
    late = steady.within(calls)["id"] if steady else calls["id"].clear()
    table = (
        calls.join(idle, on="id", how="left", maintain_order="left")
        .with_columns(op=events["name"].gather(around).set(around == calls["id"], None))
        .group_by("name", "op")
        .agg(
            count=pl.len(),
            per_step=pl.col("id").is_in(late.implode()).sum() / steady.steps.height
            if steady
            else pl.lit(None, pl.Float64),
            host_ns=pl.col("dur_ns").sum(),
            idle_ns=pl.col("idle_ns").fill_null(0).sum(),
            event_id=pl.col("id").sort_by("dur_ns", descending=True).first(),
        )
    )
    return table.select([pl.col(column.name).cast(column.dtype) for column in HOST_WAITS.columns]).sort(
        "idle_ns", "host_ns", "name", "op", descending=[True, True, False, False]
    )
