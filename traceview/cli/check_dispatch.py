"""``traceview check-dispatch``: did attention run on a fast path, for CI."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, TextIO

from traceview.cli.command import Answer, add_trace_options, load_traces, positive
from traceview.cli.outputs import FORMATS, add_output_option, chosen_outputs, refuse_inputs, write_outputs
from traceview.errors import ExitCode

if TYPE_CHECKING:
    import argparse

NAME = "check-dispatch"
SUMMARY = "Say which kernels really ran, and fail if attention took a slow path"
DESCRIPTION = (
    "A flag is a request, not a guarantee: the trace shows which kernel ran. Exit code 0 if every attention call "
    "whose path is proven ran fused, 1 if one is proven to have taken a slow path, 3 if the trace cannot tell."
)
DEFAULT_LIMIT: Final = 12


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    add_trace_options(parser, FORMATS)
    add_output_option(parser)
    parser.add_argument(
        "--inconclusive",
        choices=("fail", "warn"),
        default="fail",
        help="what a trace that cannot tell means: exit code 3 (fail, the default) or 0 (warn)",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=positive,
        default=DEFAULT_LIMIT,
        help=f"list at most N rows of attention calls as text (default: {DEFAULT_LIMIT}); JSON has all",
    )


def run(options: argparse.Namespace) -> Answer:
    """Read and judge."""
    from traceview.gate import check
    from traceview.render.outputs import Checked
    from traceview.report import describe, summarise_import

    outputs = chosen_outputs(options)
    timeline = load_traces(options)
    result = check(timeline)
    trace, summary = describe(timeline), summarise_import(timeline)
    code = result.exit_code
    if code is ExitCode.INCONCLUSIVE and options.inconclusive == "warn":
        code = ExitCode.OK

    refuse_inputs(outputs, [*trace.files, *options.traces])
    checked = Checked(result, trace, summary, code, options.limit, root=os.getcwd())

    def write(out: TextIO) -> None:
        write_outputs(outputs, checked, out)

    return Answer(code, write)
