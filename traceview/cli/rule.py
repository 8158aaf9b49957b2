"""``traceview rule``: what one rule finds, what it needs as evidence, and when it is wrong."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, TextIO

from traceview.cli.command import Answer, add_debug_option
from traceview.errors import ExitCode, UsageError

if TYPE_CHECKING:
    import argparse

NAME = "rule"
SUMMARY = "Explain one rule: what it finds, why it costs, when it is wrong"
DESCRIPTION = "The documentation of one rule, by its code (TV102) or its name (attention-math), in upper or lower case."


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("rule", metavar="CODE", help="code or name of a rule; traceview rules lists them")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of the result (default: text)")
    add_debug_option(parser)


def run(options: argparse.Namespace) -> Answer:
    """Find the rule.

    Raises:
        UsageError: there is no such rule; the message names the nearest.
    """
    from traceview.rules.catalogue import RULES, find_rule

    rule = find_rule(options.rule)
    if rule is None:
        known = {name.lower(): name for one in RULES for name in (one.code, one.name)}
        near = difflib.get_close_matches(options.rule.lower(), known, 3)
        hint = f"Did you mean {' or '.join(known[name] for name in near)}?" if near else ""
        raise UsageError(
            "no-such-rule",
            where=options.rule,
            why="no rule has that code or name.",
            next_step=hint or "traceview rules lists them all.",
        )

    def write(out: TextIO) -> None:
        from traceview.render.rules_text import rule_document, write_rule

        if options.format == "json":
            from traceview.render.documents import dumps

            print(dumps(rule_document(rule)), file=out)
        else:
            from traceview.render.page import Page

            write_rule(rule, Page(out))

    return Answer(ExitCode.OK, write)
