"""Idle time by cause, summed up, and as parts of an account of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import gaps
from traceview.gap_culprits import culprits
from traceview.gaps import CAUSE, CONFIDENCE
from traceview.knowledge.idle_causes import Cause
from traceview.schema import Column, FrameSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from traceview.idle_work import Work
    from traceview.intervals import IntervalSet
    from traceview.timeline import Timeline

IDLE_BY_CAUSE: Final = FrameSchema(
    "idle_by_cause",
    "Idle time of each device by cause, most first; per device the rows add up to its idle time exactly.",
    (
        Column("device", pl.UInt32, "", "key into `devices`; null: the host of a trace without devices", nullable=True),
        Column("cause", CAUSE, "", "why the device had nothing to run"),
        Column("idle_ns", pl.Int64, "ns", "idle time of this cause"),
        Column("share", pl.Float64, "of 1", "of the idle time of the device"),
        Column("stretches", pl.UInt32, "", "idle stretches that it has a part in"),
        Column("recoverable_ns", pl.Int64, "ns", "the most that changes on the host can win back"),
        Column("confidence", CONFIDENCE, "", "`measured`, `inferred` or `unknown`"),
        Column("culprit", pl.String, "", "what held the host for the largest part of it", nullable=True),
        Column("culprit_ns", pl.Int64, "ns", "that part", nullable=True),
        Column("reason", pl.String, "", "why the cause is not known or not reliable", nullable=True),
    ),
)


def idle_by_cause(timeline: Timeline, pieces: pl.DataFrame, found: pl.DataFrame | None = None) -> pl.DataFrame:
    """The :data:`IDLE_BY_CAUSE` of some idle time.

    Args:
        timeline: With launches linked.
        pieces: Rows of :data:`traceview.gaps.GAP_PIECES`.
        found: The :func:`traceview.gaps.gaps` of the same time: they name the function in which the host was busy
            where the pieces name each of the hundred frames that it called.
    """
    taken = pieces.with_columns(ns=pl.col("end_ns") - pl.col("start_ns"), won=gaps.recoverable())
    table = (
        taken.group_by("device", "cause")
        .agg(
            idle_ns=pl.col("ns").sum(),
            stretches=pl.col("interval").n_unique(),
            recoverable_ns=pl.col("won").sum(),
            confidence=pl.col("confidence").sort_by("ns", descending=True).first(),
            reason=pl.col("reason").sort_by("ns", descending=True).first(),
        )
        .with_columns(share=pl.col("idle_ns") / pl.col("idle_ns").sum().over("device"))
        .sort("device", "idle_ns", "cause", descending=[False, True, False], nulls_last=True)
    )
    held = []
    for device, cause in table.select("device", "cause").iter_rows():
        own = taken.filter(pl.col("device").eq_missing(pl.lit(device, pl.UInt32)) & (pl.col("cause") == cause))
        if found is not None and cause == Cause.HOST_WORK.value:
            same = pl.col("device").eq_missing(pl.lit(device, pl.UInt32)) & (pl.col("cause") == cause)
            own = found.filter(same).select("culprit_id", start_ns=pl.lit(0, pl.Int64), end_ns="cause_ns")
        first = culprits(timeline, own, most=1)
        # What is launched late is each op in turn: no one of them is to blame.
        named = bool(first) and cause != Cause.LAUNCH.value
        held.append({"culprit": first[0].words if named else None, "culprit_ns": first[0].ns if named else None})
    columns = pl.DataFrame(held, schema={"culprit": pl.String, "culprit_ns": pl.Int64})
    return table.hstack(columns).select([pl.col(one.name).cast(one.dtype) for one in IDLE_BY_CAUSE.columns])


def idle_split(
    timeline: Timeline, known: Sequence[Work] | None = None
) -> Callable[[int, IntervalSet], Sequence[tuple[str, IntervalSet]]]:
    """A function that says what idle time of a device is due to: device key and idle intervals in, parts by cause out.

    Args:
        timeline: With launches linked.
        known: The :func:`traceview.gaps.works` of the timeline, if they are at hand.
    """
    works = gaps.works(timeline) if known is None else known

    def split(device: int, stretches: IntervalSet) -> list[tuple[str, IntervalSet]]:
        starts, ends = stretches
        key = pl.Series("device", [device], dtype=pl.UInt32).new_from_index(0, len(starts))
        pieces = gaps.causes(timeline, pl.DataFrame({"device": key, "start_ns": starts, "end_ns": ends}), works)
        found = []
        for cause in Cause:
            own = pieces.filter(pl.col("cause") == cause.value).sort("start_ns")
            if own.height:
                parts = (own["start_ns"].to_numpy().astype(np.int64), own["end_ns"].to_numpy().astype(np.int64))
                found.append((cause.value, parts))
        return found

    return split
