"""Where a page goes: a file that is not there yet, and never one that is read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from traceview.cli.outputs import OTHER_NAME, OVERWRITES_INPUT, is_input, write_file
from traceview.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def checked_path(path: str | None, traces: Sequence[str], *, force: bool) -> str | None:
    """The file to write, checked before the trace is read.

    Args:
        path: As given; ``None`` if no page is asked for.
        traces: The traces as given.
        force: Whether a file that exists may be replaced.

    Raises:
        UsageError: it cannot be written there, would write over a trace, or exists.
    """
    if path is None:
        if force:
            raise UsageError("needs-html", where="--force", why="it belongs to --html.")
        return None
    place = os.path.realpath(path)
    if not path or os.path.isdir(place):
        raise _refused(path, "that is a folder.", "Name a file in it.")
    if is_input(path, [trace for trace in traces if not os.path.isdir(trace)]):
        raise _refused(path, OVERWRITES_INPUT, OTHER_NAME)
    if not os.path.isdir(os.path.dirname(place)):
        raise _refused(path, f"there is no folder {os.path.dirname(path)}.", "Create it first.")
    if os.path.exists(place) and not force:
        raise _refused(path, "the file exists.", "Choose another name, or replace it with --force.")
    return path


def write_page(path: str, text: str, read: Iterable[str]) -> None:
    """Write a page.

    Args:
        path: Where, see :func:`checked_path`.
        text: The page.
        read: The files that were read: a folder or a pattern says only after reading which it means.

    Raises:
        UsageError: it cannot be written, or would write over one of them.
    """
    if is_input(path, read):
        raise _refused(path, OVERWRITES_INPUT, OTHER_NAME)
    try:
        write_file(path, text)
    except OSError as error:
        raise _refused(path, f"cannot write: {error.strerror or error}.", "") from None


def wrote_page(path: str) -> str:
    """That a page was written, one line; without the size where it went to a pipe or a device."""
    from traceview.render.names import plain
    from traceview.render.transfer_text import size

    length = f", {size(os.path.getsize(path))}" if os.path.isfile(path) else ""
    return f"wrote {plain(path)}: the report as one page{length}. Open it in a browser, or send it."


def _refused(path: str, why: str, next_step: str) -> UsageError:
    return UsageError("cannot-write", where=f"--html {path}", why=why, next_step=next_step)
