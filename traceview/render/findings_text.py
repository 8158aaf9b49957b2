"""The findings of a report, most to win first, as text and Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.findings import CostOf, Window
from traceview.render.dispatch_text import STYLES
from traceview.render.grids import Grid
from traceview.render.page import Column, Page
from traceview.render.units import counted, duration, percent

if TYPE_CHECKING:
    from traceview.report import Report
    from traceview.top_findings import RankedFinding

TOP_FINDINGS: Final = 5
_MOST_EVIDENCE: Final = 2

_WORDS: Final = {
    CostOf.DEVICE: "device time",
    CostOf.IDLE: "device idle time",
    CostOf.HOST: "host time",
    CostOf.WALL: "time of host and device",
}
_UNRANKED: Final = "not to be told"
_CEILING: Final = (
    "to win: the most that this fix alone can save. Findings explain the same time more than once, so these figures do "
    "not add up."
)
_NOTHING: Final = "No rule found anything in this trace."


def write_findings(page: Page, result: Report) -> None:
    """The top findings with what to do, and how to see the rest."""
    if result.findings is None:
        return
    page.heading(_heading(result.findings))
    if not result.findings:
        page.paragraph(_NOTHING)
        return
    for one in result.findings[:TOP_FINDINGS]:
        page.bullet(f"{one.code} {one.severity.value}: {one.title}", STYLES[one.severity.value])
        page.facts(
            [
                ("to win", _win(one, result)),
                ("where", one.where),
                *(("evidence" if at == 0 else "", line) for at, line in enumerate(one.evidence[:_MOST_EVIDENCE])),
                ("fix", one.fix),
                ("trust", _trust(one)),
            ],
            blank=False,
        )
    page.remark(_closing(result.findings))


def findings_grid(result: Report, limit: int = 3 * TOP_FINDINGS) -> Grid | None:
    """The findings as a table; ``None`` if rules were not asked."""
    if result.findings is None:
        return None
    columns = (Column("finding"), Column("to win"), Column("where"), Column("fix"))
    rows = [
        [f"{one.code} {one.severity.value}: {one.title}", _win(one, result), one.where, one.fix]
        for one in result.findings[:limit]
    ]
    doubts = [f"{one.code}: trust {_trust(one)}" for one in result.findings[:limit] if one.limited_by]
    remarks = [*doubts, _closing(result.findings, limit)] if rows else [_NOTHING]
    return Grid(_heading(result.findings, limit), columns, rows, tuple(dict.fromkeys(remarks)))


def _heading(findings: tuple[RankedFinding, ...], limit: int = TOP_FINDINGS) -> str:
    return "Findings" if len(findings) <= limit else f"Top {limit} of {len(findings)} findings"


def _closing(findings: tuple[RankedFinding, ...], limit: int = TOP_FINDINGS) -> str:
    rest = len(findings) - limit
    more = f" {counted(rest, 'more finding')}: --format json lists all." if rest > 0 else ""
    return f"{_CEILING}{more} traceview rule {findings[0].code} explains a rule."


def _win(one: RankedFinding, result: Report) -> str:
    """``at most 12.30 ms of 100.0 ms (12.3 %), device idle time, measured``."""
    if one.share is None or one.won_ns is None:
        return _UNRANKED
    devices = len(result.devices or ())
    whole = "the span from first to last work" if devices else "the recorded time"
    window = "the steps past the warm-up" if one.window is Window.STEPS else whole
    mean = f", mean of {devices} devices" if devices > 1 else ""
    return f"at most {percent(one.share)} of {window} ({duration(one.won_ns)} of {_WORDS[one.cost_of]}{mean})"


def _trust(one: RankedFinding) -> str:
    """Why the numbers are limited; empty if nothing limits them."""
    if not one.limited_by:
        return ""
    more = f" and {len(one.limited_by) - 1} more" if len(one.limited_by) > 1 else ""
    return f"{one.trust}: {one.limited_by[0]}{more}"


def finding_facts(one: RankedFinding, result: Report) -> dict[str, str]:
    """What a page says of a finding besides its own words: what it can win, where, and why its numbers are limited."""
    return {"to win": _win(one, result), "where": one.where, "trust": _trust(one)}


def findings_frame(findings: tuple[RankedFinding, ...], limit: int) -> tuple[str, str]:
    """Heading and closing remark of a list of at most ``limit`` findings."""
    return _heading(findings, limit), _closing(findings, limit) if findings else _NOTHING
