"""What ``traceview report`` and ``traceview kernels`` answer, as data: typed, unformatted, in ns and shares of one.

A part that was not looked at, or cannot be known from the trace, is ``None`` and has a :class:`PartNote` that says
why; an empty tuple means that it was looked for and nothing is there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.busy import DeviceBusy, busy
from traceview.collective_skew import CollectiveSkew, skew_notes
from traceview.gap_report import GapReport, gap_report
from traceview.host_copies import devices_without_copies
from traceview.recompile_report import RecompileReport, recompile_report
from traceview.report_parts import (
    Device,
    ImportNote,
    ImportSummary,
    PartNote,
    TraceInfo,
    describe,
    summarise_import,
)
from traceview.rules.base import Facts
from traceview.stage_table import StageTable, stage_table
from traceview.step_marks import WHOLE_NAME, StepSource
from traceview.time_report import StepTimeline, stage_notes, step_notes, step_timeline
from traceview.top_findings import RankedFinding, top_findings
from traceview.transfer_report import TransferReport, transfer_report
from traceview.xprof_figures import XprofFigures, xprof_figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.stages import StagePattern
    from traceview.timeline import Timeline

__all__ = [
    "Device",
    "DeviceBusy",
    "ImportNote",
    "ImportSummary",
    "KernelReport",
    "KernelUse",
    "PartNote",
    "Report",
    "Step",
    "TraceInfo",
    "describe",
    "kernel_report",
    "kernel_uses",
    "report",
    "steps_of",
    "summarise_import",
]

COPY_FAMILIES: Final = {"memcpy": "memcpy", "memset": "memset"}
"""Kinds of device work that are no kernels; the kind is their family."""

_NO_STEPS: Final = (
    "The trace has no step marks: call prof.step() once per iteration (PyTorch), or wrap it in StepTraceAnnotation "
    "(JAX)."
)

_COPIES_ON_HOST: Final = (
    "Copies from and to the host are recorded on the host alone, not on the device: where the device waited for them "
    "it counts as idle, and how much of them nothing hides is not known."
)

DEVICE_NOT_RECORDED: Final = (
    "The trace has no device work: either nothing ran on a device, or device activity was not recorded."
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of one process.

    Attributes:
        name: Name of its range, as recorded.
        index: Its number, as the program counts, else from 0 in each process.
        rank: Rank of its process, if recorded.
        start_ns: Start, ns.
        wall_ns: From there to the end of its range or of its last device work, ns.
        warmup: It is warm-up; ``None`` where that cannot be told.
        host_ns: Length of its host range, ns.
        why: Why it is.
        phase: Phase of a serving engine.
        requests: Requests in its batch.
        prefill_tokens: New tokens of prompts in it.
        decode_tokens: Tokens decoded in it.
    """

    name: str
    index: int
    rank: int | None
    start_ns: int
    wall_ns: int
    warmup: bool | None
    host_ns: int | None = None
    why: str | None = None
    phase: str | None = None
    requests: int | None = None
    prefill_tokens: int | None = None
    decode_tokens: int | None = None
    owner: str | None = None
    """What tells its process from others; ``None`` if it is the only one."""

    @property
    def label(self) -> str:
        """Its process where that is needed, its name, and its number where the name does not hold it."""
        named = str(self.index) in re.findall(r"\d+", self.name)
        number = "" if named or self.name == WHOLE_NAME else f" #{self.index}"
        return " ".join(part for part in (self.who, f"{self.name}{number}") if part)

    @property
    def who(self) -> str | None:
        """Its process: its rank, else what tells it from others; ``None`` if it is the only one."""
        return self.owner or (None if self.rank is None else f"rank {self.rank}")


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
    """Answer of ``traceview report``; parts that were not looked for are ``None``."""

    trace: TraceInfo
    launched_only: bool
    devices: tuple[DeviceBusy, ...] | None
    steps: tuple[Step, ...] | None
    kernels: tuple[KernelUse, ...] | None
    families: tuple[KernelUse, ...] | None
    import_report: ImportSummary
    notes: tuple[PartNote, ...]
    time: StepTimeline | None = None
    stages: StageTable | None = None
    gaps: GapReport | None = None
    recompiles: RecompileReport | None = None
    transfers: TransferReport | None = None
    xprof: XprofFigures | None = None
    """The figures that XProf itself shows, for a profile of TPUs."""
    findings: tuple[RankedFinding, ...] | None = None
    """What every rule found in the whole trace, most to win first."""
    skew: CollectiveSkew | None = None
    """Waiting in collectives for late ranks."""
    host_only_copies: frozenset[int] = frozenset()
    """Devices whose copies from and to the host are recorded on the host alone; their exposed copies are not known."""


def steps_of(steps: StepTimeline) -> tuple[Step, ...]:
    """The steps by start, each with what is known of it."""
    return tuple(
        Step(
            name=row["name"],
            index=row["number"],
            rank=steps.ranks.get(row["process"]),
            start_ns=row["start_ns"],
            wall_ns=row["end_ns"] - row["start_ns"],
            host_ns=row["host_end_ns"] - row["host_start_ns"],
            warmup=row["warmup"],
            why=row["why"],
            phase=row["phase"],
            requests=row["requests"],
            prefill_tokens=row["prefill_tokens"],
            decode_tokens=row["decode_tokens"],
            owner=steps.owners.get(row["process"]),
        )
        for row in steps.table.steps.sort("start_ns", "process").iter_rows(named=True)
    )


def kernel_uses(timeline: Timeline, work: pl.DataFrame) -> tuple[tuple[KernelUse, ...], tuple[KernelUse, ...]]:
    """What each kernel and each family of device work took.

    XLA ops are listed without the number of the instruction, and with the time that they took themselves.

    Args:
        timeline: Where the work is from.
        work: Device work, as :attr:`traceview.timeline.Timeline.device_work` returns it.

    Returns:
        Kernels (device work other than copies and fills) and families (all device work), each by falling total.
    """
    from traceview.xla import identify_work, self_ns, without_number

    rows = work.select("id", "name", "kind", "device", "stream", "start_ns", "dur_ns").with_columns(
        pl.col("name").cast(pl.String)
    )
    facts = ["family", "implementation", "provider", "tensor_core"]
    rows = identify_work(timeline, rows).with_columns(self_ns=self_ns(rows))
    is_xla = pl.col("kind").cast(pl.String).is_in(["xla_op", "collective"])
    rows = rows.with_columns(name=pl.when(is_xla).then(without_number(pl.col("name"))).otherwise("name"))
    copy_family = pl.col("kind").cast(pl.String).replace_strict(COPY_FAMILIES, default=None)
    rows = rows.with_columns(
        family=pl.coalesce(copy_family, pl.col("family").cast(pl.String), pl.lit("unknown")),
        is_kernel=~pl.col("kind").is_in(list(COPY_FAMILIES)),
    )
    device_ns = int(rows["self_ns"].sum())
    busy_ns = int(_with_new_time(rows, []).sum())
    kernels = _used(rows.filter("is_kernel"), ["name", *facts], device_ns, busy_ns)
    families = _used(rows.with_columns(name="family"), ["name", "family"], device_ns, busy_ns)
    return kernels, families


def _used(rows: pl.DataFrame, by: list[str], device_ns: int, busy_ns: int) -> tuple[KernelUse, ...]:
    table = (
        rows.with_columns(new_ns=_with_new_time(rows, ["name"]))
        .group_by(by)
        .agg(count=pl.len(), total_ns=pl.col("self_ns").sum(), union_ns=pl.col("new_ns").sum())
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


def report(
    timeline: Timeline,
    *,
    launched_only: bool = False,
    given: Sequence[StagePattern] = (),
    facts: Facts | None = None,
) -> Report:
    """Where the time went: devices, steps, stages, kernels.

    Args:
        timeline: With launches linked.
        launched_only: Leave device work without a launch in the file out of the busy times and kernels.
        given: Stages of the user.
        facts: What was worked out of the timeline, or is to be, if somebody else wants to know it too.
    """
    work = timeline.device_work
    notes: list[PartNote] = []
    if launched_only:
        work = work.filter(pl.col("launch_id").is_not_null())
    devices = busy(timeline, launched_only=launched_only)
    kernels, families = kernel_uses(timeline, work) if work.height else (None, None)
    if not devices:
        notes += [PartNote(part, DEVICE_NOT_RECORDED) for part in ("devices", "kernels")]
    elif kernels is None:
        notes.append(PartNote("kernels", "No device work has a launch in the file, so none is left."))
    notes += _launch_notes(devices, launched_only=launched_only)
    unseen = frozenset(devices_without_copies(timeline))
    if unseen:
        notes.append(PartNote("devices", _COPIES_ON_HOST))
    facts = Facts.of(timeline) if facts is None or facts.timeline is not timeline else facts
    time = step_timeline(timeline, steps=facts.steps, split_idle=facts.idle_split)
    stages = stage_table(timeline, given, steps=time.table)
    marked = time.table.source is not StepSource.WHOLE
    notes += stage_notes(stages)
    notes += step_notes(time)
    notes += [PartNote("collective_skew", text) for text in skew_notes(facts.skew)]
    xprof = xprof_figures(timeline)
    if xprof is None:
        notes.append(PartNote("xprof", "Only an XProf profile of TPUs has figures to compare with XProf's pages."))
    return Report(
        trace=describe(timeline),
        launched_only=launched_only,
        devices=devices or None,
        steps=steps_of(time) if marked else None,
        kernels=kernels,
        families=families,
        import_report=summarise_import(timeline),
        notes=tuple(notes),
        time=time,
        stages=stages,
        gaps=gap_report(timeline, facts.works, steps=facts.steps, pieces=facts.gap_pieces),
        recompiles=recompile_report(timeline, known=facts.recompiles, steps=facts.steps),
        transfers=transfer_report(timeline, facts.steps),
        xprof=xprof,
        findings=top_findings(facts),
        skew=facts.skew,
        host_only_copies=unseen,
    )


def kernel_report(timeline: Timeline) -> KernelReport:
    """Which kernels ran and what they took."""
    work = timeline.device_work
    kernels, families = kernel_uses(timeline, work) if work.height else (None, None)
    notes = () if work.height else (PartNote("kernels", DEVICE_NOT_RECORDED),)
    return KernelReport(
        trace=describe(timeline),
        device_ns=sum(one.total_ns for one in families or ()),
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
