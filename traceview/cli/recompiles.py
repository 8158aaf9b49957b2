"""``traceview recompiles``: what was compiled, why, and what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.cli.command import FORMS, Answer, add_trace_options, in_form, load_traces, positive

if TYPE_CHECKING:
    import argparse

NAME = "recompiles"
SUMMARY = "Show what was compiled or captured, when, why, and what it cost"
DESCRIPTION = (
    "Compilations of torch.compile and XLA, captures of device graphs, autotuning and cuDNN plans on the timeline: "
    "function, cost, step, and the shapes or guards that changed, as far as recorded."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    add_trace_options(parser, FORMS)
    parser.add_argument(
        "--compile-log",
        metavar="PATH",
        help="structured compile log of the same run (the folder that TORCH_TRACE named, or a file of it): "
        "adds names, failed guards and shapes",
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="list at most N compilations (default: all)")


def run(options: argparse.Namespace) -> Answer:
    """Read and analyse."""
    from traceview.compile_log import read_compile_log
    from traceview.recompile_report import recompile_report
    from traceview.render.idle_documents import recompiles_document
    from traceview.render.recompile_text import print_recompiles, write_recompiles

    log = read_compile_log(options.compile_log) if options.compile_log else None
    result = recompile_report(load_traces(options), log)

    return in_form(
        options,
        document=lambda: recompiles_document(result, limit=options.limit),
        text=lambda page: write_recompiles(result, page, limit=options.limit),
        markdown=lambda out: print_recompiles(result, out, limit=options.limit),
    )
