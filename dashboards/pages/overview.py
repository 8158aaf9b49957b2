"""The answer first: verdict, trust, key figures, where a step goes, what to do."""

from __future__ import annotations

from traceview.dashboards import ui
from traceview.dashboards.pages.loading import opened
from traceview.render.conditions import conditions
from traceview.render.report_text import report_sentence


def page() -> None:
    """The page."""
    trace = opened()
    ui.text(f"{trace.check.verdict.value.upper()}: {trace.check.summary}", kind="headline", key="verdict")
    ui.text(report_sentence(trace.report))
    ui.facts(conditions(trace.report.trace, trace.report.import_report, trace.check.findings))
