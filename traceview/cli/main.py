"""The ``traceview`` program: finds the command, runs it, and turns every failure into one clear line."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import traceback
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from traceview import __version__
from traceview.cli.encoding import tolerate
from traceview.errors import ExitCode, TraceviewError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from traceview.cli.command import Answer, Command

COMMANDS: Final = (
    "check_dispatch",
    "explain",
    "init_expectations",
    "report",
    "stages",
    "steps",
    "kernels",
    "gaps",
    "recompiles",
    "transfers",
    "compare",
    "dashboard",
    "capture",
    "convert",
    "cache",
    "rule",
    "rules",
    "samples",
)
"""Modules of this package, in the order of the help."""

_ALLOCATOR: Final = ("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
"""Polars' allocator (jemalloc) keeps freed memory for ten seconds, all the time that most commands take; with this
it gives it back at once. It reads the setting when Polars is imported, and a setting of the user's own stays."""

INTERRUPTED: Final = 130
"""What a shell reports for a program ended by Ctrl-C."""

_EXIT_CODES: Final = (
    "Exit codes: 0 it holds, 1 it does not hold, 2 cannot run (usage, unreadable trace, defect), "
    "3 the trace cannot tell."
)
_INVALID_CHOICE: Final = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)$", re.DOTALL)
_WORD: Final = re.compile(r"[\w-]+")
_UNKNOWN: Final = "unrecognized arguments: "
_ISSUES: Final = "please report it with the output of the same command and --debug"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line.

    Args:
        arguments: Without the program name; those of the process if not given.

    Returns:
        The exit code, see :class:`traceview.errors.ExitCode`.
    """
    try:
        return _main(arguments)
    except KeyboardInterrupt:
        print("\ntraceview: interrupted", file=sys.stderr)
        return INTERRUPTED


def _main(arguments: Sequence[str] | None) -> int:
    if "polars" not in sys.modules:
        os.environ.setdefault(*_ALLOCATOR)
    # A process started with a stream closed has None there.
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open as long as the process
    if sys.stdout is None:
        _complain("stdout is closed, so there is nowhere to write the result.")
        return ExitCode.CANNOT_RUN
    for stream in (sys.stdout, sys.stderr):
        tolerate(stream)
    commands = [cast("Command", import_module(f"traceview.cli.{module}")) for module in COMMANDS]
    parser = build_parser(commands)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        # Said by the parser of the command, whose options could have been meant.
        parser.command_parsers.get(options.command, parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.command is None:
        parser.print_help()
        return ExitCode.CANNOT_RUN
    command = next(command for command in commands if options.command == command.NAME)
    return _run(command, options)


def _run(command: Command, options: argparse.Namespace) -> int:
    try:
        answer = command.run(options)
        _write(answer)
    except TraceviewError as error:
        if options.debug:
            traceback.print_exc()
        for line in error.lines:
            _complain(line)
        return error.exit_code
    except OSError as error:
        if options.debug:
            traceback.print_exc()
        _complain(f"{error.filename or 'output'}: {error.strerror or error}.")
        _silence(sys.stdout)
        return ExitCode.CANNOT_RUN
    except MemoryError:
        if options.debug:
            traceback.print_exc()
        _complain("out of memory. Give fewer files at once, or record fewer steps.")
        return ExitCode.CANNOT_RUN
    except BaseException as error:
        # Polars raises a panic of its Rust part as a BaseException; Ctrl-C and exit are not defects.
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        if options.debug:
            traceback.print_exc()
        first_line = next(iter(str(error).splitlines()), "")
        _complain(f"defect in traceview ({type(error).__name__}: {first_line}); {_ISSUES}.")
        return ExitCode.CANNOT_RUN
    return answer.code


class _HelpFormatter(argparse.HelpFormatter):
    """The usual help, with room for the longest command before its summary."""

    def __init__(self, prog: str, **more: Any) -> None:
        super().__init__(prog, max_help_position=30, **more)
        # argparse leaves the names of commands out when it measures the first column.
        self._action_max_length = 18


class _Parser(argparse.ArgumentParser):
    """A parser that says what may have been meant.

    Attributes:
        command_parsers: Those of the commands, by name.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.command_parsers: dict[str, argparse.ArgumentParser] = {}

    def error(self, message: str) -> NoReturn:
        """End the program with exit code 2, after one line and the usage."""
        from traceview.render.names import plain

        super().error(f"{plain(message)}{self._meant(message)}")

    def _meant(self, message: str) -> str:
        if choice := _INVALID_CHOICE.search(message):
            given, known = choice[1], _WORD.findall(choice[2])
        elif message.startswith(_UNKNOWN):
            given = message.removeprefix(_UNKNOWN).split(maxsplit=1)[0].partition("=")[0]
            known = [text for action in self._actions for text in action.option_strings]
        else:
            return ""
        import difflib

        near = difflib.get_close_matches(given, known, 1)
        return f". Did you mean {near[0]}?" if near and near[0] != given else ""


def build_parser(commands: Sequence[Command]) -> _Parser:
    """The parser of the whole command line."""
    parser = _Parser(
        prog="traceview",
        description="Which kernel actually ran, where the time went, and why. Reads traces of the PyTorch profiler, "
        "Nsight Systems and XProf (JAX, TensorFlow, PyTorch/XLA).",
        epilog=f"traceview COMMAND --help shows the options of a command. {_EXIT_CODES}",
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"traceview {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=_Parser)
    for command in commands:
        own = subparsers.add_parser(
            command.NAME,
            help=command.SUMMARY,
            description=command.DESCRIPTION,
            epilog=_EXIT_CODES,
            formatter_class=_HelpFormatter,
            allow_abbrev=False,
        )
        command.add_options(own)
        parser.command_parsers[command.NAME] = own
    return parser


def _complain(text: str) -> None:
    """One line on stderr, whatever the text holds; a stderr that cannot be written to changes no exit code."""
    from traceview.render.names import plain

    try:
        print(f"traceview: error: {plain(text)}", file=sys.stderr, flush=True)
    except OSError:
        _silence(sys.stderr)


def _write(answer: Answer) -> None:
    try:
        answer.write(sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone, e.g. `traceview report x | head`: it has seen what it wanted, and the answer stands.
        _silence(sys.stdout)


def _silence(stream: TextIO) -> None:
    """Python flushes a stream once more at exit; give it somewhere to go."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
