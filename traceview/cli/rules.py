"""``traceview rules``: the list of all rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from traceview.cli.command import Answer, add_debug_option
from traceview.errors import ExitCode

if TYPE_CHECKING:
    import argparse

NAME = "rules"
SUMMARY = "List the rules"
DESCRIPTION = "Every rule with its code, the worst severity it can yield, its name and what it finds."


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of the result (default: text)")
    add_debug_option(parser)


def run(options: argparse.Namespace) -> Answer:
    """List them."""
    from traceview.rules.catalogue import RULES

    def write(out: TextIO) -> None:
        from traceview.render.rules_text import rules_document, write_rules

        if options.format == "json":
            from traceview.render.documents import dumps

            print(dumps(rules_document(RULES)), file=out)
        else:
            from traceview.render.page import Page

            write_rules(RULES, Page(out))

    return Answer(ExitCode.OK, write)
