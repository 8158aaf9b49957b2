"""``traceview init-expectations``: write a ``dispatch.toml`` from a good trace."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from traceview.cli.command import Answer, add_trace_options, load_traces
from traceview.cli.expiry import day, today
from traceview.cli.outputs import OTHER_NAME, OVERWRITES_INPUT, is_input
from traceview.errors import ExitCode, TraceviewError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from traceview.expectations.proposing import Proposal

NAME = "init-expectations"
SUMMARY = "Write a dispatch.toml from a good trace: what ran there must run again"
DESCRIPTION = (
    "Writes a commented file of expectations that hold on this trace, for check-dispatch --expect. A trace that proves "
    "a slow path is no good example and is refused (exit code 1) unless --accept-slow says why it is known."
)
STANDARD_OUTPUT = "-"


class UnfitTraceError(TraceviewError):
    """The trace cannot serve as an example."""

    def __init__(self, code: str, *, where: str, why: str, next_step: str, exit_code: ExitCode) -> None:
        super().__init__(code, where=where, why=why, next_step=next_step)
        self.exit_code = exit_code


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    add_trace_options(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="dispatch.toml", help="where to (default: dispatch.toml); - prints it"
    )
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    parser.add_argument(
        "--accept-slow",
        metavar="REASON",
        help="take a trace with proven slow paths, and write them as accepted for this reason",
    )
    parser.add_argument(
        "--expires",
        metavar="DATE",
        type=day,
        help="last day of what --accept-slow accepts, or never (default: 90 days from today)",
    )


def run(options: argparse.Namespace) -> Answer:
    """Read, propose, write."""
    from traceview.expectations.baseline import last_day
    from traceview.expectations.proposing import Acceptance, propose
    from traceview.expectations.writing import refuse_existing, write_file
    from traceview.gate import check

    if options.expires is not None and options.accept_slow is None:
        raise UsageError("needs-accept-slow", where="--expires", why="it belongs to --accept-slow.")
    if options.accept_slow is not None and not options.accept_slow.strip():
        raise UsageError("needs-reason", where="--accept-slow", why="the reason is empty.")
    to_file = options.output != STANDARD_OUTPUT
    if to_file:
        _refuse_inputs(options.output, [trace for trace in options.traces if not os.path.isdir(trace)])
    if to_file and not options.force:
        refuse_existing(options.output)
    acceptance = None
    if options.accept_slow is not None:
        acceptance = Acceptance(options.accept_slow, last_day(options.expires, today()))
    timeline = load_traces(options)
    if to_file:
        # A folder or a pattern among the traces says only now which files it means.
        _refuse_inputs(options.output, [str(one.path) for one in timeline.runs])
    result = check(timeline)
    proposal = propose(timeline, result.table, result.findings, acceptance)
    if proposal.why_not is not None:
        raise UnfitTraceError(
            "unfit-trace",
            where=options.traces[0],
            why=f"this trace is no good example: {proposal.why_not}.",
            next_step='Give one without slow paths, or say why they are known with --accept-slow "REASON".'
            if proposal.slow
            else "Give a trace that shows the work whole.",
            exit_code=ExitCode.VIOLATED if proposal.slow else ExitCode.INCONCLUSIVE,
        )
    if to_file:
        write_file(options.output, proposal.text, replace=options.force)

    def write(out: TextIO) -> None:
        if options.format == "json":
            from traceview.render.documents import dumps, proposal_document

            print(dumps(proposal_document(proposal, options.output if to_file else None)), file=out)
        elif to_file:
            _write_summary(proposal, options.output, out)
        else:
            out.write(proposal.text)

    return Answer(ExitCode.OK, write)


def _refuse_inputs(path: str, inputs: Sequence[str]) -> None:
    if is_input(path, inputs):
        raise UsageError("cannot-write", where=f"--output {path}", why=OVERWRITES_INPUT, next_step=OTHER_NAME)


def _write_summary(proposal: Proposal, path: str, out: TextIO) -> None:
    from traceview.render.names import plain
    from traceview.render.units import counted

    stated = counted(len(proposal.stated), "expectation")
    accepted = f", and accepts {counted(proposal.accepted, 'known violation')}" if proposal.accepted else ""
    print(f"wrote {plain(path)}: it states {stated}{accepted}.", file=out)
    for text in proposal.stated:
        print(f"  {plain(text)}", file=out)
