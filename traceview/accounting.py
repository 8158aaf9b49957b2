"""What the time of the steps went to, so that the parts add up to the wall time to the nanosecond.

Two views. Per device: computation first, then what of communication, copies and asynchronous waits nothing above them
hides, then idle time. Per process with its host: device work by kind, then what the host did while no device worked.
The second view is that of TensorBoard's PyTorch plugin, whose published figures the tests reproduce.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview import intervals
from traceview.busy import COMMUNICATION_KINDS, COMPUTATION_KINDS, COPY_KINDS, DeviceRows, rows_by_device
from traceview.host_copies import only_on_host
from traceview.knowledge.range_names import RangeKind, read_range_name
from traceview.launches import graph_replays

if TYPE_CHECKING:
    from traceview.intervals import IntervalSet
    from traceview.timeline import Timeline

IdleSplit = Callable[[Mapping[int, "IntervalSet"]], Mapping[int, Sequence[tuple[str, "IntervalSet"]]]]
"""Says what idle time of devices is due to: idle intervals by device key in, labels and their parts by device key out.

What no label covers is reported as unattributed. What two labels cover belongs to the first."""

IDLE: Final = "idle"


class Part(StrEnum):
    """Parts of the time of a device, in order of precedence."""

    COMPUTE = "compute"
    """Kernels, fills and XLA ops."""
    COLLECTIVE = "collective (exposed)"
    """Communication that no computation hides."""
    COPY = "copy (exposed)"
    """Copies that neither hides."""
    ASYNC_WAIT = "async wait"
    """The device waits for its own asynchronous copy or collective."""
    IDLE = "idle"
    """Nothing ran."""
    UNATTRIBUTED = "unattributed"
    """Idle time that no cause explains, if causes were asked for."""


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """The wall time of the steps on one device, in parts.

    ``compute_ns + collective_ns + copy_ns + async_wait_ns + idle_ns + unattributed_ns = wall_ns``, exactly.

    Attributes:
        device: Key into ``Timeline.devices``.
        steps: Number of steps counted.
        wall_ns: Sum of their durations, ns.
        compute_ns: Computation, ns.
        collective_ns: Exposed communication, ns.
        copy_ns: Exposed copies, ns.
        async_wait_ns: Waits for the device's own asynchronous work, ns.
        idle_ns: Idle time, ns; with causes, that which a cause explains.
        idle_by_cause: Idle time by cause, ns; empty if causes were not asked for.
        unattributed_ns: Idle time that no cause explains, ns.
        hidden_collective_ns: Communication behind computation, ns; not part of the sum.
        hidden_copy_ns: Copies behind computation or communication, ns; not part of the sum.
    """

    device: int
    steps: int
    wall_ns: int
    compute_ns: int
    collective_ns: int
    copy_ns: int
    async_wait_ns: int
    idle_ns: int
    idle_by_cause: dict[str, int]
    unattributed_ns: int
    hidden_collective_ns: int
    hidden_copy_ns: int

    @property
    def busy_ns(self) -> int:
        """Time in which the device worked, ns."""
        return self.compute_ns + self.collective_ns + self.copy_ns

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        """Name and length of each part, in order of precedence; they add up to the wall time."""
        idle = tuple(self.idle_by_cause.items()) if self.idle_by_cause else ((Part.IDLE.value, self.idle_ns),)
        return (
            (Part.COMPUTE.value, self.compute_ns),
            (Part.COLLECTIVE.value, self.collective_ns),
            (Part.COPY.value, self.copy_ns),
            (Part.ASYNC_WAIT.value, self.async_wait_ns),
            *((f"idle: {name}" if self.idle_by_cause else name, ns) for name, ns in idle),
            (Part.UNATTRIBUTED.value, self.unattributed_ns),
        )


HOST_PARTS: Final = ("kernel", "memcpy", "memset", "communication", "runtime", "data_loading", "cpu", "other")
"""Parts of the host-inclusive view, in order of precedence."""

_DEVICE_PARTS: Final = {
    **dict.fromkeys(("kernel", "xla_op", "graph"), HOST_PARTS.index("kernel")),
    "memcpy": HOST_PARTS.index("memcpy"),
    "memset": HOST_PARTS.index("memset"),
    "collective": HOST_PARTS.index("communication"),
}


@dataclass(frozen=True, slots=True)
class ProcessTime:
    """The wall time of the steps of one process with its host, in parts that add up exactly.

    Attributes:
        process: Key into ``Timeline.processes``.
        steps: Number of steps counted.
        wall_ns: Sum of their durations, ns.
        parts: Length of each of :data:`HOST_PARTS`, ns.
    """

    process: int | None
    steps: int
    wall_ns: int
    parts: dict[str, int]


def windows_of(steps: pl.DataFrame, process: int | None) -> IntervalSet:
    """The steps of a process as intervals, ns; two steps that touch stay two."""
    own = steps.filter(pl.col("process").eq_missing(process)).sort("start_ns")
    return own["start_ns"].to_numpy(), own["end_ns"].to_numpy()


def stepping_process(steps: pl.DataFrame, process: int | None) -> int | None:
    """The process whose steps count for a device of ``process``: the only one with steps, if that one has none."""
    return stepping_processes(steps, (process,))[process]


def stepping_processes(steps: pl.DataFrame, processes: Iterable[int | None]) -> dict[int | None, int | None]:
    """The :func:`stepping_process` of each of some processes."""
    with_steps = set(steps["process"].unique().to_list())
    alone = next(iter(with_steps)) if len(with_steps) == 1 else None
    return {one: alone if len(with_steps) == 1 and one not in with_steps else one for one in processes}


def process_of_devices(timeline: Timeline) -> dict[int, int | None]:
    """For each device that did work, the process that launched most of it (if unknown, that of the rows)."""
    work = timeline.device_work
    caller = timeline.events["process"].gather(work["launch_id"]) if work.height else work["process"]
    asked = work.select("device", process=pl.coalesce(caller, pl.col("process")))
    counted = (
        asked.group_by("device", "process").len().sort("device", "len", "process", descending=[False, True, False])
    )
    return dict(counted.unique("device", keep="first", maintain_order=True).select("device", "process").iter_rows())


def device_times(
    timeline: Timeline, steps: pl.DataFrame, *, split_idle: IdleSplit | None = None
) -> tuple[DeviceTime, ...]:
    """Account for the steps on each device that did work, in order of its key.

    Args:
        timeline: With launches linked.
        steps: Frame of :data:`traceview.steps.STEPS`; those that count.
        split_idle: Says what idle time is due to; without, it is one part.
    """
    found, idle = [], {}
    rows = timeline.events.select("device", "kind", "start_ns", "dur_ns").filter(pl.col("device").is_not_null())
    by_device = rows_by_device(rows)
    windows: dict[int | None, IntervalSet] = {}
    owners = process_of_devices(timeline)
    stepping = stepping_processes(steps, owners.values())
    for device, process in sorted(owners.items()):
        counted = stepping[process]
        if counted not in windows:
            windows[counted] = windows_of(steps, counted)
        if len(windows[counted][0]):
            time, idle[device] = _of_device(by_device[device], device, windows[counted])
            found.append(time)
    if split_idle is None:
        return tuple(found)
    parts = split_idle(idle)
    return tuple(_with_causes(one, idle[one.device], parts.get(one.device, ())) for one in found)


def _of_device(rows: DeviceRows, device: int, windows: IntervalSet) -> tuple[DeviceTime, IntervalSet]:
    """The account of a device, and when it was idle."""
    compute, collective, copy, waits = (
        intervals.intersect(windows, rows.union(kinds))
        for kinds in (COMPUTATION_KINDS, COMMUNICATION_KINDS, COPY_KINDS, ("async_wait",))
    )
    left = intervals.merge(*windows)
    lengths = []
    for part in (compute, collective, copy, waits):
        lengths.append(intervals.total(*intervals.intersect(left, part)))
        left = intervals.subtract(left, part)
    time = DeviceTime(
        device=device,
        steps=len(windows[0]),
        wall_ns=int((windows[1] - windows[0]).sum()),
        compute_ns=lengths[0],
        collective_ns=lengths[1],
        copy_ns=lengths[2],
        async_wait_ns=lengths[3],
        idle_ns=intervals.total(*left),
        idle_by_cause={},
        unattributed_ns=0,
        hidden_collective_ns=intervals.total(*collective) - lengths[1],
        hidden_copy_ns=intervals.total(*copy) - lengths[2],
    )
    return time, left


def _with_causes(time: DeviceTime, idle: IntervalSet, parts: Sequence[tuple[str, IntervalSet]]) -> DeviceTime:
    causes: dict[str, int] = {}
    for label, part in parts:
        causes[label] = causes.get(label, 0) + intervals.total(*intervals.intersect(idle, part))
        idle = intervals.subtract(idle, part)
    unattributed = intervals.total(*idle)
    return replace(time, idle_ns=time.idle_ns - unattributed, idle_by_cause=causes, unattributed_ns=unattributed)


def process_times(timeline: Timeline, steps: pl.DataFrame) -> tuple[ProcessTime, ...]:
    """Account for the steps of each process with its host.

    Device work of any device of the process comes first, copies that only the host recorded among it; then calls of the
    runtime and driver; then fetches of data; then ops and annotations; the rest is ``other``.

    Args:
        timeline: With launches linked.
        steps: Frame of :data:`traceview.steps.STEPS`; those that count.
    """
    events = timeline.events
    process_of = process_of_devices(timeline)
    names = events.select("kind", "name").filter(pl.col("kind") == "annotation")["name"].unique()
    read = [read_range_name(name) for name in names.cast(pl.String).to_list()]
    loading = names.filter(pl.Series([one.stage == "data_loading" for one in read], dtype=pl.Boolean))
    stages = names.filter(pl.Series([one.kind is RangeKind.STAGE for one in read], dtype=pl.Boolean))
    is_annotation = pl.col("kind") == "annotation"
    is_loading, is_stage = pl.col("name").is_in(loading.implode()), pl.col("name").is_in(stages.implode())
    copies = only_on_host(timeline)["id"]
    is_copy = pl.col("id").is_in(copies.implode())
    on_host = pl.col("thread").is_not_null()
    owner = pl.col("device").replace_strict(process_of, default=None, return_dtype=pl.UInt32)
    # Which of the parts a row can be time of: those of the device first, then what its host did.
    part = (
        pl.when(pl.col("device").is_not_null())
        .then(pl.col("kind").cast(pl.String).replace_strict(_DEVICE_PARTS, default=None, return_dtype=pl.UInt8))
        .when(on_host & is_copy)
        .then(pl.lit(HOST_PARTS.index("memcpy"), pl.UInt8))
        .when(on_host & pl.col("kind").is_in(["api", "sync"]))
        .then(pl.lit(HOST_PARTS.index("runtime"), pl.UInt8))
        .when(on_host & is_annotation & is_loading)
        .then(pl.lit(HOST_PARTS.index("data_loading"), pl.UInt8))
        .when(on_host & ((pl.col("kind") == "op") | (is_annotation & is_stage)))
        .then(pl.lit(HOST_PARTS.index("cpu"), pl.UInt8))
    )
    rows = events.select(
        "start_ns",
        "dur_ns",
        part=part,
        process=pl.when(pl.col("device").is_not_null()).then(owner).otherwise("process"),
    ).filter(pl.col("part").is_not_null())
    by_process = rows.partition_by("process", as_dict=True)
    found = []
    for (process,), own in steps.group_by("process", maintain_order=True):
        mine = by_process.get((process,), rows.clear())
        parts, starts = mine["part"].to_numpy(), mine["start_ns"].to_numpy()
        ends = starts + mine["dur_ns"].to_numpy()
        windows = (own["start_ns"].to_numpy(), own["end_ns"].to_numpy())
        left = intervals.merge(*windows)
        lengths = []
        for number in range(len(HOST_PARTS) - 1):
            chosen = parts == number
            layer = intervals.merge(starts[chosen], ends[chosen])
            lengths.append(intervals.total(*intervals.intersect(left, layer)))
            left = intervals.subtract(left, layer)
        lengths.append(intervals.total(*left))
        found.append(
            ProcessTime(
                process,
                own.height,
                int((windows[1] - windows[0]).sum()),
                dict(zip(HOST_PARTS, lengths, strict=True)),
            )
        )
    return tuple(found)


def why_idle_unreliable(timeline: Timeline) -> str | None:
    """Why a device that looks idle may have worked; ``None`` if nothing speaks for that."""
    replays = graph_replays(timeline.events)
    return f"{replays.words}, so their time looks idle" if replays.under_recorded else None
