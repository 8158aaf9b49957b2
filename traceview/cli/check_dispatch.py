"""``traceview check-dispatch``: did what a team expects really run, for CI."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

from traceview.cli.command import (
    Answer,
    add_stage_option,
    add_trace_options,
    given_stages,
    load_traces,
    positive,
    version,
)
from traceview.cli.expiry import day, today
from traceview.cli.outputs import FORMATS, add_output_option, chosen_outputs, refuse_inputs, write_outputs
from traceview.errors import ExitCode, UsageError
from traceview.render.outputs import DEFAULT_LIMIT

if TYPE_CHECKING:
    import argparse

    from traceview.expectations.model import Accept
    from traceview.gate import CheckResult
    from traceview.timeline import Timeline

NAME = "check-dispatch"
SUMMARY = "Say which kernels really ran, and fail if they are not the expected ones"
DESCRIPTION = (
    "A flag is a request, not a guarantee: the trace shows which kernel ran. With --expect, exit code 0 if every "
    "expectation of the file holds, 1 if one is violated, 3 if the trace cannot tell. Without, 0 if every attention "
    "call ran fused, 1 if one is proven to have taken a slow path, 3 if the trace cannot tell."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    add_trace_options(parser, FORMATS)
    add_output_option(parser)
    parser.add_argument("--expect", metavar="FILE", help="what must hold: a dispatch.toml, see docs/expectations.md")
    add_stage_option(parser)
    parser.add_argument("--baseline", metavar="FILE", help="known findings and violations that do not count")
    parser.add_argument(
        "--update-baseline",
        metavar="REASON",
        help="write everything that counts now to the file of --baseline, for this reason; the verdict stays",
    )
    parser.add_argument(
        "--expires",
        metavar="DATE",
        type=day,
        help="last day of what --update-baseline writes, or never (default: 90 days from today)",
    )
    parser.add_argument(
        "--torch", metavar="VERSION", type=version, help="PyTorch version, e.g. 2.9; outweighs [context]"
    )
    parser.add_argument(
        "--cudnn", metavar="VERSION", type=version, help="cuDNN version, e.g. 9.10; outweighs [context]"
    )
    parser.add_argument(
        "--inconclusive",
        choices=("fail", "warn"),
        default="fail",
        help="what a trace that cannot tell means: exit code 3 (fail, the default) or 0 (warn)",
    )
    parser.add_argument(
        "--exit-zero", action="store_true", help="end with 0 whatever the verdict; what cannot run still ends with 2"
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
    from traceview.render.outputs import Checked
    from traceview.report_parts import describe, summarise_import

    outputs = chosen_outputs(options)
    named = [path for path in options.traces if not os.path.isdir(path)]
    refuse_inputs(outputs, [*named, options.expect, options.baseline])
    timeline, result = _judged(options)
    trace, summary = describe(timeline), summarise_import(timeline)
    code = exit_code(result.exit_code, inconclusive=options.inconclusive, exit_zero=options.exit_zero)

    # A folder or a pattern among the traces says only now which files it means.
    refuse_inputs(outputs, trace.files)
    checked = Checked(result, trace, summary, code, options.limit, root=os.getcwd())

    def write(out: TextIO) -> None:
        write_outputs(outputs, checked, out)

    return Answer(code, write)


def exit_code(code: ExitCode, *, inconclusive: str, exit_zero: bool) -> ExitCode:
    """The exit code with the options considered; "cannot run" is no verdict and stays."""
    softened = exit_zero and code in {ExitCode.VIOLATED, ExitCode.INCONCLUSIVE}
    if softened or (code is ExitCode.INCONCLUSIVE and inconclusive == "warn"):
        return ExitCode.OK
    return code


def _judged(options: argparse.Namespace) -> tuple[Timeline, CheckResult]:
    """What the user wrote is read before the trace: a mistake in it should not wait for a large file."""
    if options.update_baseline is None and options.expires is not None:
        raise UsageError("needs-update-baseline", where="--expires", why="it belongs to --update-baseline.")
    if options.update_baseline is not None and not options.baseline:
        raise UsageError(
            "needs-baseline",
            where="--update-baseline",
            why="there is no baseline to update.",
            next_step="Add --baseline FILE.",
        )
    if options.update_baseline is not None and not options.update_baseline.strip():
        raise UsageError("needs-reason", where="--update-baseline", why="the reason is empty.")
    from traceview.expectations.baseline import has_own_comments, last_day, read_or_start, updated, write_baseline
    from traceview.expectations.model import Context
    from traceview.expectations.reading import read_baseline, read_expectations
    from traceview.gate import check
    from traceview.render.names import plain

    stages = given_stages(options)
    expectations = read_expectations(options.expect) if options.expect else None
    baseline: tuple[Accept, ...] = ()
    if options.baseline:
        baseline = (read_or_start if options.update_baseline else read_baseline)(options.baseline)
    timeline = load_traces(options)
    result = check(
        timeline,
        expectations,
        baseline=baseline,
        context=Context(torch=options.torch, cudnn=options.cudnn),
        today=today(),
        stages=stages,
    )
    if options.update_baseline:
        text = updated(
            baseline,
            result.findings,
            result.expectations or (),
            reason=options.update_baseline,
            expires=last_day(options.expires, today()),
            today=today(),
        )
        if has_own_comments(options.baseline):
            print(f"traceview: note: the comments of {plain(options.baseline)} are not kept.", file=sys.stderr)
        write_baseline(options.baseline, text)
    return timeline, result
