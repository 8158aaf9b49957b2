"""How long each device was busy, with what, and how long it stood idle.

Busy time is the length of a *union*: overlapping work counts once, waits never count. The split follows the
terms of TraceLens (``gpu_timeline``), whose published numbers it reproduces: fills count as computation,
communication and copies are *exposed* as far as nothing above them in that order hides them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals, schema

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceview.timeline import Timeline

COMMUNICATION_KINDS: Final = ("collective",)
COPY_KINDS: Final = ("memcpy",)
WAIT_KINDS: Final = ("async_wait",)
"""A device that waits for what it started itself: recorded like work, but it is none."""

COMPUTATION_KINDS: Final = tuple(kind for kind in schema.BUSY_KINDS if kind not in (*COMMUNICATION_KINDS, *COPY_KINDS))
"""Everything else that keeps a device busy; fills (``memset``) run as kernels do."""


@dataclass(frozen=True, slots=True)
class DeviceBusy:
    """Use of one device, or of one set of device work.

    ``busy_ns = computation_ns + exposed_communication_ns + exposed_memcpy_ns`` and
    ``span_ns = busy_ns + idle_ns``, exactly.

    Attributes:
        device: Key into ``Timeline.devices``.
        events: Number of pieces of work counted.
        start_ns: Start of the first, waits included, ns from the timeline's origin.
        span_ns: From the first start to the last end, waits included, ns.
        busy_ns: Union of all work, ns.
        computation_ns: Union of computation, ns.
        communication_ns: Union of communication, ns.
        exposed_communication_ns: The part of it that no computation hides, ns.
        memcpy_ns: Union of copies, ns.
        exposed_memcpy_ns: The part of it that neither computation nor communication hides, ns.
        wait_ns: The part of the idle time in which the device waited for its own asynchronous copies or collectives,
            ns.
        without_launch: How many of the device's pieces of work have no launch in the file.
        left_out: How many of those were left out of every other number.
    """

    device: int
    events: int
    start_ns: int
    span_ns: int
    busy_ns: int
    computation_ns: int
    communication_ns: int
    exposed_communication_ns: int
    memcpy_ns: int
    exposed_memcpy_ns: int
    wait_ns: int
    without_launch: int
    left_out: int

    @property
    def idle_ns(self) -> int:
        """Time within the span in which nothing ran, ns."""
        return self.span_ns - self.busy_ns

    @property
    def busy_share(self) -> float | None:
        """Busy part of the span, 0 to 1; ``None`` without a span."""
        return self.busy_ns / self.span_ns if self.span_ns else None


def busy(timeline: Timeline, *, launched_only: bool = False) -> tuple[DeviceBusy, ...]:
    """Use of each device that did any work or waited for some, in order of its key.

    Args:
        timeline: With launches linked.
        launched_only: Leave out work without a launch in the file: it was asked for before the window opened.
    """
    work = timeline.events.filter(
        pl.col("device").is_not_null() & pl.col("kind").is_in([*schema.BUSY_KINDS, *WAIT_KINDS])
    ).select("device", "kind", "start_ns", "dur_ns", "launch_id")
    return tuple(
        measure(rows, device=int(device), launched_only=launched_only)
        for (device,), rows in sorted(work.group_by("device"), key=lambda pair: pair[0])
    )


def measure(work: pl.DataFrame, *, device: int, launched_only: bool = False) -> DeviceBusy:
    """Use of a device by some of its work.

    Args:
        work: Rows of the events with kind in :data:`traceview.schema.BUSY_KINDS` or :data:`WAIT_KINDS`, all of one
            device.
        device: Its key.
        launched_only: As for :func:`busy`.
    """
    # Arrays rather than frames: a trace can have thousands of devices with little work each.
    kinds = work["kind"].to_physical().to_numpy()
    is_wait = _is_kind(kinds, WAIT_KINDS)
    missing = work["launch_id"].is_null().to_numpy()
    orphans = int((missing & ~is_wait).sum())
    starts = work["start_ns"].to_numpy()
    ends = starts + work["dur_ns"].to_numpy()
    if launched_only:
        kinds, is_wait, starts, ends = (part[~missing] for part in (kinds, is_wait, starts, ends))
    waits, computation, communication, copies, everything = (
        intervals.merge(starts[chosen], ends[chosen])
        for chosen in (
            _is_kind(kinds, one)
            for one in (WAIT_KINDS, COMPUTATION_KINDS, COMMUNICATION_KINDS, COPY_KINDS, schema.BUSY_KINDS)
        )
    )
    exposed_communication = intervals.subtract(communication, computation)
    exposed_copies = intervals.subtract(intervals.subtract(copies, computation), communication)
    return DeviceBusy(
        device=device,
        events=int((~is_wait).sum()),
        start_ns=int(starts.min()) if len(starts) else 0,
        span_ns=intervals.span(starts, ends),
        busy_ns=intervals.total(*everything),
        computation_ns=intervals.total(*computation),
        communication_ns=intervals.total(*communication),
        exposed_communication_ns=intervals.total(*exposed_communication),
        memcpy_ns=intervals.total(*copies),
        exposed_memcpy_ns=intervals.total(*exposed_copies),
        wait_ns=intervals.total(*intervals.subtract(waits, everything)),
        without_launch=orphans,
        left_out=orphans if launched_only else 0,
    )


def _is_kind(codes: NDArray[np.uint8], kinds: tuple[str, ...]) -> NDArray[np.bool_]:
    found = np.zeros(len(codes), np.bool_)
    for kind in kinds:
        found |= codes == schema.KINDS.index(kind)
    return found
