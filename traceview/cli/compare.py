"""``traceview compare``: did a change do what it claims."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TextIO

from traceview.cli.command import FORMS, Answer, add_debug_option, add_stage_option, given_stages, in_form, positive
from traceview.errors import ExitCode

if TYPE_CHECKING:
    import argparse

    from traceview.render.page import Page

NAME = "compare"
SUMMARY = "Compare two traces: can they be compared, is a step faster, and by what"
DESCRIPTION = (
    "Two traces of one program, before and after a change. First whether they can be compared at all (same hardware, "
    "same work, recorded alike), then whether a step got shorter by more than the spread of the steps, then by what: "
    "parts of the time, stages, what ran instead, kernels, compilations."
)

_DEFAULT_LIMIT = 12


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    for name, words in (("before", "before the change"), ("after", "after it")):
        parser.add_argument(
            name,
            metavar=name.upper(),
            help=f"the trace {words}: a file, or a folder or pattern with the ranks of a run",
        )
    parser.add_argument("--format", choices=FORMS, help="form of the result (default: text)")
    add_stage_option(parser)
    parser.add_argument(
        "--fail-if",
        metavar="slower=PERCENT%",
        help="end with 1 if a step got slower by more than that, with 3 if the traces cannot tell, e.g. slower=5%%",
    )
    parser.add_argument(
        "--inconclusive",
        choices=("fail", "warn"),
        default="fail",
        help="with --fail-if, what traces that cannot tell mean: exit code 3 (fail, the default) or 0 (warn)",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=positive,
        default=_DEFAULT_LIMIT,
        help=f"list at most N stages, changes and kernels as text or Markdown (default: {_DEFAULT_LIMIT})",
    )
    parser.add_argument(
        "--strict", action="store_true", help="fail if anything in a trace had to be skipped or repaired"
    )
    parser.add_argument("--no-progress", action="store_true", help="do not show progress while reading")
    add_debug_option(parser)


def run(options: argparse.Namespace) -> Answer:
    """Read both and compare."""
    from traceview.cli.progress import Progress
    from traceview.compare import compare_sides, side
    from traceview.loading import load
    from traceview.slowdown_limit import judge_limit, read_limit

    # What the user wrote is read first: a mistake in it should not wait for two large files.
    given = given_stages(options)
    limit = read_limit(options.fail_if) if options.fail_if else None
    sides = []
    for path in (options.before, options.after):
        with Progress(sys.stderr, show=not options.no_progress) as progress:
            timeline = load([path], strict=options.strict, progress=progress)
        # One trace at a time: two large ones may not fit into memory together.
        sides.append(side(timeline, given))
        del timeline
    found = compare_sides(*sides)
    gate = None if limit is None else (limit, judge_limit(limit, found))
    code = gate[1].code if gate else ExitCode.OK
    if code is ExitCode.INCONCLUSIVE and options.inconclusive == "warn":
        code = ExitCode.OK

    def document() -> dict[str, Any]:
        from traceview.render.compare_document import compare_document

        return compare_document(found, int(code), gate)

    def text(page: Page) -> None:
        from traceview.render.compare_text import write_comparison

        write_comparison(found, page, limit=options.limit, gate=gate)

    def markdown(out: TextIO) -> None:
        from traceview.render.compare_text import print_comparison

        print_comparison(found, out, limit=options.limit, gate=gate)

    return in_form(options, document=document, text=text, markdown=markdown, code=code)
