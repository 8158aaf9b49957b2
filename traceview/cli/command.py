"""What a command is, and the options that all commands share."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

from traceview.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from traceview.render.page import Page
    from traceview.stages import StagePattern
    from traceview.timeline import Timeline


FORMS: Final = ("text", "json", "markdown")
"""Forms of the results that :func:`in_form` writes."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found: the exit code, and how to write the result.

    The code is known before anything is written, so a reader that goes away early cannot change it.
    """

    code: ExitCode
    write: Callable[[TextIO], None]


class Command(Protocol):
    """One command, a module. What costs time to import is imported in :meth:`run`."""

    NAME: str
    SUMMARY: str
    """One line for ``traceview --help``."""
    DESCRIPTION: str
    """What it answers, for ``traceview NAME --help``."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of this command alone."""

    def run(self, options: argparse.Namespace) -> Answer:
        """Read and analyse; writing is left to the caller.

        Raises:
            TraceviewError: what the user can do something about.
        """


def in_form(
    options: argparse.Namespace,
    *,
    document: Callable[[], dict[str, Any]],
    text: Callable[[Page], None],
    markdown: Callable[[TextIO], None],
    code: ExitCode | None = None,
) -> Answer:
    """The answer of a command that shows a result in the form that ``--format`` asks for.

    Args:
        options: With ``format``.
        document: The result as a JSON document.
        text: Writes it on a page.
        markdown: Writes it as Markdown.
        code: What the program ends with; 0 if not given.
    """

    def write(out: TextIO) -> None:
        if options.format == "json":
            from traceview.render.documents import dumps

            print(dumps(document()), file=out)
        elif options.format == "markdown":
            markdown(out)
        else:
            from traceview.render.page import Page

            text(Page(out))

    return Answer(ExitCode.OK if code is None else code, write)


def add_trace_options(parser: argparse.ArgumentParser, formats: Sequence[str] = ("text", "json")) -> None:
    """The traces and the options of every command that reads them; ``formats`` are the forms of the result."""
    parser.add_argument(
        "traces",
        metavar="TRACE",
        nargs="+",
        help="a trace file, a folder or a pattern; several are the ranks of one run",
    )
    parser.add_argument("--format", choices=formats, help="form of the result (default: text)")
    parser.add_argument(
        "--strict", action="store_true", help="fail if anything in the trace had to be skipped or repaired"
    )
    parser.add_argument("--no-progress", action="store_true", help="do not show progress while reading")
    add_debug_option(parser)


def add_stage_option(parser: argparse.ArgumentParser) -> None:
    """``--stage``, for every command that knows stages."""
    parser.add_argument(
        "--stage",
        metavar="NAME=REGEX",
        action="append",
        default=[],
        help="a stage of yours: work inside annotations, modules, Python functions, ops or XLA scopes that match; "
        "may be given several times",
    )


def given_stages(options: argparse.Namespace) -> tuple[StagePattern, ...]:
    """The stages the user gave.

    Raises:
        UsageError: one is not of the form, or no regular expression.
    """
    if not options.stage:
        return ()
    from traceview.stages import stage_patterns

    return stage_patterns(options.stage)


def add_debug_option(parser: argparse.ArgumentParser) -> None:
    """``--debug``, for every command."""
    parser.add_argument("--debug", action="store_true", help="on an error, show where in the program it arose")


def load_traces(options: argparse.Namespace) -> Timeline:
    """Read the traces the user gave, showing progress on a terminal."""
    from traceview.cli.progress import Progress
    from traceview.loading import load

    with Progress(sys.stderr, show=not options.no_progress) as progress:
        return load(options.traces, strict=options.strict, progress=progress)


def positive(text: str) -> int:
    """An option value that counts something."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return number


def version(text: str) -> str:
    """An option value that is a version."""
    from traceview.expectations.versions import is_version

    if not is_version(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a version such as 2.9 or 2.9.1")
    return text
