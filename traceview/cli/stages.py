"""``traceview stages``: where the time of the steps went, by stage, and what a change of each can win."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TextIO

from traceview.cli.command import Answer, add_stage_option, add_trace_options, given_stages, load_traces, positive
from traceview.errors import ExitCode

if TYPE_CHECKING:
    import argparse

NAME = "stages"
SUMMARY = "Show what each stage takes and what a change of it can win"
DESCRIPTION = (
    "The stages of the program (marks, your own patterns, annotations, Python stacks, XLA scopes): wall time, device "
    "busy and idle, percentiles, and how much faster the whole gets at most if one of them does."
)

DEFAULT_LIMIT: Final = 16


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    add_trace_options(parser, ("text", "json", "markdown"))
    add_stage_option(parser)
    parser.add_argument(
        "--limit",
        metavar="N",
        type=positive,
        default=DEFAULT_LIMIT,
        help=f"list at most N stages as text or Markdown (default: {DEFAULT_LIMIT}); JSON has all",
    )


def run(options: argparse.Namespace) -> Answer:
    """Read and analyse."""
    from traceview.time_report import stage_report

    given = given_stages(options)
    result = stage_report(load_traces(options), given)

    def write(out: TextIO) -> None:
        if options.format == "json":
            from traceview.render.documents import dumps
            from traceview.render.time_documents import stages_document

            print(dumps(stages_document(result)), file=out)
            return
        from traceview.render.page import Page
        from traceview.render.time_text import print_stages, write_stages

        if options.format == "markdown":
            print_stages(result, out, limit=options.limit)
        else:
            write_stages(result, Page(out), limit=options.limit)

    return Answer(ExitCode.OK, write)
