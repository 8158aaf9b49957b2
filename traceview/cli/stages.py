"""``traceview stages``: where the time of the steps went, by stage, and what a change of each can win."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TextIO

from traceview.cli.command import (
    FORMS,
    Answer,
    add_stage_option,
    add_trace_options,
    given_stages,
    in_form,
    load_traces,
    positive,
)

if TYPE_CHECKING:
    import argparse

    from traceview.render.page import Page

NAME = "stages"
SUMMARY = "Show what each stage takes and what a change of it can win"
DESCRIPTION = (
    "The stages of the program (marks, your own patterns, annotations, Python stacks, XLA scopes): wall time, device "
    "busy and idle, percentiles, and how much faster the whole gets at most if one of them does."
)

DEFAULT_LIMIT: Final = 16


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    add_trace_options(parser, FORMS)
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

    def document() -> dict[str, Any]:
        from traceview.render.time_documents import stages_document

        return stages_document(result)

    def text(page: Page) -> None:
        from traceview.render.time_text import write_stages

        write_stages(result, page, limit=options.limit)

    def markdown(out: TextIO) -> None:
        from traceview.render.time_text import print_stages

        print_stages(result, out, limit=options.limit)

    return in_form(options, document=document, text=text, markdown=markdown)
