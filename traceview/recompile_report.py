"""What ``traceview recompiles`` answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from traceview.recompiles import outside_window, recompiles, shows_compilation, why_compilation_hidden
from traceview.report_parts import PartNote, describe, summarise_import
from traceview.steady_state import WHICH_STEPS, find_steady_state
from traceview.trust_limits import Answer, limits

if TYPE_CHECKING:
    from traceview.compile_log import CompileLog
    from traceview.report_parts import ImportSummary, TraceInfo
    from traceview.steps import StepTable
    from traceview.timeline import Timeline


@dataclass(frozen=True, slots=True)
class RecompileReport:
    """Answer of ``traceview recompiles``.

    Attributes:
        trace: Which trace.
        recompiles: :data:`traceview.recompiles.RECOMPILES`; ``None`` if the trace would not show a compilation.
        import_report: How the import went.
        notes: Why a part is missing or limited.
        trust: Grade that the import leaves for these numbers.
    """

    trace: TraceInfo
    recompiles: pl.DataFrame | None
    import_report: ImportSummary
    notes: tuple[PartNote, ...]
    trust: str

    @property
    def late(self) -> pl.DataFrame | None:
        """Those after the warm-up; where that is not known, those of which another version existed before."""
        if self.recompiles is None:
            return None
        unknown = pl.col("warmup").is_null() & pl.col("recompiled").fill_null(value=False)
        return self.recompiles.filter(~pl.col("warmup").fill_null(value=True) | unknown)


def recompile_report(
    timeline: Timeline,
    log: CompileLog | None = None,
    *,
    known: pl.DataFrame | None = None,
    steps: StepTable | None = None,
) -> RecompileReport:
    """What was compiled in a trace, and what of it after the warm-up.

    Args:
        timeline: As :func:`traceview.load` returns it.
        log: Structured compile log of the same run.
        known: Its :func:`traceview.recompiles.recompiles` without a log, if they are at hand.
        steps: Its :func:`traceview.steps.find_steps`, if they are at hand.
    """
    steady = find_steady_state(timeline, steps)
    table = recompiles(timeline, steady, log) if known is None else known
    limiting = limits(timeline, Answer.COMPILATIONS)
    notes = [PartNote("recompiles", note.text) for note in limiting]
    visible = bool(table.height) or shows_compilation(timeline)
    if not visible:
        why = why_compilation_hidden(timeline)
        notes.append(PartNote("recompiles", f"{why[:1].upper()}{why[1:]}."))
    elif steady is None and table.height:
        notes.append(
            PartNote(
                "recompiles",
                f"Fewer than two profiler steps are recorded ({WHICH_STEPS}), so warm-up and recompilation cannot be "
                "told apart.",
            )
        )
    if log is not None:
        outside = outside_window(table, log)
        if outside:
            notes.append(
                PartNote(
                    "recompiles",
                    f"{len(outside):,} of {len(log.compilations):,} compilations of the log lie outside of the "
                    "recorded window.",
                )
            )
        if log.skipped:
            notes.append(PartNote("recompiles", f"{log.skipped:,} lines of the compile log could not be read."))
    return RecompileReport(
        trace=describe(timeline),
        recompiles=table if visible else None,
        import_report=summarise_import(timeline),
        notes=tuple(notes),
        trust=limiting[0].trust.value if limiting else "good",
    )
