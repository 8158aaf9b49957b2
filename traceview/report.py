"""What ``traceview report`` and ``traceview kernels`` answer, as data: typed, unformatted, in ns and shares of one.

A part that was not looked at, or cannot be known from the trace, is ``None`` and has a :class:`PartNote` that says
why; an empty tuple means that it was looked for and nothing is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.busy import DeviceBusy, busy
from traceview.knowledge.architectures import architecture
from traceview.steps import STEP_NAME

if TYPE_CHECKING:
    from traceview.timeline import Count, Timeline

COPY_FAMILIES: Final = {"memcpy": "memcpy", "memset": "memset"}
"""Kinds of device work that are no kernels; the kind is their family."""

DEVICE_NOT_RECORDED: Final = (
    "The trace has no device work: either nothing ran on a device, or device activity was not recorded."
)


@dataclass(frozen=True, slots=True)
class PartNote:
    """Why a part is missing or limited. ``part`` is the name of the field concerned."""

    part: str
    text: str


@dataclass(frozen=True, slots=True)
class Device:
    """A device as the trace describes it.

    Attributes:
        device: Key into ``Timeline.devices``.
        ordinal: Device number in its file.
        name: Product name, if recorded.
        vendor: Vendor, if it can be told.
        compute_capability: ``"9.0"``; for AMD the gfx number's major and minor.
        rank: Rank of the file it comes from, if recorded.
        used: It did some work in the trace.
        architecture: ``"sm90"``, ``"gfx942"``, if it can be told.
    """

    device: int
    ordinal: int
    name: str | None
    vendor: str | None
    compute_capability: str | None
    rank: int | None
    used: bool
    architecture: str | None = None

    @property
    def label(self) -> str:
        """Short name within one trace, e.g. ``rank 1 device 0``."""
        return f"device {self.ordinal}" if self.rank is None else f"rank {self.rank} device {self.ordinal}"


@dataclass(frozen=True, slots=True)
class TraceInfo:
    """Which trace this is and how far it can be believed.

    Attributes:
        files: Paths as given, one per file read.
        format: Format id; several are joined by ``+``.
        producer: Program that wrote it.
        producer_version: Its version, if the file says.
        devices: Every device the file describes.
        events: Number of events read.
        truncated: A file ends before its own end.
        trust: ``good``, ``limited`` or ``poor``.
    """

    files: tuple[str, ...]
    format: str
    producer: str
    producer_version: str | None
    devices: tuple[Device, ...]
    events: int
    truncated: bool
    trust: str


@dataclass(frozen=True, slots=True)
class ImportNote:
    """One remark on the import; ``trust`` is the grade that it alone leaves."""

    kind: str
    text: str
    trust: str


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What the import skipped, repaired or doubts: counts by kind, and remarks in words."""

    trust: str
    truncated: bool
    counts: dict[str, Count]
    notes: tuple[ImportNote, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One profiler step of one process; ``warmup`` is ``None`` where it is not known."""

    name: str
    index: int
    rank: int | None
    start_ns: int
    wall_ns: int
    warmup: bool | None


@dataclass(frozen=True, slots=True)
class KernelUse:
    """What one kernel, or one family, took.

    Attributes:
        name: Kernel name as recorded; for a family row, the family.
        family: What it computes, e.g. ``gemm``.
        implementation: Which implementation, if it is known.
        provider: Whose build it is, if it is known.
        tensor_core: Whether it runs on tensor cores (matrix cores); ``None``: not known.
        count: Number of runs.
        total_ns: Sum of its durations, ns.
        union_ns: Time in which at least one of it ran, summed over devices, ns.
        share: ``total_ns`` over the sum of all device work.
        busy_share: ``union_ns`` over the busy time of all devices; shares of kernels that overlap add up to
            more than one.
    """

    name: str
    family: str
    implementation: str | None
    provider: str | None
    tensor_core: bool | None
    count: int
    total_ns: int
    union_ns: int
    share: float
    busy_share: float

    @property
    def mean_ns(self) -> int:
        """Mean duration, rounded to whole ns."""
        return round(self.total_ns / self.count)


@dataclass(frozen=True, slots=True)
class KernelReport:
    """Answer of ``traceview kernels``; ``kernels`` and ``families`` by falling total, ``None`` without device work."""

    trace: TraceInfo
    device_ns: int
    busy_ns: int
    kernels: tuple[KernelUse, ...] | None
    families: tuple[KernelUse, ...] | None
    import_report: ImportSummary
    notes: tuple[PartNote, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Answer of ``traceview report``."""

    trace: TraceInfo
    launched_only: bool
    devices: tuple[DeviceBusy, ...] | None
    steps: tuple[Step, ...] | None
    kernels: tuple[KernelUse, ...] | None
    families: tuple[KernelUse, ...] | None
    import_report: ImportSummary
    notes: tuple[PartNote, ...]


def describe(timeline: Timeline) -> TraceInfo:
    """Which trace this is."""
    runs = timeline.runs
    ranks = {index: run.rank for index, run in enumerate(runs)}
    used = set(timeline.device_work["device"].unique())
    devices = tuple(
        Device(
            device=row["device"],
            ordinal=row["ordinal"],
            name=row["name"],
            vendor=row["vendor"],
            compute_capability=None
            if row["compute_major"] is None
            else f"{row['compute_major']}.{row['compute_minor'] or 0}",
            rank=ranks.get(row["run"]),
            used=row["device"] in used,
            architecture=architecture(row["vendor"], row["name"], row["compute_major"], row["compute_minor"]),
        )
        for row in timeline.devices.iter_rows(named=True)
    )
    versions = {run.producer_version for run in runs}
    return TraceInfo(
        files=tuple(str(run.path) for run in runs),
        format="+".join(dict.fromkeys(run.format for run in runs)),
        producer=" + ".join(dict.fromkeys(run.producer for run in runs)),
        producer_version=next(iter(versions)) if len(versions) == 1 else None,
        devices=devices,
        events=timeline.events.height,
        truncated=timeline.report.truncated,
        trust=timeline.report.trust.value,
    )


def summarise_import(timeline: Timeline) -> ImportSummary:
    """What the import skipped, repaired or doubts."""
    report = timeline.report
    return ImportSummary(
        trust=report.trust.value,
        truncated=report.truncated,
        counts=dict(report.counts),
        notes=tuple(ImportNote(note.kind, note.text, note.trust.value) for note in report.notes),
    )


def find_steps(timeline: Timeline) -> tuple[Step, ...]:
    """The profiler steps by start; one per process and step."""
    ranks = {index: run.rank for index, run in enumerate(timeline.runs)}
    rank_of = {row["process"]: ranks.get(row["run"]) for row in timeline.processes.iter_rows(named=True)}
    marks = timeline.events.filter(
        (pl.col("kind") == "annotation")
        & pl.col("thread").is_not_null()
        & pl.col("name").cast(pl.String).str.contains(STEP_NAME)
    ).with_columns(index=pl.col("name").cast(pl.String).str.extract(STEP_NAME).cast(pl.Int64, strict=False))
    return tuple(
        Step(
            name=row["name"],
            index=row["index"],
            rank=rank_of.get(row["process"]),
            start_ns=row["start_ns"],
            wall_ns=row["dur_ns"],
            warmup=None,
        )
        for row in marks.select("name", "index", "process", "start_ns", "dur_ns").iter_rows(named=True)
        if row["index"] is not None
    )


def kernel_uses(work: pl.DataFrame) -> tuple[tuple[KernelUse, ...], tuple[KernelUse, ...]]:
    """What each kernel and each family of device work took.

    Args:
        work: Device work, as :attr:`traceview.timeline.Timeline.device_work` returns it.

    Returns:
        Kernels (device work other than copies and fills) and families (all device work), each by falling total.
    """
    from traceview.kernels import identify

    rows = work.select("name", "kind", "device", "start_ns", "dur_ns").with_columns(pl.col("name").cast(pl.String))
    identity = identify(rows["name"].unique(maintain_order=True))
    facts = ["family", "implementation", "provider", "tensor_core"]
    rows = rows.join(identity.select("name", *(pl.col(fact) for fact in facts)), on="name", how="left")
    copy_family = pl.col("kind").cast(pl.String).replace_strict(COPY_FAMILIES, default=None)
    rows = rows.with_columns(
        family=pl.coalesce(copy_family, pl.col("family").cast(pl.String), pl.lit("unknown")),
        is_kernel=~pl.col("kind").is_in(list(COPY_FAMILIES)),
    )
    device_ns = int(rows["dur_ns"].sum())
    busy_ns = int(_with_new_time(rows, []).sum())
    kernels = _used(rows.filter("is_kernel"), ["name", *facts], device_ns, busy_ns)
    families = _used(rows.with_columns(name="family"), ["name", "family"], device_ns, busy_ns)
    return kernels, families


def _used(rows: pl.DataFrame, by: list[str], device_ns: int, busy_ns: int) -> tuple[KernelUse, ...]:
    table = (
        rows.with_columns(new_ns=_with_new_time(rows, ["name"]))
        .group_by(by)
        .agg(count=pl.len(), total_ns=pl.col("dur_ns").sum(), union_ns=pl.col("new_ns").sum())
        .sort("total_ns", "name", descending=[True, False])
    )
    return tuple(
        KernelUse(
            name=row["name"],
            family=row["family"],
            implementation=row.get("implementation"),
            provider=row.get("provider"),
            tensor_core=row.get("tensor_core"),
            count=row["count"],
            total_ns=row["total_ns"],
            union_ns=row["union_ns"],
            share=row["total_ns"] / device_ns if device_ns else 0.0,
            busy_share=row["union_ns"] / busy_ns if busy_ns else 0.0,
        )
        for row in table.iter_rows(named=True)
    )


def _with_new_time(rows: pl.DataFrame, by: list[str]) -> pl.Series:
    """For each row, how much of it no earlier row of its device and group covers; the sum is the union.

    One pass over all groups at once: with thousands of kernel names a union per name would be slow.
    """
    group = ["device", *by]
    ordered = rows.with_row_index("row").sort("start_ns", maintain_order=True)
    end = pl.col("start_ns") + pl.col("dur_ns")
    reach = end.cum_max().shift(1).over(group).fill_null(pl.col("start_ns"))
    new = (end - pl.max_horizontal("start_ns", reach)).clip(lower_bound=0)
    return ordered.select("row", new=new).sort("row")["new"]


def report(timeline: Timeline, *, launched_only: bool = False) -> Report:
    """Where the time of the devices went.

    Args:
        timeline: With launches linked.
        launched_only: Leave out device work without a launch in the file.
    """
    work = timeline.device_work
    notes: list[PartNote] = []
    if launched_only:
        work = work.filter(pl.col("launch_id").is_not_null())
    devices = busy(timeline, launched_only=launched_only)
    kernels, families = kernel_uses(work) if work.height else (None, None)
    if not devices:
        notes += [PartNote(part, DEVICE_NOT_RECORDED) for part in ("devices", "kernels")]
    elif kernels is None:
        notes.append(PartNote("kernels", "No device work has a launch in the file, so none is left."))
    notes += _launch_notes(devices, launched_only=launched_only)
    steps = find_steps(timeline)
    if not steps:
        notes.append(PartNote("steps", "The trace has no step marks; call prof.step() once per iteration."))
    return Report(
        trace=describe(timeline),
        launched_only=launched_only,
        devices=devices or None,
        steps=steps or None,
        kernels=kernels,
        families=families,
        import_report=summarise_import(timeline),
        notes=tuple(notes),
    )


def kernel_report(timeline: Timeline) -> KernelReport:
    """Which kernels ran and what they took."""
    work = timeline.device_work
    kernels, families = kernel_uses(work) if work.height else (None, None)
    notes = () if work.height else (PartNote("kernels", DEVICE_NOT_RECORDED),)
    return KernelReport(
        trace=describe(timeline),
        device_ns=int(work["dur_ns"].sum()),
        busy_ns=sum(one.busy_ns for one in busy(timeline)),
        kernels=kernels,
        families=families,
        import_report=summarise_import(timeline),
        notes=notes,
    )


def _launch_notes(devices: tuple[DeviceBusy, ...], *, launched_only: bool) -> list[PartNote]:
    orphans = sum(one.without_launch for one in devices)
    if not orphans:
        return []
    pieces = "1 piece of device work has" if orphans == 1 else f"{orphans:,} pieces of device work have"
    if launched_only:
        return [PartNote("devices", f"{pieces} no launch in the file; left out, as --launched-only asks.")]
    return [
        PartNote("devices", f"{pieces} no launch in the file; counted all the same, --launched-only leaves it out.")
    ]
