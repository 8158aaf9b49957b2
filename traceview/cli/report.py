"""``traceview report``: where the time of the devices went."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TextIO

from traceview.cli.command import FORMS, Answer, add_stage_option, add_trace_options, given_stages, in_form, load_traces
from traceview.errors import ExitCode

if TYPE_CHECKING:
    import argparse

    from traceview.render.page import Page
    from traceview.report import Report
    from traceview.rules.base import Facts
    from traceview.stages import StagePattern

NAME = "report"
SUMMARY = "Show where the time went: steps, stages, devices, kernels"
DESCRIPTION = (
    "What a step takes and what it goes to, the stages and what a change of each can win, how long each device was "
    "busy and idle, and which kernels took the device time."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    add_trace_options(parser, (*FORMS, "html"))
    add_stage_option(parser)
    parser.add_argument(
        "--launched-only",
        action="store_true",
        help="leave out device work whose launch is not in the file (it was asked for before recording began)",
    )
    parser.add_argument(
        "--html",
        metavar="FILE",
        help="write the report as one self-contained page to FILE, to share it, and print no text unless --format asks "
        "for it; --format html prints the page",
    )
    parser.add_argument("--force", action="store_true", help="with --html, replace FILE if it exists")


def run(options: argparse.Namespace) -> Answer:
    """Read and analyse."""
    from traceview import report
    from traceview.cli.html_file import checked_path, write_page, wrote_page
    from traceview.rules.base import Facts

    given = given_stages(options)
    path = checked_path(options.html, options.traces, force=options.force)
    timeline = load_traces(options)
    facts = Facts.of(timeline)
    result = report.report(timeline, launched_only=options.launched_only, given=given, facts=facts)
    html = _page(facts, result, given) if path or options.format == "html" else ""
    if path:
        write_page(path, html, result.trace.files)

    def document() -> dict[str, Any]:
        from traceview.render.report_document import report_document

        return report_document(result)

    def text(page: Page) -> None:
        from traceview.render.report_text import write_report

        write_report(result, page)

    def markdown(out: TextIO) -> None:
        from traceview.render.report_text import print_report

        print_report(result, out)

    def page(out: TextIO) -> None:
        from traceview.render.markup import write_markup

        write_markup(html, out)

    if path and options.format is None:
        return Answer(ExitCode.OK, lambda out: print(wrote_page(path), file=out))
    if path:
        print(f"traceview: note: {wrote_page(path)}", file=sys.stderr)
    if options.format == "html":
        return Answer(ExitCode.OK, page)
    return in_form(options, document=document, text=text, markdown=markdown)


def _page(facts: Facts, result: Report, given: tuple[StagePattern, ...]) -> str:
    """The report as a page, with what only the page has: the verdict on what ran, and the steps as a chart."""
    from traceview.gate import check
    from traceview.render.report_html import ReportPage, report_html
    from traceview.waterfall import waterfall

    chart = waterfall(facts.timeline, result.time.table, result.trace.devices, given=given) if result.time else None
    return report_html(ReportPage(result, check(facts.timeline, facts=facts), chart))
