"""``traceview samples``: the traces that come along, and where their files are."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from traceview.cli.command import Answer, add_debug_option
from traceview.errors import ExitCode

if TYPE_CHECKING:
    import argparse

NAME = "samples"
SUMMARY = "List the traces that come along, to try everything on"
DESCRIPTION = "Every bundled trace with what it shows; with a name, where its files are, one path a line."


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="print where the files of this sample are")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of the result (default: text)")
    add_debug_option(parser)


def run(options: argparse.Namespace) -> Answer:
    """List them, or say where one is."""
    from traceview.samples import catalogue, find, pairs

    chosen = (find(options.name),) if options.name else catalogue()
    names = {sample.name for sample in chosen}
    of_these = tuple(pair for pair in pairs() if {pair.before, pair.after} & names)

    def write(out: TextIO) -> None:
        from traceview.render.samples_text import samples_document, write_samples

        if options.format == "json":
            from traceview.render.documents import dumps

            print(dumps(samples_document(chosen, of_these)), file=out)
        elif options.name:
            for path in chosen[0].paths:
                print(path, file=out)
        else:
            from traceview.render.page import Page

            write_samples(chosen, of_these, Page(out))

    return Answer(ExitCode.OK, write)
