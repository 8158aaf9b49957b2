"""``traceview transfers``: what was copied, and how much of it again in every step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

from traceview.cli.command import FORMS, Answer, add_trace_options, in_form, load_traces, positive

if TYPE_CHECKING:
    import argparse

    from traceview.render.page import Page

NAME = "transfers"
SUMMARY = "Show what was copied between host and devices, and what comes back each step"
DESCRIPTION = (
    "Copies by direction, kind of memory and size: how often, how long, exposed or hidden, blocking, and repeated in "
    "every step; and the memory that the allocator takes from the driver and gives back."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    add_trace_options(parser, FORMS)
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

    def document() -> dict[str, Any]:
        from traceview.render.idle_documents import transfers_document

        return transfers_document(result, limit=limit)

    def text(page: Page) -> None:
        from traceview.render.transfer_text import write_transfers

        write_transfers(result, page, limit=limit)

    def markdown(out: TextIO) -> None:
        from traceview.render.transfer_text import print_transfers

        print_transfers(result, out, limit=limit)

    return in_form(options, document=document, text=text, markdown=markdown)
