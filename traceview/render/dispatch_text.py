"""``traceview check-dispatch`` as text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from traceview.knowledge.dtypes import short_dtype
from traceview.render.conditions import write_conditions
from traceview.render.names import kernel_names
from traceview.render.page import Column, Page
from traceview.render.units import counted, duration, durations, percent, saving, together
from traceview.render.why import write_why

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.dispatch import Dispatch, DispatchTable
    from traceview.errors import ExitCode
    from traceview.expectations.model import ExpectationResult
    from traceview.findings import Finding
    from traceview.gate import CheckResult
    from traceview.report import ImportSummary, TraceInfo

STYLES: Final = {
    "pass": "bold green",
    "fail": "bold red",
    "inconclusive": "bold yellow",
    "skipped": "dim",
    "slow": "red",
    "unknown": "yellow",
    "ok": "",
    "error": "red",
    "warning": "yellow",
    "info": "cyan",
}
OTHER_ROWS: Final = 8
"""Rows of work other than attention; the rest is in the JSON and in ``traceview kernels``."""

MOST_EVIDENCE: Final = 4


def write_check(
    result: CheckResult, trace: TraceInfo, summary: ImportSummary, page: Page, *, code: ExitCode, limit: int
) -> None:
    """Verdict, conditions, findings, attention, other work.

    Args:
        result: The check.
        trace: Which trace.
        summary: Its import.
        page: Where to.
        code: What the program ends with.
        limit: Most attention rows to list.
    """
    verdict = result.verdict.value
    page.verdict(f"{verdict.upper()}: {_sentence(result.summary)}", STYLES[verdict])
    write_conditions(page, trace, summary, result.findings)
    if result.expectations:
        _write_expectations(page, result.expectations)
    for note in result.notes:
        page.bullet(note)
    for finding in result.findings:
        _write_finding(page, finding, result.table)
    attention = result.table.attention
    if attention:
        page.heading("Attention calls")
        _write_attention(page, attention[:limit], result.table)
        if len(attention) > limit:
            page.remark(f"{counted(len(attention) - limit, 'more row')}: --limit {len(attention)} shows all.")
        _write_kernels(page, attention)
        write_why(page, [row for row in attention if row.verdict == "slow"])
    others = [row for row in result.table.dispatches if row.family != "attention"]
    if others:
        page.heading("Other device work")
        _write_others(page, others[:OTHER_ROWS], result.table)
        if len(others) > OTHER_ROWS:
            rest = others[OTHER_ROWS:]
            share = sum(row.share or 0.0 for row in rest)
            page.remark(f"{counted(len(rest), 'more row')} with {percent(share)} together: --format json lists all.")
    if result.table.dispatches and result.table.span_ns > result.table.busy_ns > 0:
        page.blank()
        page.remark(
            f"of busy: of {duration(result.table.busy_ns)} in which the devices worked{together(trace.worked)}, "
            f"{percent(result.table.busy_ns / result.table.span_ns)} of their span (first to last work)."
        )
    page.blank()
    page.verdict(_count(result, code), "dim")


def _write_expectations(page: Page, results: Sequence[ExpectationResult]) -> None:
    """Each expectation with its place, so that an editor or a log viewer can jump to it."""
    page.heading("Expectations")
    for one in results:
        verdict = "accepted" if one.accepted else one.verdict.value
        style = STYLES["info" if one.accepted else verdict]
        page.bullet(f"{one.path}:{one.line}: {verdict}: {one.text}", style)
        facts = [("observed", one.observed), ("accepted", one.accepted or "")]
        page.facts(facts, blank=False)


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _write_finding(page: Page, finding: Finding, table: DispatchTable) -> None:
    page.heading(f"{finding.code} {finding.severity.value}: {finding.title}", STYLES[finding.severity.value])
    cost = "" if finding.cost_ns is None else saving(finding.cost_ns, finding.cost_of, table.busy_ns, table.span_ns)
    evidence = list(finding.evidence[:MOST_EVIDENCE])
    if len(finding.evidence) > MOST_EVIDENCE:
        evidence.append(f"{len(finding.evidence) - MOST_EVIDENCE} more in --format json")
    page.facts(
        [
            ("where", finding.where),
            ("cost", cost),
            *(("evidence" if at == 0 else "", line) for at, line in enumerate(evidence)),
            ("known by", finding.confidence.value),
            ("fix", finding.fix),
            ("false alarm if", finding.false_alarm_if),
        ],
        blank=False,
    )


def _with_span(
    page: Page, columns: list[Column], lines: list[list[str | Text]], rows: Sequence[Dispatch], table: DispatchTable
) -> tuple[list[Column], list[list[str | Text]]]:
    """Add the share of the span after that of the busy time, where it differs and no name has to make room for it."""
    if table.span_ns <= table.busy_ns:
        return columns, lines
    at = next(i for i, column in enumerate(columns) if column.heading == "of busy") + 1
    wide = [*columns[:at], Column("of span", number=True), *columns[at:]]
    longer = [
        [*line[:at], percent(row.device_ns / table.span_ns), *line[at:]] for line, row in zip(lines, rows, strict=True)
    ]
    return (wide, longer) if page.fits(wide, longer) else (columns, lines)


def _write_attention(page: Page, rows: Sequence[Dispatch], table: DispatchTable) -> None:
    """Rows in groups of one op: its name is long, and many rows share it."""
    on_device = table.device_events > 0 or all(row.host_ns is None for row in rows)
    unit, times = durations(row.device_ns if on_device else row.host_ns for row in rows)
    lines: list[list[str | Text]] = [
        [
            Text(row.verdict, style=STYLES[row.verdict]),
            f"{row.count:,}",
            time,
            percent(row.share),
            implementation(row),
            _known_by(row),
            shapes(row.inputs, tensors=2),
        ]
        for row, time in zip(rows, times, strict=True)
    ]
    columns = [
        Column("verdict"),
        Column("calls", number=True),
        Column(f"{'device' if on_device else 'host'} {unit}", number=True),
        Column("of busy", number=True),
        Column("implementation"),
        Column("known by"),
        Column("inputs", name=True),
    ]
    columns, lines = _with_span(page, columns, lines, rows, table)
    by_op: dict[str, list[list[str | Text]]] = {}
    for row, line in zip(rows, lines, strict=True):
        by_op.setdefault(f"{row.op or 'op not recorded'}{in_stage(row)}", []).append(line)
    page.table(columns, [line for op, group in by_op.items() for line in (op, *group)])


def in_stage(row: Dispatch) -> str:
    """`` in denoise``, or nothing."""
    return f" in {row.stage}" if row.stage else ""


def _known_by(row: Dispatch) -> str:
    return row.evidence if row.attribution == "attributed" else f"{row.evidence}, {row.attribution}"


def implementation(row: Dispatch) -> str:
    """``flash-2 (pytorch)``, ``math``, ``flash-2 backward (pytorch)``."""
    parts = [row.implementation or "-"]
    if row.direction == "backward":
        parts.append("backward")
    if row.provider:
        parts.append(f"({row.provider})")
    return " ".join(parts)


def _write_kernels(page: Page, rows: Sequence[Dispatch]) -> None:
    """The longest kernels of the attention calls: the name is the proof."""
    total: dict[str, tuple[int, int]] = {}
    for row in rows:
        for kernel in row.kernels:
            count, device_ns = total.get(kernel.name, (0, 0))
            total[kernel.name] = (count + kernel.count, device_ns + kernel.device_ns)
    longest = sorted(total.items(), key=lambda item: (-item[1][1], item[0]))[:3]
    if not longest:
        return
    names = kernel_names([name for name, _ in longest], page.width - 32)
    page.facts(
        [
            (f"{count:,} x", f"{name}, {duration(device_ns)}")
            for name, (_, (count, device_ns)) in zip(names, longest, strict=True)
        ],
        blank=False,
    )


def _write_others(page: Page, rows: Sequence[Dispatch], table: DispatchTable) -> None:
    unit, times = durations(row.device_ns for row in rows)
    columns = [
        Column("kernels", number=True),
        Column(f"device {unit}", number=True),
        Column("of busy", number=True),
        Column("family/implementation"),
        Column("op and inputs, or kernel", name=True),
    ]
    lines: list[list[str | Text]] = [
        [
            f"{row.count:,}",
            time,
            percent(row.share),
            f"{row.family}/{row.implementation}" if row.implementation else row.family,
            f"{row.op.replace('aten::', '')} {shapes(row.inputs, tensors=2)}{in_stage(row)}"
            if row.op
            else f"{row.kernels[0].name}{in_stage(row)}",
        ]
        for row, time in zip(rows, times, strict=True)
    ]
    page.table(*_with_span(page, columns, lines, rows, table))


def shapes(inputs: dict[str, str | None] | None, *, tensors: int) -> str:
    """The first tensors of an input signature, e.g. ``[8,16,64] [8,64,128] bf16``; empty if none is recorded."""
    if not inputs:
        return ""
    dims = _parsed(inputs.get("dims"))
    dtypes = _parsed(inputs.get("dtypes"))
    found = [(at, shape) for at, shape in enumerate(dims) if _is_shape(shape)]
    if not found:
        return ""
    # Equal shapes are said once: what differs between query and key is what matters.
    parts = list(dict.fromkeys("[" + ",".join(str(size) for size in shape) + "]" for _, shape in found[:tensors]))
    first = found[0][0]
    dtype = dtypes[first] if first < len(dtypes) else None
    return " ".join([*parts, short_dtype(dtype)] if isinstance(dtype, str) else parts)


def _is_shape(value: Any) -> bool:
    """A tensor's dimensions; a list of them belongs to a list of tensors and is too long to show."""
    return isinstance(value, list) and bool(value) and all(isinstance(size, int) for size in value)


def _parsed(text: str | None) -> list[Any]:
    try:
        value = json.loads(text) if text else []
    except ValueError:
        return []
    return value if isinstance(value, list) else []


def _count(result: CheckResult, code: ExitCode) -> str:
    by_severity = {
        name: sum(finding.severity.value == name for finding in result.findings) for name in ("error", "warning")
    }
    calls = sum(row.count for row in result.table.attention)
    stated = ""
    if result.expectations:
        counts = [
            sum(one.counts.value == verdict for one in result.expectations)
            for verdict in ("fail", "inconclusive", "skipped")
        ]
        total = counted(len(result.expectations), "expectation")
        skipped = f", {counts[2]} skipped" if counts[2] else ""
        stated = f"{total}: {counts[0]} violated, {counts[1]} not to be told{skipped}; "
    return (
        f"{stated}{counted(by_severity['error'], 'error')}, {counted(by_severity['warning'], 'warning')}, "
        f"{counted(calls, 'attention call')}, exit code {int(code)}"
    )
