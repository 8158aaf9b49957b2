"""``traceview steps``: which steps there are, how long each took, and what the time went to."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from traceview.cli.command import Answer, add_trace_options, load_traces
from traceview.errors import ExitCode

if TYPE_CHECKING:
    import argparse

NAME = "steps"
SUMMARY = "Show the steps, how long they took, and what their time went to"
DESCRIPTION = (
    "The iterations of the program, warm-up told apart, percentiles of the rest, and an account of their time that "
    "adds up exactly: per device, and with the host."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    add_trace_options(parser, ("text", "json", "markdown"))


def run(options: argparse.Namespace) -> Answer:
    """Read and analyse."""
    from traceview.report import steps_of
    from traceview.time_report import step_report

    result = step_report(load_traces(options))
    steps = steps_of(result.steps)

    def write(out: TextIO) -> None:
        if options.format == "json":
            from traceview.render.documents import dumps
            from traceview.render.time_documents import steps_document

            print(dumps(steps_document(result, steps)), file=out)
            return
        from traceview.render.page import Page
        from traceview.render.time_text import print_steps, write_steps

        if options.format == "markdown":
            print_steps(result, steps, out)
        else:
            write_steps(result, steps, Page(out))

    return Answer(ExitCode.OK, write)
