"""``check-dispatch`` as workflow commands of GitHub Actions, which it shows as annotations of the changed files.

Facts used: a command is a line that starts with ``::`` after leading blanks, or holds ``##[`` anywhere; in its message
``%``, carriage return and line feed are escaped, in a property ``:`` and ``,`` too. Source: actions/runner
``src/Runner.Common/ActionCommand.cs``, read 2026-11. ``::stop-commands::TOKEN`` makes the runner obey nothing until
``::TOKEN::`` (GitHub's documentation of workflow commands). At most ten annotations of a level are shown per step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.render.outcome import Level, Remark, remarks, shortened
from traceview.render.units import counted

if TYPE_CHECKING:
    from traceview.render.outcome import Outcome

MOST_ANNOTATIONS: Final = 10
"""Annotations of one level; GitHub drops those after it without a word."""

MOST_TITLE: Final = 160

COMMANDS: Final = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


def render_github(found: Outcome) -> str:
    """Annotations, worst first, remarks on the check as plain lines, and the verdict as the last one."""
    lines: list[str] = []
    left_out: list[str] = []
    listed = remarks(found)
    for level in Level:
        of_level = [one for one in listed if one.level is level]
        lines += [annotation(one) for one in of_level[:MOST_ANNOTATIONS]]
        if len(of_level) > MOST_ANNOTATIONS:
            left_out.append(counted(len(of_level) - MOST_ANNOTATIONS, f"more {COMMANDS[level]}"))
    if left_out:
        lines.append(f"{', '.join(left_out)} in the summary")
    lines += [_inert(f"note: {note}") for note in found.notes[:MOST_ANNOTATIONS]]
    if len(found.notes) > MOST_ANNOTATIONS:
        lines.append(f"{counted(len(found.notes) - MOST_ANNOTATIONS, 'more note')} in the summary")
    lines.append(_inert(f"traceview check-dispatch: {found.verdict}: {found.summary}"))
    return "\n".join(lines) + "\n"


def annotation(remark: Remark) -> str:
    """One workflow command."""
    place = remark.places[0]
    properties = {"file": shortened(place.path)}
    if place.line is not None:
        properties["line"] = str(place.line)
    properties["title"] = shortened(f"{remark.rule}: {remark.title}", MOST_TITLE)
    # The title is cut short where it is shown, and not shown everywhere: the message says it in full.
    text = "\n".join([remark.title, *remark.details])
    inside = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{COMMANDS[remark.level]} {inside}::{_message(text)}"


def without_commands(text: str, token: str) -> str:
    """``text`` for a log of GitHub Actions, of which the runner obeys nothing.

    Args:
        text: May hold names from a trace at the start of a line.
        token: Random, so that the text cannot hold it.
    """
    return f"::stop-commands::{token}\n{text.rstrip()}\n::{token}::\n"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _inert(text: str) -> str:
    """A line that is no command; it starts with a letter."""
    return shortened(text).replace("##[", "# #[")
