"""``traceview gaps``: why the devices stood idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.cli.command import FORMS, Answer, add_trace_options, in_form, load_traces, positive

if TYPE_CHECKING:
    import argparse

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
    from traceview.render.idle_documents import gaps_document
    from traceview.render.idle_text import print_gaps, write_gaps

    timeline = load_traces(options)
    result = gap_report(timeline)
    limit = options.limit or (1000 if options.format == "json" else 10)
    where = [] if result.gaps is None else places(timeline, result.gaps.head(min(limit, 1000)))

    return in_form(
        options,
        document=lambda: gaps_document(result, limit=limit, places=where),
        text=lambda page: write_gaps(result, page, places=where, limit=limit),
        markdown=lambda out: print_gaps(result, out, places=where, limit=limit),
    )
