"""Which answers a remark of the import limits."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from traceview.timeline import Trust

if TYPE_CHECKING:
    from traceview.timeline import Note, Timeline


class Answer(StrEnum):
    """What a number is about."""

    BUSY = "busy"
    """How long a device worked."""
    IDLE = "idle"
    """How long it stood idle."""
    CAUSES = "causes"
    """Why it stood idle, and what asked for work."""
    COMPILATIONS = "compilations"
    """What was compiled."""
    TRANSFERS = "transfers"
    """What was copied."""
    RANKS = "ranks"
    """How ranks compare."""


_DEVICE: Final = frozenset({Answer.BUSY, Answer.IDLE, Answer.CAUSES, Answer.TRANSFERS})

_LIMITS: Final[dict[str, frozenset[Answer]]] = {
    "work-without-launch": frozenset({Answer.CAUSES}),
    "kernels-without-op": frozenset({Answer.CAUSES}),
    "call-without-end": frozenset({Answer.CAUSES}),
    "range-without-thread": frozenset({Answer.CAUSES}),
    "launch-without-work": _DEVICE,
    "graph-without-work": _DEVICE,
    "duration-missing": _DEVICE,
    "profiler-dropped": _DEVICE,
    "profiler-dropped-records": _DEVICE,
    "profiler-out-of-range": _DEVICE,
    "profiler-stopped-early": _DEVICE,
    "cupti-range-profiler": _DEVICE,
    "no-device-work": _DEVICE,
    "host-only": _DEVICE,
    "programs-missing": frozenset({Answer.COMPILATIONS}),
    "clocks-not-aligned": frozenset({Answer.RANKS}),
    "clocks-aligned": frozenset({Answer.RANKS}),
    "ranks-missing": frozenset({Answer.RANKS}),
    "rank-twice": frozenset({Answer.RANKS}),
    "recordings-apart": frozenset({Answer.RANKS}),
    "files-skipped": frozenset({Answer.RANKS}),
}
"""What each kind of note limits. Lost and cut-off data, and any kind not listed here, limit every answer."""


def limits(timeline: Timeline, *answers: Answer) -> tuple[Note, ...]:
    """The remarks of the import that limit some answers, worst first; a remark that limits nothing is left out."""
    order = list(Trust)
    found = [
        note
        for note in timeline.report.notes
        if note.trust is not Trust.GOOD and _LIMITS.get(note.kind, frozenset(answers)) & set(answers)
    ]
    return tuple(sorted(found, key=lambda note: -order.index(note.trust)))


def grade(timeline: Timeline, *answers: Answer) -> Trust:
    """How far these answers can be believed: the worst grade among the remarks that limit them."""
    found = limits(timeline, *answers)
    return found[0].trust if found else Trust.GOOD
