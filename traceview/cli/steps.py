"""``traceview steps``: which steps there are, how long each took, and what the time went to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.cli.command import FORMS, Answer, add_trace_options, in_form, load_traces

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
    add_trace_options(parser, FORMS)


def run(options: argparse.Namespace) -> Answer:
    """Read and analyse."""
    from traceview.render.time_documents import steps_document
    from traceview.render.time_text import print_steps, write_steps
    from traceview.report import steps_of
    from traceview.time_report import step_report

    result = step_report(load_traces(options))
    steps = steps_of(result.steps)

    return in_form(
        options,
        document=lambda: steps_document(result, steps),
        text=lambda page: write_steps(result, steps, page),
        markdown=lambda out: print_steps(result, steps, out),
    )
