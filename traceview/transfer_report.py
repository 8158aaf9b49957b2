"""What ``traceview transfers`` answers: copies, and the traffic of the allocator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from traceview.allocations import allocations
from traceview.device_labels import process_labels
from traceview.report_parts import PartNote, describe, summarise_import
from traceview.steady_state import WHICH_STEPS, find_steady_state
from traceview.transfers import FEWEST_STEPS, copies, transfers
from traceview.trust_limits import Answer, limits

if TYPE_CHECKING:
    from traceview.report_parts import ImportSummary, TraceInfo
    from traceview.steps import StepTable
    from traceview.timeline import Timeline


@dataclass(frozen=True, slots=True)
class TransferReport:
    """Answer of ``traceview transfers``.

    Attributes:
        trace: Which trace.
        transfers: :data:`traceview.transfers.TRANSFERS`; ``None`` if neither devices nor ops are recorded.
        allocations: :data:`traceview.allocations.ALLOCATIONS`.
        steady_steps: Number of steps past the warm-up; ``None`` if fewer than two profiler steps are recorded.
        import_report: How the import went.
        notes: Why a part is missing or limited.
        trust: Grade that the import leaves for these numbers.
        hosts: Label of each process whose copies the host recorded, if there are several.
    """

    trace: TraceInfo
    transfers: pl.DataFrame | None
    allocations: pl.DataFrame
    steady_steps: int | None
    import_report: ImportSummary
    notes: tuple[PartNote, ...]
    trust: str
    hosts: dict[int | None, str] = field(default_factory=dict)


def transfer_report(timeline: Timeline, steps: StepTable | None = None) -> TransferReport:
    """What was copied in a trace, and how much of it again and again.

    Args:
        timeline: As :func:`traceview.load` returns it.
        steps: Its :func:`traceview.steps.find_steps`, if they are at hand.
    """
    steady = find_steady_state(timeline, steps)
    rows = copies(timeline)
    hosts = rows.filter(pl.col("device").is_null())["process"].unique().sort().to_list()
    limiting = limits(timeline, Answer.TRANSFERS)
    notes = [PartNote("transfers", note.text) for note in limiting]
    on_device = bool(timeline.device_work.height)
    visible = on_device or rows.height or bool((timeline.events["kind"] == "op").any())
    if not visible:
        notes.append(PartNote("transfers", "Neither device work nor ops are recorded, so copies cannot be seen."))
    elif not on_device and rows.height:
        notes.append(
            PartNote("transfers", "No device work is recorded: these are copies as the host sees them, in its memory.")
        )
    if rows.height and rows["bytes"].null_count():
        missing = rows["bytes"].null_count()
        notes.append(PartNote("transfers", f"The size of {missing:,} of {rows.height:,} copies is not recorded."))
    if steady is None or steady.steps.height < FEWEST_STEPS:
        notes.append(
            PartNote(
                "transfers",
                f"Fewer than two profiler steps past the warm-up are recorded ({WHICH_STEPS}), so what repeats cannot "
                "be told.",
            )
        )
    return TransferReport(
        trace=describe(timeline),
        transfers=transfers(timeline, steady, rows) if visible else None,
        allocations=allocations(timeline, steady),
        steady_steps=None if steady is None else steady.steps.height,
        import_report=summarise_import(timeline),
        notes=tuple(notes),
        trust=limiting[0].trust.value if limiting else "good",
        hosts=process_labels(timeline, hosts) if len(hosts) > 1 else {},
    )
