"""``traceview capture``: record a program whose code cannot be edited."""

from __future__ import annotations

import argparse
import math
import os
import shlex
import shutil
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Final, TextIO

from traceview.cli.command import Answer, add_debug_option, positive
from traceview.errors import ExitCode, TraceviewError, UsageError

if TYPE_CHECKING:
    from traceview.capture.bootstrap import Outcome

NAME = "capture"
SUMMARY = "Record a Python program with the PyTorch or JAX profiler, or with nsys"
DESCRIPTION = (
    "Runs a program with a profiler around it and writes a trace with everything that the analyses look for. The "
    "program is not changed, and its exit code is that of this command."
)
PROFILERS: Final = ("torch", "jax", "nsys")
OUTPUTS: Final = {"torch": "trace.json.gz", "jax": "trace.xplane.pb", "nsys": "trace.nsys-rep"}
"""Where the trace goes if nothing else is said."""
_ONLY: Final = {
    "steps": ("torch",), "warmup": ("torch",), "no_shapes": ("torch",), "memory": ("torch",),
    "contract": ("torch", "jax"), "graph_nodes": ("nsys",), "capture_range": ("nsys",), "print": ("nsys",),
}  # fmt: skip
"""Options that not every profiler has."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("profiler", choices=PROFILERS, help="which profiler records")
    parser.add_argument(
        "program", metavar="-- PROGRAM", nargs="+", help="the command line, e.g. -- python train.py --epochs 1"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="the trace (default: trace.json.gz, trace.xplane.pb, …)")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    parser.add_argument("--delay", metavar="S", type=_seconds, default=0.0, help="wait so many seconds first")
    parser.add_argument("--duration", metavar="S", type=_seconds, help="record so many seconds (default: to the end)")
    parser.add_argument(
        "--steps", metavar="N", type=positive, help="torch: record so many steps of an optimizer, and mark them"
    )
    parser.add_argument(
        "--warmup", metavar="N", type=_steps, help="torch: leave out so many such steps first (default 0)"
    )
    parser.add_argument("--stacks", action="store_true", help="record Python call stacks; slower")
    parser.add_argument("--memory", action="store_true", help="torch: record allocations")
    parser.add_argument("--no-shapes", action="store_true", help="torch: record no shapes; little is explained then")
    parser.add_argument(
        "--contract", metavar="NAME=VALUE", action="append", default=[], type=_pair,
        help="torch, jax: what is measured (model, dtype, batch, …); may be given several times",
    )  # fmt: skip
    parser.add_argument(
        "--graph-nodes",
        action="store_true",
        help="nsys: record each kernel of a CUDA graph; costs time",
    )
    parser.add_argument(
        "--capture-range",
        metavar="RANGE",
        help="nsys: record only between cudaProfilerStart and Stop (cuda), or in nvtx:NAME",
    )
    parser.add_argument("--print", action="store_true", help="nsys: print the command line and run nothing")
    parser.add_argument("--format", choices=("text", "json"), help="form of the result (default: text)")
    add_debug_option(parser)


def run(options: argparse.Namespace) -> Answer:
    """Run the program, or print how."""
    for name, profilers in _ONLY.items():
        if getattr(options, name) and options.profiler not in profilers:
            flag = "--" + name.replace("_", "-")
            raise UsageError(
                "not-with-this-profiler",
                where=flag,
                why=f"is not for {options.profiler} but for {' and '.join(profilers)}.",
            )
    if options.warmup and not options.steps:
        raise UsageError("needs-steps", where="--warmup", why="counts steps, so it needs --steps.")
    out = options.output or OUTPUTS[options.profiler]
    if options.profiler == "nsys":
        return _with_nsys(options, out if out.endswith(".nsys-rep") else f"{out}.nsys-rep")
    return _with_python(options, out)


def _with_python(options: argparse.Namespace, out: str) -> Answer:
    from traceview.capture.bootstrap import Job
    from traceview.capture.children import read_outcome, run_child
    from traceview.capture.command_lines import python_program
    from traceview.capture.documents import checked_contract, checked_path

    program = python_program(options.program)
    contract = dict(options.contract)
    checked_contract(contract)
    _refuse_existing(checked_path(out), force=options.force)
    with tempfile.TemporaryDirectory() as scratch:
        job = Job(
            profiler=options.profiler,
            out=os.path.abspath(out),
            status=os.path.join(scratch, "status.json"),
            module=program.module,
            delay=options.delay,
            duration=options.duration,
            steps=options.steps,
            warmup=options.warmup or 0,
            shapes=not options.no_shapes,
            stacks=options.stacks,
            memory=options.memory,
            contract=contract,
        )
        command = [
            program.interpreter, *program.options, "-m", "traceview.capture.bootstrap", job.text(), program.target,
            *program.arguments,
        ]  # fmt: skip
        code = run_child(command, output_to_stderr=options.format == "json")
        outcome = read_outcome(job.status)
    if outcome is None:
        raise TraceviewError(
            "not-started",
            where=program.interpreter,
            why="this Python could not start the recording.",
            next_step="Is traceview installed in it? (python -m pip install traceview)",
        )
    if outcome.error and outcome.exit_code is None and code == ExitCode.CANNOT_RUN:
        raise TraceviewError("not-recorded", where=program.name, why=outcome.error)
    return _answer(options, program.name, code, out, outcome)


def _with_nsys(options: argparse.Namespace, out: str) -> Answer:
    from traceview.capture.bootstrap import Outcome
    from traceview.capture.children import run_child
    from traceview.capture.command_lines import nsys_command
    from traceview.capture.documents import checked_path

    command = nsys_command(
        options.program,
        out=out,
        graph_nodes=options.graph_nodes,
        capture_range=options.capture_range,
        delay=options.delay,
        duration=options.duration,
        stacks=options.stacks,
    )
    if options.print:
        return Answer(ExitCode.OK, lambda file: _write_command(options, command, file))
    _refuse_existing(checked_path(out), force=options.force)
    if shutil.which("nsys") is None:
        raise TraceviewError(
            "no-nsys",
            why="Nsight Systems (nsys) is not installed here.",
            next_step=f"Where it is, run: {shlex.join(command)}",
        )
    before = _identity(out)
    code = run_child(command, output_to_stderr=options.format == "json")
    # With --force an old report may lie there, which nobody should take for the new one.
    error = "" if _identity(out) not in (None, before) else "nsys wrote no report; what it printed says why."
    return _answer(options, os.path.basename(options.program[0]), code, out, Outcome(error=error), command)


def _identity(path: str) -> tuple[int, int, int] | None:
    """What changes when a file is written anew; ``None`` if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _refuse_existing(path: str, *, force: bool) -> None:
    if os.path.exists(path) and not force:
        raise UsageError(
            "exists",
            where=path,
            why="exists already.",
            next_step="Give another name with -o, or --force to replace it.",
        )


def _answer(
    options: argparse.Namespace,
    name: str,
    code: int,
    out: str,
    outcome: Outcome,
    command: list[str] | None = None,
) -> Answer:
    """What became of it; the code is the program's own, but for a program that succeeded and left no trace."""
    written = None if outcome.error else out
    ends = code if code or written is not None else int(ExitCode.CANNOT_RUN)
    document = {
        "schema": "traceview.capture-run/1",
        "profiler": options.profiler,
        "program": name,
        "exit_code": code,
        "trace": written,
        "bytes": None if written is None else os.path.getsize(written),
        "recorded_s": None if command is not None else round(outcome.recorded_s, 3),
        "steps": outcome.steps,
        "command": command,
        "next": [] if written is None else [f"traceview report {shlex.quote(out)}"],
        "notes": _notes(options, outcome),
    }

    def write(file: TextIO) -> None:
        if options.format == "json":
            from traceview.render.documents import dumps

            print(dumps(document), file=file)
        else:
            # The program's own output is on standard output, and may be what somebody pipes.
            from traceview.render.names import plain

            for line in _lines(document):
                print(f"traceview: {plain(line)}", file=sys.stderr)

    return Answer(ends, write)


def _notes(options: argparse.Namespace, outcome: Outcome) -> list[dict[str, str]]:
    """Why there is no trace, or in what it is not what was asked for."""
    if outcome.error:
        return [{"part": "trace", "text": outcome.error}]
    notes = []
    if options.steps and outcome.steps is None:
        text = f"no step of an optimizer ran, so none of the {options.steps} steps is marked: --steps counts those."
        notes.append({"part": "steps", "text": text})
    elif options.steps and outcome.steps < options.steps:
        text = f"only {outcome.steps} of {options.steps} steps were recorded: the program ended before the others."
        notes.append({"part": "steps", "text": text})
    if outcome.changed:
        ways = "--delay, or --steps with --warmup" if options.profiler == "torch" else "--delay"
        text = (
            f"{', '.join(outcome.changed)} changed while it was recorded, so nobody knows which call saw which value. "
            f"If the program sets it at its top, a recording that starts after the set-up has one value ({ways})."
        )
        notes.append({"part": "settings", "text": text})
    return notes


def _lines(document: dict[str, Any]) -> list[str]:
    ended = f"{document['program']} ended with exit code {document['exit_code']}"
    if document["trace"] is None:
        return [f"{ended}: {document['notes'][0]['text']}"]
    recorded = "" if document["recorded_s"] is None else f", {document['recorded_s']:.1f} s recorded"
    size = f"{document['bytes'] / 1e6:.1f} MB" if document["bytes"] >= 1e6 else f"{document['bytes'] / 1e3:.1f} kB"
    wrote = f"{ended}; wrote {document['trace']} ({size}{recorded}). Next: {document['next'][0]}"
    return [*(f"note: {note['text']}" for note in document["notes"]), wrote]


def _write_command(options: argparse.Namespace, command: list[str], file: TextIO) -> None:
    if options.format == "json":
        from traceview.render.documents import dumps

        document = {
            "schema": "traceview.capture-run/1",
            "profiler": options.profiler,
            "program": os.path.basename(options.program[0]),
            "exit_code": None,
            "trace": None,
            "bytes": None,
            "recorded_s": None,
            "steps": None,
            "command": command,
            "next": [],
            "notes": [{"part": "trace", "text": "Nothing was run: --print only prints the command line."}],
        }
        print(dumps(document), file=file)
    else:
        print(shlex.join(command), file=file)


def _steps(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value
