"""The common timeline: what a trace holds, in one shape for every source format.

A :class:`Timeline` is immutable. Parsers build one, the loader links launches, and analyses only read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import polars as pl

from traceview import schema
from traceview.capture_info import CaptureInfo, read_document

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path


class Trust(StrEnum):
    """How far the trace itself can be believed."""

    GOOD = "good"
    """Nothing was lost or repaired that an answer could depend on."""
    LIMITED = "limited"
    """Something was lost or repaired; the notes say what it limits."""
    POOR = "poor"
    """So much is missing that totals are lower bounds at best."""


@dataclass(frozen=True, slots=True)
class Count:
    """How often something had to be skipped, repaired or doubted, with the first example."""

    n: int
    example: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """One remark on the import.

    Attributes:
        kind: Stable identifier, e.g. ``"launch-missing"``.
        text: One sentence for a person, with its numbers.
        trust: The grade this note alone leaves the trace with.
    """

    kind: str
    text: str
    trust: Trust = Trust.GOOD


@dataclass(frozen=True, slots=True)
class DeviceLoss:
    """How many rows of device work could not be read.

    Attributes:
        least: So many certainly were device work.
        most: So many can have been.
    """

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What the import had to skip, repair or doubt. Nothing is dropped without a count here.

    Attributes:
        counts: Problem kind to :class:`Count`. Kinds that start with ``lost-`` mean that data is gone,
            ``repaired-`` that it was read after a repair, others are facts about the recording.
        notes: Remarks in words, each with the trust it leaves.
        truncated: The file ends before its own end, or is damaged (see ``damaged``).
        device_loss: How much device work is among what was lost; ``None`` if the parser does not say, and then every
            lost event may have been.
    """

    counts: Mapping[str, Count] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    truncated: bool = False
    device_loss: DeviceLoss | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", MappingProxyType(dict(self.counts)))

    @property
    def damaged(self) -> bool:
        """A file is damaged; ``truncated`` is set too, as nobody knows what is missing."""
        return any(note.kind == "damaged" for note in self.notes)

    @property
    def trust(self) -> Trust:
        """The worst grade that any note leaves."""
        order = list(Trust)
        return max((note.trust for note in self.notes), key=order.index, default=Trust.GOOD)

    def with_notes(self, *notes: Note) -> ImportReport:
        """The same report with ``notes`` added."""
        return replace(self, notes=(*self.notes, *notes))

    def with_counts(self, **counts: Count) -> ImportReport:
        """The same report with ``counts`` added (``_`` in a keyword stands for ``-``); equal kinds add up."""
        merged = dict(self.counts)
        for key, count in counts.items():
            kind = key.replace("_", "-")
            before = merged.get(kind)
            merged[kind] = Count(before.n + count.n, before.example or count.example) if before else count
        return replace(self, counts=merged)

    def __add__(self, other: ImportReport) -> ImportReport:
        """Both reports as one, for several files."""
        merged = dict(self.counts)
        for kind, count in other.counts.items():
            before = merged.get(kind)
            merged[kind] = Count(before.n + count.n, before.example or count.example) if before else count
        known = [report.device_loss for report in (self, other) if report.device_loss is not None]
        loss = DeviceLoss(sum(one.least for one in known), sum(one.most for one in known)) if known else None
        return ImportReport(merged, (*self.notes, *other.notes), self.truncated or other.truncated, loss)


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Where one file came from and under which conditions it was recorded.

    Attributes:
        path: The file, as given.
        format: Format id, e.g. ``"kineto"``.
        producer: Program that wrote it, in words.
        producer_version: Its version, ``None`` if the file does not say.
        origin_unix_ns: Unix time of timeline zero, ``None`` if unknown.
        rank: Distributed rank, ``None`` if not recorded.
        world_size: Number of ranks, ``None`` if not recorded.
        metadata: Facts of the recording that are safe to show (never environment, user or host). ``"capture"`` is what
            ``traceview.capture`` wrote down, see :attr:`capture`.
    """

    path: Path
    format: str
    producer: str
    producer_version: str | None = None
    origin_unix_ns: int | None = None
    rank: int | None = None
    world_size: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def capture(self) -> CaptureInfo | None:
        """The conditions that ``traceview.capture`` recorded; ``None`` if the trace was made without it."""
        content = self.metadata.get("capture")
        return None if content is None else read_document(content).info


@dataclass(frozen=True)
class Timeline:
    """One trace, or several ranks of one run, as frames.

    Attributes:
        events: :data:`traceview.schema.EVENTS`.
        processes: :data:`traceview.schema.PROCESSES`.
        threads: :data:`traceview.schema.THREADS`.
        devices: :data:`traceview.schema.DEVICES`.
        inputs: :data:`traceview.schema.INPUTS`.
        details: Rare arguments, losslessly: argument name to a frame of
            :data:`traceview.schema.INT_DETAIL` or :data:`traceview.schema.TEXT_DETAIL`, sorted by ``id``.
            A key whose values are of both sorts has its text part under ``"<key> (text)"``.
        runs: One :class:`RunInfo` per file.
        report: What the import skipped, repaired or doubts.
    """

    events: pl.DataFrame
    processes: pl.DataFrame
    threads: pl.DataFrame
    devices: pl.DataFrame
    inputs: pl.DataFrame
    details: Mapping[str, pl.DataFrame]
    runs: tuple[RunInfo, ...]
    report: ImportReport

    def validate(self) -> None:
        """Check every frame against its contract.

        Raises:
            ValueError: says which frame breaks it and how.
        """
        schema.EVENTS.validate(self.events)
        schema.PROCESSES.validate(self.processes)
        schema.THREADS.validate(self.threads)
        schema.DEVICES.validate(self.devices)
        schema.INPUTS.validate(self.inputs)
        for frame in self.details.values():
            text = frame.schema.get("value") == pl.Categorical
            (schema.TEXT_DETAIL if text else schema.INT_DETAIL).validate(frame)

    @cached_property
    def device_work(self) -> pl.DataFrame:
        """The rows that keep a device busy: device set, kind in :data:`traceview.schema.BUSY_KINDS`."""
        return self.events.filter(pl.col("device").is_not_null() & pl.col("kind").is_in(list(schema.BUSY_KINDS)))

    @cached_property
    def _host_names(self) -> pl.DataFrame:
        """The distinct ``kind`` and ``name`` of the events of host threads."""
        return (
            self.events.select("thread", "kind", "name")
            .filter(pl.col("thread").is_not_null())
            .select("kind", "name")
            .unique()
        )

    def host_names(self, kinds: Collection[str]) -> pl.Series:
        """The distinct names of the events of host threads of some kinds, in no promised order.

        A trace has millions of events and thousands of names: whoever looks for a name looks here first.
        """
        return self._host_names.filter(pl.col("kind").is_in(list(kinds)))["name"].unique()

    def __repr__(self) -> str:
        files = ", ".join(run.path.name for run in self.runs)
        return (
            f"<Timeline of {files}: {self.events.height} events, {self.devices.height} devices, "
            f"trust {self.report.trust.value}>"
        )
