"""``traceview kernels``: which kernels ran and what each took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TextIO

from traceview.cli.command import Answer, add_trace_options, load_traces, positive
from traceview.errors import ExitCode, UsageError

if TYPE_CHECKING:
    import argparse

    from traceview.report import KernelReport, KernelUse

NAME = "kernels"
SUMMARY = "List the kernels that ran: what each is, and what it took"
DESCRIPTION = (
    "Every kernel with its family, implementation, provider, use of tensor cores, count, total and mean duration, "
    "and its share of the device time; and the same by family."
)

SORT_KEYS: Final = ("total", "mean", "count", "name")
DEFAULT_LIMIT: Final = 20


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    add_trace_options(parser)
    parser.add_argument("--family", metavar="NAME", help="only kernels of this family, e.g. attention or gemm")
    parser.add_argument("--sort", choices=SORT_KEYS, default="total", help="order (default: total)")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=positive,
        help=f"list at most N kernels (default: {DEFAULT_LIMIT} as text, all as JSON)",
    )
    parser.add_argument(
        "--full-names", action="store_true", help="do not shorten kernel names of up to 8,192 characters"
    )


def run(options: argparse.Namespace) -> Answer:
    """Read, analyse, choose."""
    from traceview import report

    result = report.kernel_report(load_traces(options))
    chosen = choose(result, family=options.family, sort=options.sort)

    def write(out: TextIO) -> None:
        if options.format == "json":
            from traceview.render.documents import dumps, kernels_document

            listed = chosen if chosen is None or options.limit is None else chosen[: options.limit]
            print(dumps(kernels_document(result, listed)), file=out)
        else:
            from traceview.render.kernels_text import write_kernel_report
            from traceview.render.page import Page

            listed = None if chosen is None else chosen[: options.limit or DEFAULT_LIMIT]
            write_kernel_report(result, listed, Page(out), full_names=options.full_names, family=options.family)

    return Answer(ExitCode.OK, write)


def choose(result: KernelReport, *, family: str | None, sort: str) -> list[KernelUse] | None:
    """The kernels of a family, in an order; ``None`` if the trace has no device work.

    Raises:
        UsageError: no kernel is of that family; the message names the families there are.
    """
    if result.kernels is None:
        return None
    kernels = [one for one in result.kernels if family is None or one.family == family]
    if family is not None and not kernels:
        there = sorted({one.family for one in result.kernels})
        raise UsageError(
            "no-such-family",
            where=f"--family {family}",
            why="no kernel in this trace is of that family.",
            next_step=f"Families here: {', '.join(there)}." if there else "The trace has no kernel.",
        )
    if sort == "name":
        return sorted(kernels, key=lambda one: one.name)
    attribute = {"total": "total_ns", "mean": "mean_ns", "count": "count"}[sort]
    return sorted(kernels, key=lambda one: (-int(getattr(one, attribute)), one.name))
