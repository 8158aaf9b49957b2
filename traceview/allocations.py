"""How often memory was taken from the driver and given back, by calls and by the allocator's own account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.host_calls import named
from traceview.knowledge.idle_causes import ALLOCATOR_CALLS
from traceview.schema import Column, FrameSchema

if TYPE_CHECKING:
    from traceview.steady_state import SteadyState
    from traceview.timeline import Timeline

ALLOCATIONS: Final = FrameSchema(
    "allocations",
    "Allocator traffic: driver calls by name, and changes of the memory that the allocator holds (`reserved`).",
    (
        Column("what", pl.String, "", "driver call, or `reserved memory grows` and `reserved memory shrinks`"),
        Column("process", pl.UInt32, "", "key into `processes`", nullable=True),
        Column("count", pl.UInt32, "", "how often"),
        Column("total_ns", pl.Int64, "ns", "sum of the durations of the calls", nullable=True),
        Column("bytes", pl.Int64, "B", "by how much reserved memory changed in all", nullable=True),
        Column("late_count", pl.UInt32, "", "of these, past the warm-up; null: no two steps recorded", nullable=True),
        Column("late_ns", pl.Int64, "ns", "time of the calls past the warm-up", nullable=True),
    ),
)

_RESERVED: Final = "Total Reserved"


def allocator_calls(timeline: Timeline) -> pl.DataFrame:
    """Driver calls that allocate or free, ``name`` as text."""
    return named(timeline, ("api",), ALLOCATOR_CALLS)


def allocations(timeline: Timeline, steady: SteadyState | None) -> pl.DataFrame:
    """Allocator traffic: the :data:`ALLOCATIONS`, most first.

    Args:
        timeline: With launches linked and steps marked.
        steady: The steps past the warm-up; ``None``: fewer than two steps are recorded.
    """
    calls = allocator_calls(timeline).select(
        "id", "process", "step", what="name", ns="dur_ns", bytes=pl.lit(None, pl.Int64)
    )
    rows = pl.concat([calls, _reserved_changes(timeline)])
    if not rows.height:
        return ALLOCATIONS.empty()
    late = steady.within(rows)["id"] if steady else rows["id"].clear()
    rows = rows.with_columns(is_late=pl.col("id").is_in(late.implode()))
    table = rows.group_by("what", "process").agg(
        count=pl.len(),
        total_ns=pl.when(pl.col("ns").is_not_null().any()).then(pl.col("ns").sum()),
        bytes=pl.when(pl.col("bytes").is_not_null().any()).then(pl.col("bytes").sum()),
        late_count=pl.col("is_late").sum() if steady else pl.lit(None, pl.UInt32),
        late_ns=pl.when(pl.col("ns").is_not_null().any()).then(pl.col("ns").filter("is_late").sum())
        if steady
        else pl.lit(None, pl.Int64),
    )
    return table.select([pl.col(column.name).cast(column.dtype) for column in ALLOCATIONS.columns]).sort(
        "total_ns", "count", "what", descending=[True, True, False], nulls_last=True
    )


def _reserved_changes(timeline: Timeline) -> pl.DataFrame:
    """Each change of the reserved memory of a device, from the allocator's records."""
    empty = {"id": pl.UInt32, "process": pl.UInt32, "step": pl.Int32, "what": pl.String, "ns": pl.Int64}
    if _RESERVED not in timeline.details or timeline.details[_RESERVED].schema["value"] != pl.Int64:
        return pl.DataFrame(schema={**empty, "bytes": pl.Int64})
    rows = timeline.details[_RESERVED]
    rows = rows.with_columns(timeline.events[name].gather(rows["id"]) for name in ("process", "step", "start_ns"))
    for key in ("Device Type", "Device Id"):
        if key in timeline.details:
            other = timeline.details[key].select("id", pl.col("value").cast(pl.String).alias(key))
            rows = rows.join(other, on="id", how="left", maintain_order="left")
        else:
            rows = rows.with_columns(pl.lit(None, pl.String).alias(key))
    by = ["process", "Device Type", "Device Id"]
    rows = (
        rows.sort("start_ns", "id").with_columns(change=pl.col("value").diff().over(by)).filter(pl.col("change") != 0)
    )
    grows = pl.col("change") > 0
    return rows.select(
        "id",
        "process",
        "step",
        what=pl.when(grows).then(pl.lit("reserved memory grows")).otherwise(pl.lit("reserved memory shrinks")),
        ns=pl.lit(None, pl.Int64),
        bytes=pl.col("change").abs(),
    )
