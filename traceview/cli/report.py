"""``traceview report``: where the time of the devices went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.cli.command import FORMS, Answer, add_stage_option, add_trace_options, given_stages, in_form, load_traces

if TYPE_CHECKING:
    import argparse

NAME = "report"
SUMMARY = "Show where the time went: steps, stages, devices, kernels"
DESCRIPTION = (
    "What a step takes and what it goes to, the stages and what a change of each can win, how long each device was "
    "busy and idle, and which kernels took the device time."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    add_trace_options(parser, FORMS)
    add_stage_option(parser)
    parser.add_argument(
        "--launched-only",
        action="store_true",
        help="leave out device work whose launch is not in the file (it was asked for before recording began)",
    )


def run(options: argparse.Namespace) -> Answer:
    """Read and analyse."""
    from traceview import report
    from traceview.render.report_document import report_document
    from traceview.render.report_text import print_report, write_report

    given = given_stages(options)
    result = report.report(load_traces(options), launched_only=options.launched_only, given=given)

    return in_form(
        options,
        document=lambda: report_document(result),
        text=lambda page: write_report(result, page),
        markdown=lambda out: print_report(result, out),
    )
