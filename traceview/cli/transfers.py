"""``traceview transfers``: what was copied, and how much of it again in every step."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from traceview.cli.command import Answer, add_trace_options, load_traces, positive
from traceview.errors import ExitCode

if TYPE_CHECKING:
    import argparse

NAME = "transfers"
SUMMARY = "Show what was copied between host and devices, and what comes back each step"
DESCRIPTION = (
    "Copies by direction, kind of memory and size: how often, how long, exposed or hidden, blocking, and repeated in "
    "every step; and the memory that the allocator takes from the driver and gives back."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    add_trace_options(parser, ("text", "json", "markdown"))
    parser.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help="list at most N kinds of copies (default: 20 as text and Markdown, all as JSON)",
    )


def run(options: argparse.Namespace) -> Answer:
    """Read and analyse."""
    from traceview.transfer_report import transfer_report

    result = transfer_report(load_traces(options))
    limit = options.limit or (None if options.format == "json" else 20)

    def write(out: TextIO) -> None:
        if options.format == "json":
            from traceview.render.documents import dumps
            from traceview.render.idle_documents import transfers_document

            print(dumps(transfers_document(result, limit=limit)), file=out)
            return
        from traceview.render.page import Page
        from traceview.render.transfer_text import print_transfers, write_transfers

        if options.format == "markdown":
            print_transfers(result, out, limit=limit)
        else:
            write_transfers(result, Page(out), limit=limit)

    return Answer(ExitCode.OK, write)
