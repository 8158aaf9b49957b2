"""``traceview recompiles``: what was compiled, why, and what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

from traceview.cli.command import FORMS, Answer, add_trace_options, in_form, load_traces, positive

if TYPE_CHECKING:
    import argparse

    from traceview.render.page import Page

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

    log = read_compile_log(options.compile_log) if options.compile_log else None
    result = recompile_report(load_traces(options), log)

    def document() -> dict[str, Any]:
        from traceview.render.idle_documents import recompiles_document

        return recompiles_document(result, limit=options.limit)

    def text(page: Page) -> None:
        from traceview.render.recompile_text import write_recompiles

        write_recompiles(result, page, limit=options.limit)

    def markdown(out: TextIO) -> None:
        from traceview.render.recompile_text import print_recompiles

        print_recompiles(result, out, limit=options.limit)

    return in_form(options, document=document, text=text, markdown=markdown)
