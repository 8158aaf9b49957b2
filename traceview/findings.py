"""The one finding model: what every rule yields and every renderer takes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MOST_EVENTS: Final = 200
"""Events that a finding names; a trace can have millions that are alike."""


class Severity(StrEnum):
    """How bad a finding is. Only errors fail a check."""

    ERROR = "error"
    """Proven from what the trace records."""
    WARNING = "warning"
    """Likely, but inferred; or proven and of little cost."""
    INFO = "info"
    """Worth knowing."""


class Confidence(StrEnum):
    """Where the knowledge behind a finding comes from."""

    MEASURED = "measured"
    """Recorded in the trace."""
    SOURCED = "sourced"
    """Recorded, and read with a versioned source."""
    INFERRED = "inferred"
    """Concluded from circumstances."""


class CostOf(StrEnum):
    """What kind of time a cost is; only device time can be compared with the busy time of the devices."""

    DEVICE = "device time"
    """A device worked."""
    IDLE = "device idle time"
    """A device waited."""
    HOST = "host time"
    """The host worked."""
    WALL = "wall time"
    """From a start to an end, whatever happened in between."""


class Window(StrEnum):
    """Over which part of a trace a cost was added up."""

    TRACE = "trace"
    """All that is recorded."""
    STEPS = "steps"
    """The steps past the warm-up (:mod:`traceview.steady_state`)."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know or to fix.

    Attributes:
        code: Rule code, e.g. ``"TV101"``.
        severity: See :class:`Severity`.
        title: One sentence that can stand alone.
        where: The op, kernel, module or stage concerned.
        evidence: What in the trace shows it, one line each, with numbers.
        cost_ns: Upper bound of the time that a fix can save, ns, summed over devices (host time: over threads);
            ``None`` if it cannot be told. Ceilings of several findings do not add up.
        confidence: See :class:`Confidence`.
        fix: What to do.
        false_alarm_if: When this finding is wrong.
        cost_of: What kind of time ``cost_ns`` is.
        window: Over which part of the trace ``cost_ns`` was added up.
        event_ids: Where to look: events that it speaks of, at most :data:`MOST_EVENTS`; where the rule has an order,
            those that matter most. Empty if it speaks of no events, but of the recording as a whole.
    """

    code: str
    severity: Severity
    title: str
    where: str
    evidence: tuple[str, ...]
    cost_ns: int | None
    confidence: Confidence
    fix: str
    false_alarm_if: str
    cost_of: CostOf = CostOf.DEVICE
    window: Window = Window.TRACE
    event_ids: tuple[int, ...] = ()
