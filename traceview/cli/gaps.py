"""``traceview gaps``: why the devices stood idle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

from traceview.cli.command import FORMS, Answer, add_trace_options, in_form, load_traces, positive

if TYPE_CHECKING:
    import argparse

    from traceview.render.page import Page

NAME = "gaps"
SUMMARY = "Show why the devices stood idle, and what held the host"
DESCRIPTION = (
    "Idle time of each device divided by cause (launching, waits, data loading, compilation, ...), the longest idle "
    "stretches with what held the host, and how fast work is launched."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    add_trace_options(parser, FORMS)
    parser.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help="list at most N idle stretches (default: 10 as text and Markdown, 1000 as JSON)",
    )


def run(options: argparse.Namespace) -> Answer:
    """Read and analyse."""
    from traceview.gap_report import gap_report, places

    timeline = load_traces(options)
    result = gap_report(timeline)
    limit = options.limit or (1000 if options.format == "json" else 10)
    where = [] if result.gaps is None else places(timeline, result.gaps.head(min(limit, 1000)))

    def document() -> dict[str, Any]:
        from traceview.render.idle_documents import gaps_document

        return gaps_document(result, limit=limit, places=where)

    def text(page: Page) -> None:
        from traceview.render.idle_text import write_gaps

        write_gaps(result, page, places=where, limit=limit)

    def markdown(out: TextIO) -> None:
        from traceview.render.idle_text import print_gaps

        print_gaps(result, out, places=where, limit=limit)

    return in_form(options, document=document, text=text, markdown=markdown)
