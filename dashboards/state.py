"""What a session looks at: the open trace, kept in the address so that a reload or a link shows the same."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Final

import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from traceview.dashboards.shelf import Job, Opened, Shelf, State
from traceview.dashboards.uploads import Uploads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlit.runtime.uploaded_file_manager import UploadedFile

TRACE: Final = "trace"
"""The query parameter, and the key in the session, of the id of the open trace."""

TRACES_VARIABLE: Final = "TRACEVIEW_DASHBOARD_TRACES"
"""Paths given on the command line, as a JSON array."""

WAIT_S = 2.0
"""A small trace is ready within this time, and needs no page that shows progress."""


@st.cache_resource(show_spinner=False)
def shelf() -> Shelf:
    """The traces that this server has open, for all sessions."""
    return Shelf()


def _end_session(uploads: Uploads) -> None:
    uploads.clear()


@st.cache_resource(scope="session", show_spinner=False, on_release=_end_session)
def uploads() -> Uploads:
    """The files that this session has uploaded; they go when it ends."""
    return Uploads()


def drop_from_memory(files: Sequence[UploadedFile]) -> None:
    """Let Streamlit forget the content of files that are on disk now; it would keep it as long as the session."""
    context = get_script_run_ctx()
    # Another manager may keep files elsewhere; only this one holds them in memory, and only it can let go of one.
    if context is None or not isinstance(context.uploaded_file_mgr, MemoryUploadedFileManager):
        return
    for one in files:
        context.uploaded_file_mgr.remove_file(context.session_id, one.file_id)


def traces_given() -> tuple[str, ...]:
    """The traces of the command line."""
    text = os.environ.get(TRACES_VARIABLE, "")
    return tuple(json.loads(text)) if text else ()


def trace_id() -> str | None:
    """The id of the open trace: that of the address, else the one this session opened last."""
    given = st.query_params.get(TRACE)
    if given:
        st.session_state[TRACE] = given
    known: str | None = st.session_state.get(TRACE)
    return known


def to_address(**wanted: str | None) -> None:
    """Keep in the address what a page shows, together with the open trace: moving to another page drops both.

    A browser takes every change for a place to go back to, so this makes one change at most.

    Args:
        wanted: Parameters by name; one that is ``None`` or empty is taken away, others stay as they are.
    """
    now = st.query_params.to_dict()
    new = {**now, **wanted}
    if TRACE not in wanted:
        new[TRACE] = st.session_state.get(TRACE) or now.get(TRACE)
    kept = {name: value for name, value in new.items() if value}
    if kept != now:
        st.query_params.from_dict(kept)


def show(job: Job) -> None:
    """Make a trace the open one."""
    st.session_state[TRACE] = job.id
    st.query_params[TRACE] = job.id


def close() -> None:
    """Look at no trace."""
    st.session_state.pop(TRACE, None)
    st.query_params.pop(TRACE, None)


def open_paths(paths: Sequence[str], *, title: str | None = None) -> Job:
    """Start to read a trace and make it the open one.

    Raises:
        TraceviewError: it is none.
    """
    job = shelf().open(paths, title=title)
    show(job)
    return job


def current_job() -> Job | None:
    """The open trace, read or being read; ``None`` if there is none, or if this server does not know it.

    Raises:
        TraceviewError: the trace of the command line is none.
    """
    known = trace_id()
    job = None if known is None else shelf().get(known)
    given = traces_given()
    if job is None and given:
        # A link to it still holds after the server was started anew.
        own = shelf().open(given)
        if known is None:
            show(own)
        if known in {None, own.id}:
            return own
    return job


def ready(job: Job, wait_s: float | None = None) -> Opened | None:
    """The result of a job, if it comes within ``wait_s``, else soon (:data:`WAIT_S`)."""
    job.done.wait(WAIT_S if wait_s is None else wait_s)
    return job.opened if job.state is State.READY else None
