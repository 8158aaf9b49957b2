"""Where the host waited for a device, and how much of the idle time after it that explains.

A wait is only to blame as far as two things hold. The device ran dry: the host had to launch the next work after the
wait, so a gap is open. And the host would have been earlier without it: it cannot win more than it waited. Each gap is
therefore charged at most the waiting that ended in it. A long wait over a full queue costs nothing, and neither does a
short one on a slow host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceview.timeline import Timeline

CLOCK_SLACK_NS: Final = 20_000
"""The host returns from a wait a little after the device is done, and the clocks differ by a few microseconds."""

TO_HOST: Final = r"DtoH|Device-to-Host|Device -> Host"
TO_DEVICE: Final = r"HtoD|Host-to-Device|Host -> Device"
BLOCKING_COPY: Final = r"^(cuda|cu|hip)Memcpy\w*$|^Memcpy[HD]2[HD]$"
"""Calls that copy; the short names are those that XProf gives to them."""


def blocking_copies(timeline: Timeline, direction: str) -> pl.Series:
    """Ids of the calls that launched a copy in some direction, and may hold the host until it is done.

    Args:
        timeline: With launches linked.
        direction: :data:`TO_HOST` or :data:`TO_DEVICE`.
    """
    events = timeline.events
    copies = events.select("kind", "name", "device", "launch_id").filter(
        (pl.col("kind") == "memcpy") & pl.col("device").is_not_null() & pl.col("launch_id").is_not_null()
    )
    names = copies["name"].unique().cast(pl.String)
    names = names.filter(names.str.contains(direction)).cast(pl.Categorical)
    calls = copies.filter(pl.col("name").is_in(names.implode()))["launch_id"].unique().sort()
    return calls.filter(events["name"].gather(calls).cast(pl.String).str.contains(BLOCKING_COPY))


def waits(timeline: Timeline) -> pl.DataFrame:
    """Blocking host calls, synchronisation and copies that end on the host: ``id``, ``thread``, start and end."""
    is_copy = pl.col("id").is_in(blocking_copies(timeline, TO_HOST).implode())
    return timeline.events.filter(pl.col("thread").is_not_null() & ((pl.col("kind") == "sync") | is_copy)).select(
        "id", "thread", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )


@dataclass(frozen=True, slots=True)
class Waited:
    """Of each gap: how long its launching thread had waited, and the last wait.

    Attributes:
        ns: Waiting that ended between the start of the gap and the launch that ended it, ns.
        wait_id: Event id of the last such wait; -1 if there is none.
    """

    ns: NDArray[np.int64]
    wait_id: NDArray[np.int64]


def waited(
    blocking: pl.DataFrame,
    gap_starts: NDArray[np.int64],
    launched_ns: NDArray[np.int64],
    threads: NDArray[np.int64],
) -> Waited:
    """How long the host had waited before it launched what ended each gap.

    Args:
        blocking: The :func:`waits`.
        gap_starts: When each device ran dry, ns.
        launched_ns: When the work that ended the gap was launched, ns.
        threads: Thread of that launch, -1 if it is not known.
    """
    total = np.zeros(len(gap_starts), np.int64)
    last_id = np.full(len(gap_starts), -1, np.int64)
    for (key,), own in blocking.group_by("thread"):
        rows = np.flatnonzero(threads == key)
        if not len(rows):
            continue
        by_end = own.sort("end_ns")
        starts, ends = intervals.merge(own["start_ns"].to_numpy(), own["end_ns"].to_numpy())
        if not len(starts):
            continue
        waited_before = np.concatenate(([0], np.cumsum(ends - starts)))
        first = np.searchsorted(ends, gap_starts[rows] - CLOCK_SLACK_NS, side="left")
        stop = np.searchsorted(ends, launched_ns[rows], side="right")
        total[rows] = np.where(stop > first, waited_before[stop] - waited_before[np.minimum(first, stop)], 0)
        last = np.searchsorted(by_end["end_ns"].to_numpy(), launched_ns[rows], side="right") - 1
        last_id[rows] = np.where(total[rows] > 0, by_end["id"].cast(pl.Int64).to_numpy()[np.maximum(last, 0)], -1)
    return Waited(total, last_id)
