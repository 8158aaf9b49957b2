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
    from collections.abc import Collection

    from numpy.typing import NDArray

    from traceview.intervals import IntervalSet
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
        _measured(rows, device=device, launched_only=launched_only)
        for device, rows in sorted(rows_by_device(work).items())
    )


@dataclass(frozen=True, slots=True)
class DeviceRows:
    """Rows of one device as arrays: a trace can have thousands of devices, each with little to do.

    Attributes:
        at: Which of the rows of the frame they are.
        kinds: Kind of each, as an index into :data:`traceview.schema.KINDS`.
        starts: Starts, ns.
        ends: Ends, ns.
        missing: Its launch is not in the file; all false if the frame had no launches.
    """

    at: NDArray[np.intp]
    kinds: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    missing: NDArray[np.bool_]

    def of(self, kinds: Collection[str]) -> NDArray[np.bool_]:
        """Which rows are of some kinds."""
        found = np.zeros(len(self.kinds), np.bool_)
        for kind in kinds:
            found |= self.kinds == schema.KINDS.index(kind)
        return found

    def union(self, kinds: Collection[str]) -> IntervalSet:
        """Union of the intervals of the rows of some kinds."""
        chosen = self.of(kinds)
        return intervals.merge(self.starts[chosen], self.ends[chosen])

    def where(self, chosen: NDArray[np.bool_] | NDArray[np.intp] | slice) -> DeviceRows:
        """Some of the rows."""
        return DeviceRows(*(getattr(self, name)[chosen] for name in DeviceRows.__slots__))


def rows_by_device(rows: pl.DataFrame) -> dict[int, DeviceRows]:
    """The rows of each device, in their order.

    Args:
        rows: Columns ``device`` (not null), ``kind``, ``start_ns``, ``dur_ns`` and, if it matters, ``launch_id``.
    """
    if not rows.height:
        return {}
    devices = rows["device"].to_numpy()
    order = np.argsort(devices, kind="stable")
    whole = _device_rows(rows).where(order)
    firsts = np.flatnonzero(np.concatenate(([True], np.diff(devices[order].astype(np.int64)) != 0)))
    stops = [*firsts[1:].tolist(), len(order)]
    return {
        int(devices[order[first]]): whole.where(slice(first, stop))
        for first, stop in zip(firsts.tolist(), stops, strict=True)
    }


def _device_rows(rows: pl.DataFrame) -> DeviceRows:
    starts = rows["start_ns"].to_numpy()
    launches = "launch_id" in rows.columns
    return DeviceRows(
        at=np.arange(rows.height),
        kinds=rows["kind"].to_physical().to_numpy(),
        starts=starts,
        ends=starts + rows["dur_ns"].to_numpy(),
        missing=rows["launch_id"].is_null().to_numpy() if launches else np.zeros(rows.height, np.bool_),
    )


def measure(work: pl.DataFrame, *, device: int, launched_only: bool = False) -> DeviceBusy:
    """Use of a device by some of its work.

    Args:
        work: Rows of the events with kind in :data:`traceview.schema.BUSY_KINDS` or :data:`WAIT_KINDS`, all of one
            device.
        device: Its key.
        launched_only: As for :func:`busy`.
    """
    return _measured(_device_rows(work), device=device, launched_only=launched_only)


def _measured(rows: DeviceRows, *, device: int, launched_only: bool) -> DeviceBusy:
    orphans = int((rows.missing & ~rows.of(WAIT_KINDS)).sum())
    if launched_only:
        rows = rows.where(~rows.missing)
    waits, computation, communication, copies, everything = (
        rows.union(kinds)
        for kinds in (WAIT_KINDS, COMPUTATION_KINDS, COMMUNICATION_KINDS, COPY_KINDS, schema.BUSY_KINDS)
    )
    exposed_communication = intervals.subtract(communication, computation)
    exposed_copies = intervals.subtract(intervals.subtract(copies, computation), communication)
    return DeviceBusy(
        device=device,
        events=int((~rows.of(WAIT_KINDS)).sum()),
        start_ns=int(rows.starts.min()) if len(rows.starts) else 0,
        span_ns=intervals.span(rows.starts, rows.ends),
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
