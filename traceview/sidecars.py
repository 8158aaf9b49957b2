"""The file beside a trace in which ``traceview.capture`` wrote what the format of the trace has no place for."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from traceview.capture_info import MOST_BYTES, SUFFIX, ReadCapture, read_text
from traceview.timeline import Note

if TYPE_CHECKING:
    from traceview.timeline import Timeline


def sidecar_of(trace: str | os.PathLike[str]) -> Path:
    """Where the sidecar of a trace lies: ``run.xplane.pb`` has ``run.xplane.pb.traceview.json``."""
    path = Path(trace)
    return path.with_name(path.name + SUFFIX)


def is_sidecar(path: Path) -> bool:
    """Whether a file is a sidecar by its name. It is no trace, and no stranger among traces either."""
    return path.name.endswith(SUFFIX)


def attach(timeline: Timeline, trace: Path) -> Timeline:
    """The timeline of one file with what its sidecar says, if it has one; a bad sidecar is one note."""
    path = sidecar_of(trace) if trace.name else trace
    if not trace.name or not os.path.lexists(path):
        return timeline
    read = _read(path)
    found = [f"{path.name} beside the trace: {read.problem}."] if read.problem else []
    run = timeline.runs[0]
    if read.info is not None:
        if run.capture is None:
            metadata = {**run.metadata, "capture": read.info.document()}
            timeline = replace(timeline, runs=(replace(run, metadata=metadata), *timeline.runs[1:]))
        elif run.capture.session != read.info.session:
            found.append(f"{path.name} is of another recording than the trace, which holds its own: it is not used.")
    notes = [Note("capture-unreadable", text) for text in found]
    return replace(timeline, report=timeline.report.with_notes(*notes)) if notes else timeline


def _read(path: Path) -> ReadCapture:
    try:
        if not path.is_file():
            return ReadCapture(None, "it is no regular file")
        with open(path, "rb") as file:
            return read_text(file.read(MOST_BYTES + 1))
    except OSError as error:
        return ReadCapture(None, f"it cannot be read: {error.strerror or error}")
