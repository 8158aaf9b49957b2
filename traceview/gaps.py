"""When each device stood idle, and what held the host in the meantime.

A device is idle while none of its streams works: idle time is the complement of a union, never a sum per stream. Each
idle stretch is divided, without rest, among the causes of :class:`traceview.knowledge.idle_causes.Cause`, by what the
thread did that launched the work that ended it. Time after that launch is the launch's; work that had been launched
before the device ran dry was merely queued.

A trace without devices is answered for the host itself: there the ops are the work, and the stretches between them the
idle time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals
from traceview.gap_causes import coming_work, decided_pieces
from traceview.gap_pieces import (
    REASONS,
    Pieces,
    run_together,
)
from traceview.host_marks import CODES as _CODE
from traceview.idle_work import Work, device_works, host_works
from traceview.knowledge.idle_causes import NOT_RECOVERABLE, Cause
from traceview.launching_threads import HostTime, nearest_of_kind
from traceview.schema import Column, FrameSchema
from traceview.waits import waits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceview.timeline import Timeline

CAUSE: Final = pl.Enum([cause.value for cause in Cause])
CONFIDENCE: Final = pl.Enum(["measured", "inferred", "unknown"])

GAP_PIECES: Final = FrameSchema(
    "gap_pieces",
    "Idle time of devices cut by cause: the pieces of an idle stretch add up to it exactly.",
    (
        Column("interval", pl.UInt32, "", "row of the idle stretch that was asked about"),
        Column("device", pl.UInt32, "", "key into `devices`; null: the host of a trace without devices", nullable=True),
        Column("start_ns", pl.Int64, "ns", "start of the piece"),
        Column("end_ns", pl.Int64, "ns", "end of the piece, exclusive"),
        Column("cause", CAUSE, "", "why the device had nothing to run"),
        Column(
            "culprit_id", pl.UInt32, "", "host event that held the host, or the launch that came late", nullable=True
        ),
        Column("confidence", CONFIDENCE, "", "`measured`: the host was inside that event; `inferred`; `unknown`"),
        Column("reason", pl.String, "", "why the cause is not known or not reliable", nullable=True),
    ),
)

GAPS: Final = FrameSchema(
    "gaps",
    "One row per idle stretch of a device, sorted by device and start, with the cause that took most of it.",
    (
        Column("device", pl.UInt32, "", "key into `devices`; null: the host of a trace without devices", nullable=True),
        Column("start_ns", pl.Int64, "ns", "end of the work before"),
        Column("dur_ns", pl.Int64, "ns", "until the next work starts"),
        Column("cause", CAUSE, "", "the cause with the largest part"),
        Column("cause_ns", pl.Int64, "ns", "the part of that cause"),
        Column(
            "culprit_id", pl.UInt32, "", "event that held the host for the largest part of that cause", nullable=True
        ),
        Column("culprit", pl.Categorical, "", "its name", nullable=True),
        Column("op_id", pl.UInt32, "", "op around the culprit (itself if it is one)", nullable=True),
        Column("annotation_id", pl.UInt32, "", "innermost annotation around the culprit", nullable=True),
        Column("next_id", pl.UInt32, "", "the work that ended the stretch", nullable=True),
        Column("step", pl.Int32, "", "step of that work", nullable=True),
        Column("recoverable_ns", pl.Int64, "ns", "the most that changes on the host can win back"),
        Column("confidence", CONFIDENCE, "", "of the cause: `measured`, `inferred` or `unknown`"),
        Column("reason", pl.String, "", "why the cause is not known or not reliable", nullable=True),
    ),
)

IDLE: Final = {"device": pl.UInt32, "start_ns": pl.Int64, "end_ns": pl.Int64}
"""Columns of idle stretches, as :func:`idle` returns them and :func:`causes` takes them."""


def idle(timeline: Timeline, known: Sequence[Work] | None = None) -> pl.DataFrame:
    """The stretches between the first and the last work or wait of each device in which nothing ran.

    Without devices: those of the host's ops, with ``device`` null, from the first to the last op or step mark. Columns
    are those of :data:`IDLE`.

    Args:
        timeline: With launches linked.
        known: Its :func:`works`, if they are at hand.
    """
    devices, parts = [], []
    for work in works(timeline) if known is None else known:
        low, high = work.edges
        done = intervals.merge(np.concatenate((low, work.starts)), np.concatenate((high, work.ends)))
        parts.append(intervals.subtract(work.window, done))
        devices.append(work.device)
    if not parts:
        return pl.DataFrame(schema=IDLE)
    keys = pl.Series("device", devices, dtype=pl.UInt32)
    owner = pl.Series(np.repeat(np.arange(len(parts)), [len(starts) for starts, _ in parts]))
    starts, ends = (np.concatenate([part[at] for part in parts]) for at in (0, 1))
    return pl.DataFrame([keys.gather(owner), pl.Series("start_ns", starts), pl.Series("end_ns", ends)])


def works(timeline: Timeline) -> tuple[Work, ...]:
    """The work of each device, or of the host if the trace has no device work."""
    return device_works(timeline) or host_works(timeline)


def causes(
    timeline: Timeline,
    stretches: pl.DataFrame,
    known: Sequence[Work] | None = None,
    *,
    host: HostTime | None = None,
    charge_host_work: bool = False,
) -> pl.DataFrame:
    """Why each device was idle in some idle stretches: the :data:`GAP_PIECES`.

    Args:
        timeline: With launches linked.
        stretches: Columns of :data:`IDLE`; stretches in which the device does not work, whole or in part, e.g. cut at
            the bounds of steps. They must not overlap on one device.
        known: The :func:`works` of the timeline, if they are at hand.
        host: What the host did in these stretches, if that is at hand.
        charge_host_work: Charge work of the host after a wait to the wait, too, as far as the host had waited: without
            the wait it would have been done while the device was busy. Else only launching is charged.
    """
    return _causes(timeline, stretches, known, host, [charge_host_work])[0]


def both_causes(
    timeline: Timeline,
    stretches: pl.DataFrame,
    known: Sequence[Work] | None = None,
    *,
    host: HostTime | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The :func:`causes` in both ways to charge waits, without and with host work, for the price of one.

    Args:
        timeline: With launches linked.
        stretches: As for :func:`causes`.
        known: The :func:`works` of the timeline, if they are at hand.
        host: What the host did in these stretches, if that is at hand.
    """
    apart, charged = _causes(timeline, stretches, known, host, [False, True])
    return apart, charged


def _causes(
    timeline: Timeline,
    stretches: pl.DataFrame,
    known: Sequence[Work] | None,
    host: HostTime | None,
    charge_host_work: Sequence[bool],
) -> list[pl.DataFrame]:
    known = works(timeline) if known is None else known
    if host is None:
        host = HostTime(timeline, (stretches["start_ns"].to_numpy(), stretches["end_ns"].to_numpy()))
    numbered = stretches.select(*IDLE).with_row_index("interval")
    which = _work_of(numbered["device"], known)
    # Work by work, so that the pieces of each lie together.
    rows = np.argsort(which, kind="stable")
    rows = rows[which[rows] >= 0]
    if not len(rows):
        return [GAP_PIECES.empty() for _ in charge_host_work]
    own, which = numbered[rows], which[rows]
    ways = decided_pieces(host, waits(timeline), known, own, which, charge_host_work=charge_host_work)
    return [_frame(run_together(pieces), own).sort("interval", "start_ns") for pieces in ways]


def _work_of(devices: pl.Series, known: Sequence[Work]) -> NDArray[np.int64]:
    """For each device key the place of its work among the known; -1 if it has none."""
    places = {work.device: place for place, work in enumerate(known)}
    distinct = devices.unique()
    table = pl.DataFrame({"device": distinct, "place": [places.get(key, -1) for key in distinct.to_list()]})
    joined_ = devices.to_frame("device").join(table, on="device", how="left", nulls_equal=True, maintain_order="left")
    return joined_["place"].cast(pl.Int64).to_numpy()


def _frame(pieces: Pieces, own: pl.DataFrame) -> pl.DataFrame:
    cause = pl.Series(pieces.cause).cast(pl.UInt8)
    names = pl.Series([one.value for one in Cause], dtype=CAUSE)
    confidence = np.full(len(Cause), 0, np.uint8)
    for one in (Cause.LAUNCH, Cause.QUEUED, Cause.HOST_WORK, Cause.SLOW_CALL):
        confidence[_CODE[one]] = 1
    for one in (Cause.UNKNOWN, Cause.UNRELIABLE):
        confidence[_CODE[one]] = 2
    doubtful = (confidence[pieces.cause] == 0) & ((pieces.reason > 0) | pieces.inferred)
    levels = pl.Series(["measured", "inferred", "unknown"], dtype=CONFIDENCE)
    reasons = pl.Series(REASONS, dtype=pl.String)
    return pl.DataFrame(
        {
            "interval": own["interval"].gather(pl.Series(pieces.row)),
            "device": own["device"].gather(pl.Series(pieces.row)),
            "start_ns": pieces.starts,
            "end_ns": pieces.ends,
            "cause": names.gather(cause),
            "culprit_id": pl.Series(pieces.culprit).replace(-1, None).cast(pl.UInt32),
            "confidence": levels.gather(pl.Series(np.where(doubtful, 1, confidence[pieces.cause]).astype(np.uint8))),
            "reason": reasons.gather(pl.Series(pieces.reason)),
        }
    )


def recoverable() -> pl.Expr:
    """Of a frame of pieces: how much of each a change on the host can win back at most, ns."""
    nothing = pl.col("cause").cast(pl.String).is_in([cause.value for cause in NOT_RECOVERABLE])
    nothing |= pl.col("reason").is_not_null()
    return pl.when(nothing).then(0).otherwise(pl.col("end_ns") - pl.col("start_ns"))


def gaps(timeline: Timeline, pieces: pl.DataFrame | None = None, known: Sequence[Work] | None = None) -> pl.DataFrame:
    """Every idle stretch with its main cause: the :data:`GAPS`.

    Args:
        timeline: With launches linked.
        pieces: The :func:`causes` of :func:`idle`, if they are at hand.
        known: The :func:`works` of the timeline, if they are at hand.
    """
    known = works(timeline) if known is None else known
    stretches = idle(timeline, known).with_row_index("interval")
    if not stretches.height:
        return GAPS.empty()
    if pieces is None:
        pieces = causes(timeline, stretches, known)
    taken = pieces.with_columns(ns=pl.col("end_ns") - pl.col("start_ns"), recoverable_ns=recoverable())
    by_culprit = taken.group_by("interval", "cause", "culprit_id", maintain_order=True).agg(
        pl.col("ns").sum(),
        pl.col("confidence").first(),
        pl.col("reason").first(),
        first_ns=pl.col("start_ns").min(),
        last_ns=pl.col("end_ns").max(),
    )
    of_cause = ("interval", "cause")
    main = (
        by_culprit.with_columns(
            cause_ns=pl.col("ns").sum().over(of_cause),
            first_ns=pl.col("first_ns").min().over(of_cause),
            last_ns=pl.col("last_ns").max().over(of_cause),
        )
        .sort("interval", "cause_ns", "cause", "ns", descending=[False, True, False, True], maintain_order=True)
        .unique("interval", keep="first", maintain_order=True)
    )
    won = taken.group_by("interval").agg(pl.col("recoverable_ns").sum())
    events = timeline.events
    found = stretches.join(main, on="interval", how="left", maintain_order="left").join(
        won, on="interval", how="left", maintain_order="left"
    )
    next_id = _next_ids(known, stretches)
    culprit = _in_common(timeline, found)
    annotation = nearest_of_kind(events, culprit, "annotation")
    return found.select(
        "device",
        "start_ns",
        dur_ns=pl.col("end_ns") - pl.col("start_ns"),
        cause="cause",
        cause_ns="cause_ns",
        culprit_id=culprit,
        culprit=events["name"].gather(culprit),
        op_id=events["op_id"].gather(culprit),
        annotation_id=annotation,
        next_id=next_id,
        step=events["step"].gather(next_id),
        recoverable_ns="recoverable_ns",
        confidence="confidence",
        reason="reason",
    )


def _in_common(timeline: Timeline, found: pl.DataFrame) -> pl.Series:
    """The event that held the host: the one with the largest part; if that is less than half, what is around all parts.

    Hundreds of small Python frames are rather the function that calls them.
    """
    events = timeline.events
    culprit = found["culprit_id"].cast(pl.Int64).fill_null(-1).to_numpy().copy()
    scattered = found.select(
        (pl.col("cause") == Cause.HOST_WORK.value) & (2 * pl.col("ns") < pl.col("cause_ns"))
    ).to_series()
    climbing = np.flatnonzero(scattered.to_numpy() & (culprit >= 0))
    if len(climbing):
        starts = events["start_ns"].to_numpy()
        ends = starts + events["dur_ns"].to_numpy()
        parent = events["parent_id"].cast(pl.Int64).fill_null(-1).to_numpy()
        first, last = found["first_ns"].to_numpy(), found["last_ns"].to_numpy()
        while len(climbing):
            here = culprit[climbing]
            climbing = climbing[(starts[here] > first[climbing]) | (ends[here] < last[climbing])]
            culprit[climbing] = parent[culprit[climbing]]
            climbing = climbing[culprit[climbing] >= 0]
    return pl.Series(culprit).replace(-1, None).cast(pl.UInt32)


def _next_ids(known: Sequence[Work], stretches: pl.DataFrame) -> pl.Series:
    which = _work_of(stretches["device"], known)
    rows = np.argsort(which, kind="stable")
    found = np.empty(stretches.height, np.int64)
    found[rows] = coming_work(known, which[rows], stretches["end_ns"].to_numpy()[rows]).next_id
    return pl.Series(found).replace(-1, None).cast(pl.UInt32)
