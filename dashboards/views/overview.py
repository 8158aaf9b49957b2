"""The head of the overview: the answer in words, how far to trust it, and its key figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.dashboards.views.findings import ranked_view, to_do
from traceview.expectations.model import Verdict
from traceview.findings import Severity
from traceview.knowledge.idle_causes import NOT_RECOVERABLE
from traceview.render.capture_words import capture_facts
from traceview.render.conditions import conditions
from traceview.render.report_text import report_sentence
from traceview.render.units import counted, duration, percent
from traceview.step_marks import StepSource
from traceview.steps import percentiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.accounting import DeviceTime
    from traceview.gap_report import GapReport
    from traceview.gate import CheckResult
    from traceview.report import Report
    from traceview.top_findings import RankedFinding

WORDS: Final = {Verdict.PASS: "Passed", Verdict.FAIL: "Failed", Verdict.INCONCLUSIVE: "Not to be told"}
"""What stands beside the icon of a verdict."""

_MUCH_MORE: Final = 10


@dataclass(frozen=True, slots=True)
class Answer:
    """The first thing a reader sees.

    Attributes:
        verdict: ``pass``, ``fail`` or ``inconclusive``.
        verdict_first: What the check says is the headline; else it is where the time went.
        word: The verdict in a word or three.
        headline: The answer.
        second: What else the answer says.
        cost: What the fix can save at most; empty if that is not known.
        fix: What to do first; empty if nothing.
        code: The rule that says so; empty likewise.
    """

    verdict: str
    verdict_first: bool
    word: str
    headline: str
    second: str
    cost: str
    fix: str
    code: str


@dataclass(frozen=True, slots=True)
class Figure:
    """One key figure.

    Attributes:
        name: What it is.
        value: The number with its unit; ``-`` if the trace does not tell.
        note: What belongs beside it.
        meaning: How it is worked out.
    """

    name: str
    value: str
    note: str
    meaning: str


def answer(report: Report, check: CheckResult) -> Answer:
    """The answer: what ran, if that failed and matters; else where the time went."""
    findings = report.findings or ()
    failed = check.verdict is Verdict.FAIL and matters(findings)
    ran = f"{sentence(check.summary).rstrip('.')}."
    went = report_sentence(report)
    finding = to_do(findings, failed=failed)
    told = None if finding is None else ranked_view(finding, report)
    return Answer(
        verdict=check.verdict.value,
        verdict_first=failed,
        word=WORDS[check.verdict],
        headline=ran if failed else went,
        second=went if failed else ran,
        cost="" if told is None else told.cost,
        fix="" if told is None else told.fix,
        code="" if told is None else told.code,
    )


def sentence(words: str) -> str:
    """Words that begin a line."""
    return f"{words[:1].upper()}{words[1:]}"


def matters(findings: Sequence[RankedFinding]) -> bool:
    """Whether what failed the check is no small part of what could be won.

    A slow path that costs a hundredth of what the host wastes is a failure all the same, but not the answer.
    """
    shares = [one.share or 0.0 for one in findings]
    errors = [one.share for one in findings if one.severity is Severity.ERROR]
    known = [share for share in errors if share is not None]
    return len(known) < len(errors) or not known or max(known) * _MUCH_MORE >= max(shares)


def strip(report: Report, title: str) -> tuple[str, list[str]]:
    """The trust strip: one line of conditions, and what limits the trust, one line each.

    Args:
        report: The report.
        title: What to call the trace; an upload lies in a folder that means nothing.
    """
    pairs = conditions(report.trace, report.import_report)
    named = {name: value for name, value in pairs if name}
    files = len(report.trace.files)
    broken = named["events"].partition(", ")[2] if report.trace.truncated else ""
    parts = [
        title if files == 1 else f"{title} and {counted(files - 1, 'more file')}",
        named["producer"],
        "no device described" if named["device"] == "none described" else named["device"],
        f"{counted(report.trace.events, 'event')}{f', {broken}' if broken else ''}",
        f"trust: {report.trace.trust}",
    ]
    limits = [value for name, value in pairs if not name]
    reason = named["trust"].partition(": ")[2]
    return "   ·   ".join(part for part in parts if part), [*([reason] if reason else []), *limits]


def captured(report: Report) -> list[tuple[str, str]]:
    """The conditions of the capture as names and values; empty if the trace was made without ``traceview.capture``."""
    return [] if report.trace.capture is None else capture_facts(report.trace.capture)


def figures(report: Report) -> list[Figure]:
    """Step time, busy, exposed copies and communication, waiting, and what the host holds up."""
    time = report.time
    if time is None:
        return []
    return [_step(report), *_shares(report), _host(report)]


def has_steps(report: Report) -> bool:
    """Whether the trace marks steps; without them the whole recording stands for one, and is not called a step."""
    return report.time is not None and report.time.table.source is not StepSource.WHOLE


def _step(report: Report) -> Figure:
    time = report.time
    assert time is not None
    every = time.times[0] if time.times else None
    meaning = "From the start of a step to the end of its range or of its last device work; warm-up is not counted."
    if every is None:
        return Figure("Step", "-", "no step is recorded", meaning)
    if time.table.source is StepSource.WHOLE:
        return Figure(
            "Recorded", duration(every.most_ns), "no step marks", "The whole recording, as no step is marked."
        )
    if every.p50_ns is None:
        return Figure("Step (mean)", duration(round(every.mean_ns)), counted(every.count, "step"), meaning)
    steady = time.table.steady
    (p95,) = percentiles((steady["end_ns"] - steady["start_ns"]).to_numpy(), [95])
    note = f"p95 {duration(round(p95))}, " if p95 is not None else ""
    return Figure("Step p50", duration(round(every.p50_ns)), f"{note}{counted(every.count, 'step')}", meaning)


_EXPOSED_ALONE: Final = (
    "Communication that no computation hides, part of the steps. Copies are recorded on the host alone: "
    "what they cost the device is idle time, see Gaps."
)
"""Where the device's own account has no copies, nothing is said of them, and surely not that they took no time."""


def _shares(report: Report) -> list[Figure]:
    devices = report.time.devices if report.time else None
    names = (
        ("Device busy", "Part of the steps in which a device computes, communicates or copies; all devices together."),
        ("Exposed copy + comm.", "Copies and communication that no computation hides, part of the steps."),
    )
    if report.host_only_copies and devices and not any(one.copy_ns for one in devices):
        names = (names[0], ("Exposed comm.", _EXPOSED_ALONE))
    if not devices:
        return [Figure(name, "-", "no device work recorded", meaning) for name, meaning in names]
    wall = sum(one.wall_ns for one in devices)
    steps = sum(one.steps for one in devices)
    busy, exposed = sum(one.busy_ns for one in devices), sum(one.collective_ns + one.copy_ns for one in devices)
    stepped = has_steps(report)
    of = f"of {duration(round(wall / steps))}" if steps else ""
    mean = f", mean of {len(devices)} devices" if len(devices) > 1 else ""

    def note(ns: int) -> str:
        return f"{duration(round(ns / steps))} {'a step' if stepped else of + mean}"

    found = [
        Figure(
            name,
            percent(ns / wall if wall else None),
            note(ns),
            meaning if stepped else meaning.replace("of the steps", "of the recording"),
        )
        for (name, meaning), ns in zip(names, (busy, exposed), strict=True)
    ]
    waits = sum(one.async_wait_ns for one in devices)
    if waits:
        meaning = "A device waits for its own asynchronous copies or collectives: neither work nor idle."
        found.append(Figure("Device waits", percent(waits / wall if wall else None), note(waits), meaning))
    return found


def _host(report: Report) -> Figure:
    """What the host holds up, of the steps like its neighbours; without steps, of the span from first to last work."""
    name = "Waits for the host"
    gaps, time = report.gaps, report.time
    if gaps is None or gaps.devices is None or time is None:
        return Figure(name, "-", "no device work recorded", "Idle time of the devices; see Gaps for its causes.")
    steps = sum(one.steps for one in time.devices or ())
    if time.devices and steps and time.table.source is not StepSource.WHOLE:
        wall, held = sum(one.wall_ns for one in time.devices), _held_ns(time.devices, gaps)
        where, note = "part of the steps", f"{duration(round(held / steps))} a step"
    else:
        wall, held = gaps.span_ns, gaps.recoverable_ns
        where, note = "part of the span from first to last work", f"{duration(held)} of {duration(wall)} in all"
    if gaps.doubt:
        note += ", not reliable"
    meaning = (
        f"Idle time of the devices that changes on the host can win back at most, {where}; see Gaps for its causes."
    )
    return Figure(name, percent(held / wall if wall else None), note, meaning)


def _held_ns(devices: Iterable[DeviceTime], gaps: GapReport) -> int:
    """Idle time in the steps whose cause a change on the host can take away, all devices together."""
    lasting = {cause.value for cause in NOT_RECOVERABLE}
    doubtful = set()
    if gaps.causes is not None:
        told = pl.col("reason").is_not_null() & (pl.col("recoverable_ns") == 0)
        doubtful = set(gaps.causes.filter(told).select("device", pl.col("cause").cast(pl.String)).iter_rows())
    return sum(
        ns
        for one in devices
        for cause, ns in one.idle_by_cause.items()
        if cause not in lasting and (one.device, cause) not in doubtful
    )
