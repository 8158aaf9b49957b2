"""``traceview convert``: write a trace in a form that other programs read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from traceview.cli.command import Answer, add_trace_options, load_traces
from traceview.cli.outputs import OTHER_NAME, OVERWRITES_INPUT, is_input
from traceview.errors import ExitCode, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

NAME = "convert"
SUMMARY = "Write a trace as Parquet, for Perfetto, or as Chrome JSON"
DESCRIPTION = (
    "Writes the timeline of one or more traces to a file: Parquet (everything, and it loads again), a Perfetto trace "
    "(with stages, findings and launch arrows), or Chrome JSON."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    add_trace_options(
        parser,
        ("parquet", "perfetto", "chrome"),
        "what to write (default: by the end of the name: .parquet, .pftrace, .json; .gz packs the last two)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="where to")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    parser.add_argument("--json", action="store_true", help="say what was written as a JSON document")


def run(options: argparse.Namespace) -> Answer:
    """Read, write, say so."""
    from traceview.exporting.convert import convert, form_of, refuse_target

    form_of(options.output, options.format)
    _refuse_inputs(options.output, [trace for trace in options.traces if not os.path.isdir(trace)])
    refuse_target(options.output, replace=options.force)
    timeline = load_traces(options)
    # A folder or a pattern among the traces says only now which files it means.
    _refuse_inputs(options.output, [str(one.path) for one in timeline.runs])
    try:
        result = convert(timeline, options.output, form=options.format, replace=options.force)
    except OSError as error:
        raise UsageError(
            "cannot-write", where=f"--output {options.output}", why=f"cannot write: {error.strerror or error}.",
            next_step="Make room there, or choose another place.",
        ) from None  # fmt: skip

    def write(out: TextIO) -> None:
        if options.json:
            from traceview.render.converted import converted_document
            from traceview.render.documents import dumps

            print(dumps(converted_document(result, timeline)), file=out)
        else:
            from traceview.render.converted import converted_text

            out.write(converted_text(result))

    return Answer(ExitCode.OK, write)


def _refuse_inputs(path: str, inputs: Sequence[str]) -> None:
    if is_input(path, inputs):
        raise UsageError("cannot-write", where=f"--output {path}", why=OVERWRITES_INPUT, next_step=OTHER_NAME)
