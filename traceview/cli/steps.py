"""``traceview steps``: which steps there are, how long each took, and what the time went to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

from traceview.cli.command import FORMS, Answer, add_trace_options, in_form, load_traces

if TYPE_CHECKING:
    import argparse

    from traceview.render.page import Page

NAME = "steps"
SUMMARY = "Show the steps, how long they took, and what their time went to"
DESCRIPTION = (
    "The iterations of the program, warm-up told apart, percentiles of the rest, and an account of their time that "
    "adds up exactly: per device, and with the host."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    add_trace_options(parser, FORMS)


def run(options: argparse.Namespace) -> Answer:
    """Read and analyse."""
    from traceview.report import steps_of
    from traceview.time_report import step_report

    result = step_report(load_traces(options))
    steps = steps_of(result.steps)

    def document() -> dict[str, Any]:
        from traceview.render.time_documents import steps_document

        return steps_document(result, steps)

    def text(page: Page) -> None:
        from traceview.render.time_text import write_steps

        write_steps(result, steps, page)

    def markdown(out: TextIO) -> None:
        from traceview.render.time_text import print_steps

        print_steps(result, steps, out)

    return in_form(options, document=document, text=text, markdown=markdown)
