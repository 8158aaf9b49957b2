"""What ``traceview gaps`` answers: idle time by cause, how devices are fed, and where the host waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from traceview import gaps, intervals
from traceview.callers import caller
from traceview.expectations.host_gaps import why_unreliable
from traceview.host_waits import host_waits
from traceview.idle_split import idle_by_cause
from traceview.launch_health import launch_bound_regions, launch_health
from traceview.report_parts import PartNote, describe, summarise_import
from traceview.steady_state import find_steady_state
from traceview.trust_limits import Answer, limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from traceview.idle_work import Work
    from traceview.report_parts import ImportSummary, TraceInfo
    from traceview.steps import StepTable
    from traceview.timeline import Timeline

WITHOUT_DEVICE: Final = (
    "No device work is recorded: the ops of the host count as the work, and the time between them as idle."
)
NOTHING: Final = "Neither device work nor ops are recorded, so idle time cannot be told."


@dataclass(frozen=True, slots=True)
class GapReport:
    """Answer of ``traceview gaps``.

    Attributes:
        trace: Which trace.
        span_ns: From the first start to the last end of work, summed over devices (or of the host's ops), ns.
        lanes: How many devices (without any: processes) that is summed over.
        causes: :data:`traceview.idle_split.IDLE_BY_CAUSE`; ``None`` if there is no work at all.
        gaps: :data:`traceview.gaps.GAPS`, by falling recoverable time; ``None`` likewise.
        devices: :data:`traceview.launch_health.LAUNCH_HEALTH`; ``None`` without device work.
        regions: :data:`traceview.launch_health.LAUNCH_BOUND_REGIONS`; ``None`` without device work.
        waits: :data:`traceview.host_waits.HOST_WAITS`.
        doubt: Why idle time is not reliable; ``None`` if nothing speaks for that.
        import_report: How the import went.
        notes: Why a part is missing or limited.
        trust: Grade that the import leaves for these numbers: ``good``, ``limited`` or ``poor``.
    """

    trace: TraceInfo
    span_ns: int
    lanes: int
    causes: pl.DataFrame | None
    gaps: pl.DataFrame | None
    devices: pl.DataFrame | None
    regions: pl.DataFrame | None
    waits: pl.DataFrame
    doubt: str | None
    import_report: ImportSummary
    notes: tuple[PartNote, ...]
    trust: str

    @property
    def idle_ns(self) -> int:
        """Idle time of all devices together, ns."""
        return int(self.causes["idle_ns"].sum()) if self.causes is not None else 0

    @property
    def recoverable_ns(self) -> int:
        """The most that changes on the host can win back, of all devices together, ns."""
        return int(self.causes["recoverable_ns"].sum()) if self.causes is not None else 0


def gap_report(
    timeline: Timeline,
    known: Sequence[Work] | None = None,
    *,
    steps: StepTable | None = None,
    pieces: pl.DataFrame | None = None,
) -> GapReport:
    """Why the devices of a trace stood idle.

    Args:
        timeline: As :func:`traceview.load` returns it.
        known: Its :func:`traceview.gaps.works`, if they are at hand.
        steps: Its :func:`traceview.steps.find_steps`, if they are at hand.
        pieces: The :func:`traceview.gaps.causes` of all its idle time, if they are at hand.
    """
    works = tuple(gaps.works(timeline) if known is None else known)
    if pieces is None:
        pieces = gaps.causes(timeline, gaps.idle(timeline, works), works)
    found = gaps.gaps(timeline, pieces, works).sort(
        "recoverable_ns", "dur_ns", "start_ns", descending=[True, True, False]
    )
    on_device = bool(works) and works[0].device is not None
    limiting = limits(timeline, Answer.IDLE, Answer.CAUSES)
    doubt = why_unreliable(timeline) if on_device else None
    notes = [PartNote("gaps", note.text) for note in limiting]
    if doubt:
        notes.append(PartNote("gaps", f"Idle time is not reliable: {doubt.rstrip('.')}."))
    if not on_device:
        notes.append(PartNote("devices", WITHOUT_DEVICE if works else NOTHING))
    return GapReport(
        trace=describe(timeline),
        span_ns=sum(intervals.total(*work.window) for work in works),
        lanes=len(works),
        causes=idle_by_cause(timeline, pieces, found) if works else None,
        gaps=found if works else None,
        devices=launch_health(timeline, pieces, works) if on_device else None,
        regions=launch_bound_regions(timeline, found.sort("device", "start_ns"), works) if on_device else None,
        waits=host_waits(timeline, pieces, find_steady_state(timeline, steps)),
        doubt=doubt,
        import_report=summarise_import(timeline),
        notes=tuple(notes),
        trust=limiting[0].trust.value if limiting else "good",
    )


def places(timeline: Timeline, chosen: pl.DataFrame) -> list[str | None]:
    """Where in the user's code the host was in some gaps, if stacks were recorded.

    Args:
        timeline: The timeline.
        chosen: Some rows of :data:`traceview.gaps.GAPS`.
    """
    return [None if key is None else caller(timeline, key) for key in chosen["culprit_id"]]
