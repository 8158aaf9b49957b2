"""What is worth fixing first: the findings of every rule, ranked by the part of the wall time that a fix can win.

Costs differ in kind, so they are not compared as they are. Time of devices, at work or idle, is set against the time of
all devices; time of the host against that of all processes, and where devices worked it can win back no more than they
stood idle. Each share is a ceiling of one change alone: what two findings explain is often the same time, so shares do
not add up.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview import intervals
from traceview.accounting import process_of_devices
from traceview.expectations.host_gaps import why_unreliable
from traceview.findings import CostOf, Finding, Severity, Window
from traceview.gaps import idle
from traceview.rules.catalogue import all_findings
from traceview.timeline import Trust
from traceview.trust_limits import Answer, limits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traceview.rules.base import Facts
    from traceview.timeline import Timeline

_HOST_ROWS: Final = ("op", "api", "sync", "annotation", "python", "compile", "overhead")

_ANSWERS: Final = {
    "TV1": (Answer.BUSY,),
    "TV2": (Answer.BUSY,),
    "TV3": (Answer.COMPILATIONS,),
    "TV4": (Answer.IDLE, Answer.CAUSES),
    "TV402": (Answer.BUSY,),
    "TV406": (Answer.BUSY,),
    "TV405": (Answer.BUSY,),
    "TV5": (Answer.TRANSFERS,),
    "TV9": (),
}
"""What the numbers of rules rest on, by the start of the code; a longer start counts first. TV9xx are about the trace
itself: nothing limits them."""


@dataclass(frozen=True, slots=True)
class RankedFinding(Finding):
    """A finding with what a fix can win at most.

    Attributes:
        share: Part of the time of all devices in its window (without devices: of all processes) that a fix can win at
            most, 0 to 1; ``None`` if the cost cannot be told. With one device it is a part of the wall time.
        won_ns: The same as time of one device, their mean, ns; ``None`` likewise.
        trust: Grade that the import leaves for its numbers: ``good``, ``limited`` or ``poor``.
        limited_by: Why, one sentence each.
    """

    share: float | None = None
    won_ns: int | None = None
    trust: str = Trust.GOOD.value
    limited_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Time:
    """The time of a window: summed over devices and over processes, ns, and how many of each there are.

    ``fed``: the most devices that one process launches work on.
    """

    devices_ns: int
    devices: int
    processes_ns: int
    processes: int
    fed: int


def top_findings(facts: Facts) -> tuple[RankedFinding, ...]:
    """The findings of every rule: most to win first, those whose cost cannot be told last.

    Args:
        facts: The trace; what was worked out for it already is not worked out again.
    """
    timeline = facts.timeline
    windows = {Window.TRACE: _whole(facts), Window.STEPS: _steps(facts)}
    doubt = why_unreliable(timeline) if timeline.device_work.height else None
    stretches = idle(timeline, facts.works)
    idle_ns = int((stretches["end_ns"] - stretches["start_ns"]).sum()) if not doubt else None
    order = list(Severity)
    ranked = (_ranked(one, windows[one.window], idle_ns, timeline, doubt) for one in all_findings(facts))
    return tuple(
        sorted(ranked, key=lambda one: (one.share is None, -(one.share or 0.0), order.index(one.severity), one.code))
    )


def _ranked(finding: Finding, time: _Time, idle_ns: int | None, timeline: Timeline, doubt: str | None) -> RankedFinding:
    """A finding with its ceiling and its trust."""
    share = won_ns = None
    if finding.cost_ns is not None:
        ns, whole_ns, lanes = _ceiling(finding, time, idle_ns)
        if whole_ns and lanes:
            share = min(ns / whole_ns, 1.0)
            won_ns = round(min(ns, whole_ns) / lanes)
    limiting = limits(timeline, *_answers(finding.code))
    reasons = [note.text for note in limiting]
    trust = limiting[0].trust if limiting else Trust.GOOD
    if doubt and finding.cost_of is CostOf.IDLE and finding.cost_ns is not None:
        trust = trust if trust is not Trust.GOOD else Trust.LIMITED
        sentence = f"Idle time is not reliable: {doubt.rstrip('.')}."
        # The doubt often quotes a remark of the import; it is not said twice.
        reasons = [sentence, *(text for text in reasons if text.rstrip(".") not in sentence)]
    return RankedFinding(
        **{one.name: getattr(finding, one.name) for one in fields(Finding)},
        share=share,
        won_ns=won_ns,
        trust=trust.value,
        limited_by=tuple(reasons),
    )


def _ceiling(finding: Finding, time: _Time, idle_ns: int | None) -> tuple[int, int, int]:
    """What can be won, of what, and over how many devices or processes both are added up; ns."""
    cost_ns = finding.cost_ns or 0
    if finding.cost_of in {CostOf.DEVICE, CostOf.IDLE} and time.devices:
        return cost_ns, time.devices_ns, time.devices
    if not time.devices:
        return cost_ns, time.processes_ns, time.processes
    # The devices of a process all wait for its host; but a host that is faster only shortens what they stood idle.
    held_ns = cost_ns * time.fed
    if finding.cost_of is CostOf.HOST and idle_ns is not None:
        held_ns = min(held_ns, idle_ns)
    return held_ns, time.devices_ns, time.devices


def _answers(code: str) -> tuple[Answer, ...]:
    starts = sorted((start for start in _ANSWERS if code.startswith(start)), key=len)
    return _ANSWERS[starts[-1]] if starts else tuple(Answer)


def _whole(facts: Facts) -> _Time:
    """The whole recording: devices from first to last work, processes from first to last row."""
    events = facts.timeline.events.select("thread", "kind", "process", "start_ns", "dur_ns")
    rows = events.filter(pl.col("thread").is_not_null() & pl.col("kind").is_in(list(_HOST_ROWS)))
    spans = rows.group_by("process").agg(
        start=pl.col("start_ns").min(), end=(pl.col("start_ns") + pl.col("dur_ns")).max()
    )
    worked = [work for work in facts.works if work.device is not None]
    return _Time(
        devices_ns=sum(intervals.total(*work.window) for work in worked),
        devices=len(worked),
        processes_ns=int((spans["end"] - spans["start"]).sum()),
        processes=spans.height,
        fed=_fed(process_of_devices(facts.timeline).values()),
    )


def _steps(facts: Facts) -> _Time:
    """The steps past the warm-up; a step counts once for each device of its process."""
    if facts.steady is None:
        return _Time(0, 0, 0, 0, 0)
    spans: Iterable[tuple[int | None, int]] = (
        facts.steady.steps.group_by("process").agg((pl.col("end_ns") - pl.col("start_ns")).sum()).iter_rows()
    )
    by_process = dict(spans)
    owners = [owner for owner in process_of_devices(facts.timeline).values() if owner in by_process]
    own = [by_process[owner] for owner in owners]
    return _Time(sum(own), len(own), sum(by_process.values()), len(by_process), _fed(owners))


def _fed(owners: Iterable[int | None]) -> int:
    return max(Counter(owners).values(), default=0)
