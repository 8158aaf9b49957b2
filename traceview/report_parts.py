"""Which trace an answer is about and how far to believe it: the parts that every report has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from traceview.device_labels import device_label, device_places
from traceview.knowledge.architectures import architecture

if TYPE_CHECKING:
    from traceview.timeline import Count, Timeline


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
        place: Short name of its file, where number and rank do not tell it from another device.
    """

    device: int
    ordinal: int
    name: str | None
    vendor: str | None
    compute_capability: str | None
    rank: int | None
    used: bool
    architecture: str | None = None
    place: str | None = None

    @property
    def label(self) -> str:
        """Short name within one trace, e.g. ``rank 1 device 0``."""
        return device_label(self.ordinal, self.name, self.rank, self.place)


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

    @property
    def worked(self) -> int:
        """Number of devices that did some work."""
        return sum(one.used for one in self.devices)


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


def describe(timeline: Timeline) -> TraceInfo:
    """Which trace this is."""
    runs = timeline.runs
    ranks = {index: run.rank for index, run in enumerate(runs)}
    places = device_places(timeline)
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
            place=places.get(row["device"]),
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


def rank_of_process(timeline: Timeline) -> dict[int | None, int | None]:
    """Rank of each process, ``None`` where it is not recorded."""
    ranks = {index: run.rank for index, run in enumerate(timeline.runs)}
    return {row["process"]: ranks.get(row["run"]) for row in timeline.processes.iter_rows(named=True)}
