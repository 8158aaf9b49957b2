"""From a timeline to a file of another form, written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from traceview.errors import UsageError
from traceview.exporting.marks import find_marks

if TYPE_CHECKING:
    from traceview.exporting.marks import Marks
    from traceview.timeline import Timeline


class Form(StrEnum):
    """What a timeline can be written as."""

    PARQUET = "parquet"
    """Everything, to be loaded again by traceview or read by anything that reads Parquet."""
    PERFETTO = "perfetto"
    """For ui.perfetto.dev and ``trace_processor``."""
    CHROME = "chrome"
    """Trace Event JSON for chrome://tracing, Perfetto, and readers of the PyTorch profiler's traces."""


SUFFIXES: Final = {
    ".parquet": Form.PARQUET,
    ".pftrace": Form.PERFETTO, ".perfetto-trace": Form.PERFETTO, ".perfetto": Form.PERFETTO,
    ".pftrace.gz": Form.PERFETTO, ".perfetto-trace.gz": Form.PERFETTO,
    ".json": Form.CHROME, ".json.gz": Form.CHROME,
}  # fmt: skip
"""End of a file name to form; ``.gz`` packs."""


@dataclass(frozen=True, slots=True)
class Converted:
    """What was written.

    Attributes:
        path: The file.
        form: Its form.
        bytes: Its size.
        events: How many events of the timeline are in it: all.
        moved: How many slices lie on a track of their own, because they overlap others of theirs without nesting;
            ``None`` for a form without tracks.
    """

    path: Path
    form: Form
    bytes: int
    events: int
    moved: int | None


def form_of(path: str | os.PathLike[str], asked: str | None = None) -> Form:
    """The form that is meant.

    Args:
        path: The file to write.
        asked: What the user asked for; else the end of the name decides.

    Raises:
        UsageError: the name does not tell.
    """
    if asked is not None:
        return Form(asked)
    name = os.path.basename(os.fspath(path)).lower()
    for suffix, form in SUFFIXES.items():
        if name.endswith(suffix):
            return form
    raise UsageError(
        "no-form",
        where=os.fspath(path),
        why="the end of this name does not say what to write.",
        next_step="Let it end in .parquet, .pftrace or .json, or give --format parquet, perfetto or chrome.",
    )


def refuse_target(path: str | os.PathLike[str], *, replace: bool) -> None:
    """Check where to write before the work is done.

    Raises:
        UsageError: the file exists and may not be replaced, is none, or its folder does not exist.
    """
    place = os.path.realpath(path)
    why = next_step = ""
    if os.fspath(path) == "-":
        why, next_step = "a converted trace does not go to standard output.", "Name a file; ./- is one called so."
    elif os.path.isdir(place):
        why, next_step = "that is a folder.", "Name a file in it."
    elif os.path.exists(place) and not stat.S_ISREG(os.stat(place).st_mode):
        why, next_step = "that is no regular file.", "Name a file."
    elif os.path.exists(place) and not replace:
        why, next_step = "the file exists.", "Give --force to replace it, or another name."
    elif not os.path.isdir(os.path.dirname(place)):
        why, next_step = f"there is no folder {os.path.dirname(place)}.", "Create it first."
    if why:
        raise UsageError("cannot-write", where=os.fspath(path), why=why, next_step=next_step)


def convert(
    timeline: Timeline, path: str | os.PathLike[str], *, form: str | None = None, replace: bool = False
) -> Converted:
    """Write a timeline in another form.

    Args:
        timeline: As :func:`traceview.load` returned it.
        path: The file to write.
        form: One of :class:`Form`; the end of the name decides if it is not given.
        replace: Replace the file if it exists. A file that was loaded is never replaced.

    Raises:
        UsageError: see :func:`form_of` and :func:`refuse_target`; or the file was loaded.
        OSError: it cannot be written; what was there stays.
    """
    chosen = form_of(path, form)
    refuse_target(path, replace=replace)
    place = Path(os.path.realpath(path))
    for run in timeline.runs:
        if place.exists() and run.path.exists() and place.samefile(run.path):
            raise UsageError(
                "cannot-write", where=os.fspath(path), why="that file was read as input and would be overwritten.",
                next_step="Choose another name.",
            )  # fmt: skip
    new = place.with_name(f".{place.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        moved = _write(timeline, find_marks(timeline), chosen, new, packed=place.name.lower().endswith(".gz"))
        size = new.stat().st_size
        if place.exists():
            new.chmod(stat.S_IMODE(place.stat().st_mode))
        os.replace(new, place)
    finally:
        new.unlink(missing_ok=True)
    return Converted(Path(path), chosen, size, timeline.events.height, moved)


def _write(timeline: Timeline, marks: Marks, form: Form, path: Path, *, packed: bool) -> int | None:
    from traceview.exporting import chrome, names, perfetto

    if form is Form.PARQUET:
        from traceview import timeline_file

        timeline_file.write(timeline, path, more=names.named(timeline, marks))
        return None
    writer = perfetto.write if form is Form.PERFETTO else chrome.write
    with _opened(path, packed=packed) as out:
        return writer(timeline, marks, out)


def _opened(path: Path, *, packed: bool) -> BinaryIO:
    if not packed:
        return open(path, "xb")
    from isal import igzip

    packed_file: BinaryIO = igzip.open(path, "xb")  # type: ignore[no-untyped-call]  # isal leaves it untyped
    return packed_file
