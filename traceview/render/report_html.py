"""``traceview report`` as one page that can be sent to somebody: self-contained, without any script."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from traceview import __version__
from traceview.findings import Severity
from traceview.render.conditions import conditions
from traceview.render.dispatch_text import implementation, in_stage, shapes
from traceview.render.findings_text import finding_facts, findings_frame
from traceview.render.grids import Grid
from traceview.render.html_parts import bullets, document, facts, grid_section, paragraph, section, words
from traceview.render.page import Column
from traceview.render.report_text import report_grids, report_sentence
from traceview.render.units import counted, duration, durations, percent
from traceview.render.waterfall_svg import accounting_svg, waterfall_svg

if TYPE_CHECKING:
    from traceview.findings import Finding
    from traceview.gate import CheckResult
    from traceview.report import Report
    from traceview.waterfall import Waterfall

MOST_FINDINGS: Final = 10
MOST_EVIDENCE: Final = 6
MOST_DISPATCHES: Final = 20
MOST_BARS: Final = 8

_WORDS: Final = {
    "pass": "✓ Passed",
    "fail": "✗ Failed",
    "inconclusive": "? Not to be told",
}
"""A sign and a word beside the colour of a verdict."""

_SEVERITIES: Final = {"error": "✗ error", "warning": "! warning", "info": "i info"}


@dataclass(frozen=True, slots=True)
class ReportPage:
    """What the page shows.

    Attributes:
        report: The report, with its findings.
        check: What the built-in policy of ``check-dispatch`` says, and what ran.
        chart: The steps by stage; ``None`` where there is no step.
    """

    report: Report
    check: CheckResult
    chart: Waterfall | None


def report_html(shown: ReportPage) -> str:
    """The page.

    Args:
        shown: What to show.
    """
    result = shown.report
    first = result.trace.files[0].replace("\\", "/").rsplit("/", 1)[-1]
    before, after = report_grids(result)
    body = [
        f"<h1>{words(first)}</h1>",
        _verdict(shown),
        _figures(result),
        facts(_conditions(result)),
        _chart(shown.chart),
        _accounting(result),
        *(grid_section(grid) for grid in before),
        _findings(result),
        grid_section(_dispatches(shown.check)),
        *(grid_section(grid) for grid in after),
        _import(result),
        f"<footer>{paragraph(f'Made by traceview {__version__}. Times are of this trace alone.', 'faint')}</footer>",
    ]
    return document(f"traceview: {first}", "\n".join(part for part in body if part))


def _verdict(shown: ReportPage) -> str:
    """What ran, if that failed; else where the time went. Then what to do about it."""
    verdict = shown.check.verdict.value
    ran, went = _sentence(shown.check.summary), report_sentence(shown.report)
    failed = verdict == "fail"
    head, second = (ran, went) if failed else (went, ran)
    judged = f'<span class="word">{words(_WORDS[verdict])}</span>: which kernels ran, by the built-in policy.'
    parts = [f"<strong>{words(head)}</strong>", f"<p>{judged} {words(second)}</p>"]
    first = _first(shown, failed=failed)
    if first is not None and first.fix:
        parts.append(paragraph(f"What to do ({first.code}): {first.fix}"))
    return f'<div class="verdict {verdict}">\n' + "\n".join(parts) + "\n</div>"


def _first(shown: ReportPage, *, failed: bool) -> Finding | None:
    """The finding to begin with: of a failed check its first error, else the one with most to win."""
    if failed:
        return next((one for one in shown.check.findings if one.severity is Severity.ERROR), None)
    return next((one for one in shown.report.findings or () if one.share), None)


def _sentence(text: str) -> str:
    text = f"{text[:1].upper()}{text[1:]}"
    return text if text.endswith(".") else f"{text}."


def _conditions(result: Report) -> list[tuple[str, str]]:
    """The strip without the folder of the trace: whoever gets the page has no use for it, and it may name a user."""
    names = [one.replace("\\", "/").rsplit("/", 1)[-1] for one in result.trace.files]
    return conditions(replace(result.trace, files=tuple(names)), result.import_report)


def _figures(result: Report) -> str:
    """The few numbers that a reader remembers."""
    figures: list[tuple[str, str]] = []
    every = result.time.times[0] if result.time and result.time.times else None
    if every is not None:
        typical = every.p50_ns if every.p50_ns is not None else every.mean_ns
        what = "median" if every.p50_ns is not None else "mean"
        figures.append((duration(round(typical)), f"a step ({what} of {counted(every.count, 'step')})"))
    devices = result.time.devices if result.time else None
    wall = sum(one.wall_ns for one in devices or ())
    if devices and wall:
        parts = (
            ("device busy", sum(one.busy_ns for one in devices)),
            ("communication and copies that nothing hides", sum(one.collective_ns + one.copy_ns for one in devices)),
            ("waits for asynchronous work", sum(one.async_wait_ns for one in devices)),
            ("device idle", sum(one.idle_ns + one.unattributed_ns for one in devices)),
        )
        figures += [(percent(ns / wall), name) for name, ns in parts if ns]
    items = [f"<li><b>{words(value)}</b>{words(name)}</li>" for value, name in figures]
    return f'<ul class="figures">{"".join(items)}</ul>' if items else ""


def _chart(chart: Waterfall | None) -> str:
    if chart is None or not chart.bars:
        return ""
    heading = "Steps by stage" if chart.by_stage else "Steps by what the device did"
    said = []
    if chart.within is not None:
        said.append(f"Parts of {chart.within}, which takes nearly all of the time.")
    if chart.steps > len(chart.bars):
        said.append(
            f"{len(chart.bars)} of {chart.steps:,} steps (those on several devices count on each), at even distances "
            "and with the longest; the figures are means of all."
        )
    if chart.by_stage and chart.on_device:
        said.append("Striped: the device was idle or waited.")
    said.append("The parts of a bar add up to its wall time.")
    svg = waterfall_svg(chart, title=heading)
    return section(heading, f"<figure>\n{svg}\n</figure>", paragraph(" ".join(said), "remark"))


def _accounting(result: Report) -> str:
    """A bar for the mean step of each device."""
    devices = result.time.devices if result.time else None
    if not devices:
        return ""
    labels = {one.device: one.label for one in result.trace.devices}
    rows = [
        (labels.get(one.device, f"device {one.device}"), [(name, round(ns / one.steps)) for name, ns in one.parts])
        for one in devices[:MOST_BARS]
        if one.wall_ns
    ]
    more = len(devices) - len(rows)
    note = paragraph(f"{counted(more, 'more device')} not drawn.", "remark") if more else ""
    return section("What a step goes to (mean)", f"<figure>\n{accounting_svg(rows)}\n</figure>", note) if rows else ""


def _findings(result: Report) -> str:
    if result.findings is None:
        return ""
    cards = []
    for one in result.findings[:MOST_FINDINGS]:
        severity = one.severity.value
        head = f'<span class="word">{words(_SEVERITIES.get(severity, severity))}</span> {words(one.code)}'
        evidence = list(one.evidence[:MOST_EVIDENCE])
        if len(one.evidence) > MOST_EVIDENCE:
            evidence.append(f"{len(one.evidence) - MOST_EVIDENCE} more in --format json")
        pairs = finding_facts(one, result)
        listed = f"<dl><dt>evidence</dt><dd>{bullets(evidence)}</dd></dl>" if evidence else ""
        cards.append(
            f'<article class="finding {severity}">\n<h3>{head}: {words(one.title)}</h3>\n'
            + facts((name, pairs[name]) for name in ("to win", "where") if pairs.get(name))
            + listed
            + facts(
                [
                    ("fix", one.fix),
                    ("known by", one.confidence.value),
                    ("false alarm if", one.false_alarm_if),
                    ("trust", pairs.get("trust", "")),
                ]
            )
            + "\n</article>"
        )
    heading, remark = findings_frame(result.findings, MOST_FINDINGS)
    return section(heading, *cards, paragraph(remark, "remark"))


def _dispatches(check: CheckResult) -> Grid | None:
    """What was asked for and what ran: attention, then what takes most."""
    rows = check.table.dispatches[:MOST_DISPATCHES]
    if not rows:
        return None
    signs = {"ok": "✓ ok", "slow": "✗ slow", "unknown": "? unknown"}
    unit, times = durations(row.device_ns for row in rows)
    left = len(check.table.dispatches) - len(rows)
    more = (f"{counted(left, 'more row')}: traceview check-dispatch --format json lists all.",) if left else ()
    return Grid(
        f"What was asked for and what ran (device time, {unit})",
        (
            Column("asked"),
            Column("inputs"),
            Column("ran"),
            Column("verdict"),
            Column("count", number=True),
            Column("device", number=True),
            Column("of busy", number=True),
        ),
        [
            [
                f"{row.op or 'op not recorded'}{in_stage(row)}",
                shapes(row.inputs, tensors=2),
                f"{row.family}: {implementation(row)}",
                signs.get(row.verdict, row.verdict),
                f"{row.count:,}",
                time,
                percent(row.share),
            ]
            for row, time in zip(rows, times, strict=True)
        ],
        more,
    )


def _import(result: Report) -> str:
    """What the import skipped, repaired or doubts."""
    from traceview.count_words import count_words

    notes = [f"{note.text} (trust: {note.trust})" for note in result.import_report.notes]
    counts = [
        f"{count_words(kind)}: {count.n:,}" + (f" (e.g. {count.example})" if count.example else "")
        for kind, count in sorted(result.import_report.counts.items())
        if count.n
    ]
    texts = [*notes, *counts]
    nothing = "" if texts else paragraph("Nothing was skipped, repaired or doubted.")
    return section(f"Import: trust {result.import_report.trust}", nothing, bullets(texts[:40]))
