"""``traceview explain``: why each call ran what it ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TextIO

from traceview.cli.command import Answer, add_trace_options, load_traces, positive, version
from traceview.errors import ExitCode, UsageError

if TYPE_CHECKING:
    import argparse

    from traceview.explaining import Explanations

NAME = "explain"
SUMMARY = "Say why each attention call ran what it ran, and what to change"
DESCRIPTION = (
    "For each attention call: what was asked, what ran, which rules refused the faster backends, what cannot be "
    "excluded, what it costs and what to change; slow ones first. It judges nothing: check-dispatch does."
)
DEFAULT_LIMIT: Final = 8


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    add_trace_options(parser)
    parser.add_argument(
        "--op",
        metavar="GLOB",
        default="attention",
        help="which calls: a family such as gemm, or op names with * and ? (default: attention)",
    )
    parser.add_argument("--torch", metavar="VERSION", type=version, help="PyTorch version, e.g. 2.9")
    parser.add_argument("--cudnn", metavar="VERSION", type=version, help="cuDNN version, e.g. 9.10")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=positive,
        default=DEFAULT_LIMIT,
        help=f"explain at most N groups of calls as text (default: {DEFAULT_LIMIT}); JSON has all",
    )


def run(options: argparse.Namespace) -> Answer:
    """Read and explain."""
    from traceview import report
    from traceview.explaining import ATTENTION, explain_trace

    timeline = load_traces(options)
    found = explain_trace(timeline, op=options.op, torch=options.torch, cudnn=options.cudnn)
    if options.op != ATTENTION and not found.explained:
        raise _no_such_op(options.op, found)
    trace, summary = report.describe(timeline), report.summarise_import(timeline)
    # Without any work and any op there is nothing that could have been explained.
    code = ExitCode.OK if found.table.dispatches else ExitCode.INCONCLUSIVE

    def write(out: TextIO) -> None:
        if options.format == "json":
            from traceview.render.documents import dumps
            from traceview.render.explain_document import explain_document

            print(dumps(explain_document(found, trace, summary)), file=out)
        else:
            from traceview.render.explain_text import write_explanations
            from traceview.render.page import Page

            write_explanations(found, trace, summary, Page(out), limit=options.limit)

    return Answer(code, write)


def _no_such_op(wanted: str, found: Explanations) -> UsageError:
    families = sorted({row.family for row in found.table.dispatches})
    return UsageError(
        "no-such-op",
        where=f"--op {wanted}",
        why="no dispatch in this trace is of that family or op.",
        next_step=f"Families here: {', '.join(families)}." if families else "The trace has no dispatch.",
    )
