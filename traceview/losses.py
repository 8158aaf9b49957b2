"""How much device work the import lost, in words and as a grade.

Lost host rows cost causes; lost device rows can be the very kernels that an answer is about. So beyond a small share of
them no absence is believed, whatever the format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.quantities import percent
from traceview.timeline import DeviceLoss, Note, Trust

if TYPE_CHECKING:
    from traceview.timeline import ImportReport, Timeline

SMALL_SHARE: Final = 0.05
"""Up to this share of its device rows a trace may lose and still prove that something did not run."""

WORK_LOST: Final = "device-work-lost"
"""Kind of the note on device rows that are certainly lost."""
WORK_MAY_BE_LOST: Final = "device-work-may-be-lost"
"""Kind of the note on lost rows of which it is not known whether they were device work."""

EVENT_LOSSES: Final = frozenset(
    {
        "lost-aggregated-event",
        "lost-cut",
        "lost-event",
        "lost-negative-duration",
        "lost-rows",
        "lost-text",
        "lost-time",
        "lost-time-far-off",
        "lost-time-zero",
        "lost-trailing",
        "lost-without-start",
    }
)
"""Kinds of counts of which each case is a whole event that is gone; other losses are fields, names or arguments."""


def could_be_events(report: ImportReport) -> int:
    """Number of lost events of any kind."""
    return sum(count.n for kind, count in report.counts.items() if kind in EVENT_LOSSES)


def loss_notes(timeline: Timeline) -> tuple[Note, ...]:
    """What must be said of the device work that one file lost; nothing up to :data:`SMALL_SHARE` of it.

    Args:
        timeline: Of one file, as its parser returns it.
    """
    report = timeline.report
    loss = report.device_loss or DeviceLoss(0, could_be_events(report))
    if not loss.most:
        return ()
    kept = timeline.device_work.height
    if loss.least > SMALL_SHARE * (loss.least + kept):
        whole = loss.least + kept
        rows = "row" if whole == 1 else "rows"
        text = (
            f"{loss.least:,} of {whole:,} {rows} of device work ({percent(loss.least / whole)}) could not be read: "
            "what ran is known only in part, and times are lower bounds."
        )
        return (Note("device-work-lost", text, Trust.POOR),)
    # Without any device work there is none to compare with: then the events as a whole tell how much is gone.
    left = kept or timeline.events.height
    if loss.most <= SMALL_SHARE * (loss.most + left):
        return ()
    lost = "One row" if loss.most == 1 else f"Up to {loss.most:,} rows"
    row, event = ("row", "event") if left == 1 else ("rows", "events")
    what = f"{row} of device work" if kept else event
    text = f"{lost} that could not be read may have been device work; {left:,} {what} could be read."
    return (Note("device-work-may-be-lost", text, Trust.LIMITED),)


_SILENT_LAUNCHES: Final = "launch-without-work"
_DROPPED: Final = frozenset({"profiler-dropped", "profiler-dropped-records", "profiler-stopped-early"})


def not_judged(timeline: Timeline) -> str | None:
    """What a verdict on the rest leaves out, for its own line: device work that is known to be missing.

    Up to :data:`SMALL_SHARE` of the rows may be lost and a check still pass, and a recording may lack the work of some
    of its launches; who reads "pass" must not take it for all that ran.

    Args:
        timeline: Of one file or several.
    """
    report = timeline.report
    loss = report.device_loss or DeviceLoss(0, could_be_events(report))
    parts = []
    if loss.least:
        whole = loss.least + timeline.device_work.height
        parts.append(f"{loss.least:,} of {whole:,} rows of device work could not be read")
    elif loss.most:
        rows = "a row that could not be read" if loss.most == 1 else f"{loss.most:,} rows that could not be read"
        parts.append(f"{rows} may have been device work")
    limited = [note for note in report.notes if note.trust is not Trust.GOOD]
    parts += [note.text.split(" (", maxsplit=1)[0] for note in limited if note.kind == _SILENT_LAUNCHES]
    if any(note.kind in _DROPPED for note in limited):
        parts.append("the profiler reports that it lost records")
    return f"not judged: {', and '.join(parts)}" if parts else None
