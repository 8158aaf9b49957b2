"""Idle time by cause, summed up, and as parts of an account of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview import gaps
from traceview.gap_culprits import leading_culprits
from traceview.gaps import CAUSE, CONFIDENCE
from traceview.knowledge.idle_causes import Cause
from traceview.launching_threads import HostTime
from traceview.schema import Column, FrameSchema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
            reason=pl.col("reason").sort_by("ns", descending=True).first(),
        )
        .with_columns(share=pl.col("idle_ns") / pl.col("idle_ns").sum().over("device"))
        .sort("device", "idle_ns", "cause", descending=[False, True, False], nulls_last=True)
    )
    # How most of the time of a cause is known, not its longest piece.
    known = (
        taken.group_by("device", "cause", "confidence")
        .agg(pl.col("ns").sum())
        .sort("ns", "confidence", descending=[True, False])
        .unique(["device", "cause"], keep="first", maintain_order=True)
        .select("device", "cause", "confidence")
    )
    table = table.join(known, on=["device", "cause"], how="left", nulls_equal=True, maintain_order="left")
    held = taken.select("device", "cause", "culprit_id", "ns")
    if found is not None:
        busy = found.filter(pl.col("cause") == Cause.HOST_WORK.value)
        held = pl.concat(
            [
                held.filter(pl.col("cause") != Cause.HOST_WORK.value),
                busy.select(
                    "device", "cause", "culprit_id", ns=pl.min_horizontal("cause_ns", _overlap(timeline, busy))
                ),
            ]
        )
    # What is launched late is each op in turn: no one of them is to blame.
    first = leading_culprits(timeline, held.filter(pl.col("cause") != Cause.LAUNCH.value), ["device", "cause"])
    table = table.join(first, on=["device", "cause"], how="left", nulls_equal=True, maintain_order="left")
    return table.select([pl.col(one.name).cast(one.dtype) for one in IDLE_BY_CAUSE.columns])


def _overlap(timeline: Timeline, found: pl.DataFrame) -> pl.Series:
    """How much of each idle stretch the event that held the host lasted, ns; the whole stretch where none did."""
    events, key = timeline.events, found["culprit_id"]
    begin, length = events["start_ns"].gather(key), events["dur_ns"].gather(key)
    return (
        pl.DataFrame({"begin": begin, "end": begin + length, "low": found["start_ns"], "length": found["dur_ns"]})
        .with_columns(high=pl.col("low") + pl.col("length"))
        .select(
            (pl.min_horizontal("end", "high") - pl.max_horizontal("begin", "low"))
            .clip(lower_bound=0)
            .fill_null(pl.col("length"))
        )
        .to_series()
        .alias("overlap_ns")
    )


class IdleSplit:
    """Says what idle time of devices is due to: idle intervals by device key in, parts by cause out.

    Args:
        timeline: With launches linked.
        known: The :func:`traceview.gaps.works` of the timeline, if they are at hand.

    Attributes:
        host: What the host did in all idle time of the trace; ``None`` until the first question.
    """

    def __init__(self, timeline: Timeline, known: Sequence[Work] | None = None) -> None:
        self._timeline = timeline
        self._works = gaps.works(timeline) if known is None else known
        self.host: HostTime | None = None

    def __call__(self, idle: Mapping[int, IntervalSet]) -> dict[int, list[tuple[str, IntervalSet]]]:
        """The parts of some idle time, by device and cause."""
        stretches = pl.concat([pl.DataFrame(schema=gaps.IDLE), *(_stretches(one, idle[one]) for one in idle)])
        # All idle time of the trace as well: whoever asks for that next need not look at the host again.
        every = pl.concat([stretches, gaps.idle(self._timeline, self._works)])
        self.host = HostTime(self._timeline, (every["start_ns"].to_numpy(), every["end_ns"].to_numpy()))
        pieces = gaps.causes(self._timeline, stretches, self._works, host=self.host)
        found: dict[int, list[tuple[str, IntervalSet]]] = {device: [] for device in idle}
        parts = pieces.select("device", "start_ns", "end_ns", cause=pl.col("cause").to_physical()).sort(
            "device", "cause", "start_ns"
        )
        names = [cause.value for cause in Cause]
        for (device, cause), own in parts.partition_by("device", "cause", as_dict=True, maintain_order=True).items():
            found[device].append((names[cause], (own["start_ns"].to_numpy(), own["end_ns"].to_numpy())))
        return found


def _stretches(device: int, idle: IntervalSet) -> pl.DataFrame:
    starts, ends = idle
    key = pl.Series("device", [device], dtype=pl.UInt32).new_from_index(0, len(starts))
    return pl.DataFrame({"device": key, "start_ns": starts, "end_ns": ends})
