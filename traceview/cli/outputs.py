"""Where results go: ``--output FORMAT[=PATH]``, and what GitHub Actions gets when nothing else is asked for."""

from __future__ import annotations

import argparse
import difflib
import io
import os
import secrets
import stat
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TextIO

from traceview.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.render.outputs import Checked

FORMATS: Final = ("text", "json", "markdown", "junit", "sarif", "github")

MOST_SUMMARY_BYTES: Final = 900_000
"""GitHub drops a job summary of more than 1 MiB as a whole; other commands of the step may write to it too."""

LEAST_SUMMARY_BYTES: Final = 4_000

OVERWRITES_INPUT: Final = "that file was read as input and would be overwritten."
OTHER_NAME: Final = "Choose another name."


@dataclass(frozen=True, slots=True)
class Output:
    """One output; ``path`` is ``None`` for standard output."""

    form: str
    path: str | None


def add_output_option(parser: argparse.ArgumentParser) -> None:
    """``--output``, beside the ``--format`` that every command has."""
    parser.add_argument(
        "--output",
        metavar="FORMAT=PATH",
        type=parse_output,
        action="append",
        default=[],
        help=f"write the result to a file, or to standard output without =PATH; repeatable; {', '.join(FORMATS)}",
    )


def parse_output(text: str) -> Output:
    """``FORMAT`` or ``FORMAT=PATH``; the path ``-`` is standard output."""
    form, given, path = text.partition("=")
    if form not in FORMATS:
        near = difflib.get_close_matches(form, FORMATS, 1)
        hint = f"did you mean {near[0]}?" if near else f"formats are {', '.join(FORMATS)}"
        raise argparse.ArgumentTypeError(f"{form!r} is no format: {hint}")
    if given and not path:
        raise argparse.ArgumentTypeError(f"{text!r} names no file; {form} alone writes to standard output")
    return Output(form, path if given and path != "-" else None)


def chosen_outputs(options: argparse.Namespace) -> tuple[Output, ...]:
    """The outputs asked for, checked before the trace is read.

    Raises:
        UsageError: two of them go to one place, or a file cannot be created where it should be.
    """
    asked = [Output(options.format, None)] if options.format else []
    outputs = (*asked, *options.output)
    to_stdout = [one.form for one in outputs if one.path is None]
    if len(to_stdout) > 1:
        raise UsageError(
            "one-stdout",
            where="--output",
            why=f"{' and '.join(to_stdout)} cannot both go to standard output.",
            next_step=f"Write one of them to a file: --output {to_stdout[-1]}=PATH.",
        )
    taken: dict[str, str] = {}
    for one in outputs:
        if one.path is None:
            continue
        place = os.path.realpath(one.path)
        if place in taken and not _is_special(place):
            raise _refused(one, f"{taken[place]} is written to the same file.", "Give each output its own.")
        taken[place] = one.form
        if os.path.isdir(place):
            raise _refused(one, "that is a folder.", "Name a file in it.")
        folder = os.path.dirname(place)
        if not os.path.isdir(folder):
            raise _refused(one, f"there is no folder {os.path.dirname(one.path) or folder}.", "Create it first.")
    return outputs


def refuse_inputs(outputs: Sequence[Output], inputs: Iterable[str | None]) -> None:
    """Never write over what was read.

    Raises:
        UsageError: an output is one of the files read.
    """
    read = [path for path in inputs if path]
    for one in outputs:
        if one.path is not None and is_input(one.path, read):
            raise _refused(one, OVERWRITES_INPUT, OTHER_NAME)


def is_input(path: str, inputs: Iterable[str]) -> bool:
    """Whether writing to ``path`` would change something that is read.

    That is the same file by any name, or a file in a folder that is read as one trace.
    """
    place = os.path.realpath(path)
    for one in inputs:
        read = os.path.realpath(one)
        if place == read or (os.path.isdir(read) and os.path.exists(place) and place.startswith(read + os.sep)):
            return True
        try:
            if os.path.samefile(place, read):  # A hard link, or a file system that ignores capitals.
                return True
        except (OSError, ValueError):
            continue
    return False


def write_outputs(outputs: Sequence[Output], checked: Checked, out: TextIO) -> None:
    """Write all outputs: files first, as the reader of standard output may go away early.

    Raises:
        UsageError: a file could not be written; everything else is.
    """
    from traceview.render.outputs import render, write

    failures: list[UsageError] = []
    for one in outputs:
        if one.path is None:
            continue
        try:
            write_file(one.path, render(one.form, checked))
        except OSError as error:
            failures.append(_refused(one, f"cannot write: {error.strerror or error}.", ""))
    in_log = _is_github_log(out)
    form = next((one.form for one in outputs if one.path is None), None)
    if form is None and in_log:
        _append_summary(checked)
        _write_log(checked, out)
        out.write(render("github", checked))
    elif form in {None, "text"} and in_log:
        _write_log(checked, out)
    else:
        write(form or "text", checked, out)
    if failures:
        raise failures[0]


def write_file(path: str, text: str) -> None:
    """Replace a file at once: a reader sees the old text or the new, never a part.

    A link is followed; a pipe or a device is written to as it is.

    Raises:
        OSError: it cannot be written; what was there stays.
    """
    data = text.encode("utf-8", "backslashreplace")
    place = os.path.realpath(path)
    if _is_special(place):
        with open(path, "wb") as file:
            file.write(data)
        return
    new = os.path.join(os.path.dirname(place), f".{os.path.basename(place)[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        with open(new, "xb") as file:
            file.write(data)
        if os.path.exists(place):
            os.chmod(new, stat.S_IMODE(os.stat(place).st_mode))
        os.replace(new, place)
    finally:
        if os.path.exists(new):
            os.unlink(new)


def _is_special(place: str) -> bool:
    """A pipe, a device, or anything else that must not be replaced by a file."""
    try:
        mode = os.stat(place).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _refused(output: Output, why: str, next_step: str) -> UsageError:
    return UsageError("cannot-write", where=f"--output {output.form}={output.path}", why=why, next_step=next_step)


def _is_github_log(out: TextIO) -> bool:
    """``out`` is what a step of GitHub Actions prints, and not a file that the step writes."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return False
    try:
        return not stat.S_ISREG(os.fstat(out.fileno()).st_mode)
    except (OSError, ValueError):  # Without a descriptor; io.UnsupportedOperation is both.
        return True


def _write_log(checked: Checked, out: TextIO) -> None:
    """Text in a log whose reader obeys commands in it."""
    from traceview.render.github import without_commands
    from traceview.render.outputs import write

    text = io.StringIO()
    write("text", checked, text)
    out.write(without_commands(text.getvalue(), secrets.token_hex(16)))


def _append_summary(checked: Checked) -> None:
    """Add the report to the job summary; if that cannot be done, say so: the verdict is no worse for it."""
    from traceview.render.outputs import summary_markdown

    path = os.environ.get("GITHUB_STEP_SUMMARY", "")
    if not path:
        _note("GITHUB_STEP_SUMMARY is not set, so no job summary is written")
        return
    try:
        # Opened without creating it: the runner made the file, and one made here would be read by nobody.
        with open(path, "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            broken_off = False
            if size:
                file.seek(-1, os.SEEK_END)
                broken_off = file.read(1) != b"\n"
            room = MOST_SUMMARY_BYTES - size - 2
            if room < LEAST_SUMMARY_BYTES:
                _note(f"the job summary is {size:,} bytes long already, so nothing is added to it")
                return
            text = ("\n" if broken_off else "") + ("\n" if size else "") + summary_markdown(checked, room)
            data = text.encode("utf-8", "backslashreplace")
        with open(os.open(path, os.O_WRONLY | os.O_APPEND), "ab") as file:
            file.write(data)
    except OSError as error:
        _note(f"cannot write the job summary: {error.strerror or error}")


def _note(text: str) -> None:
    print(f"traceview: note: {text}.", file=sys.stderr)
