"""Open a trace: drop it, name its path, or take a sample."""

from __future__ import annotations

import os

import streamlit as st

from traceview.dashboards import state, ui
from traceview.dashboards.uploads import MOST_UPLOAD_MB
from traceview.errors import TraceviewError


def page() -> None:
    """The page."""
    given = state.traces_given()
    if given and "given" not in st.session_state:
        st.session_state["given"] = True
        if not st.query_params.get(state.TRACE):
            state.open_paths(given)
            st.switch_page(st.session_state["pages"]["overview"])
    st.markdown("## Which kernel actually ran, where the time went, and why")
    generation = st.session_state.setdefault("uploader", 0)
    dropped = st.file_uploader(
        "Drop a trace of the PyTorch profiler, Nsight Systems (SQLite export) or XProf; several files are the ranks of "
        "one run",
        accept_multiple_files=True,
        max_upload_size=MOST_UPLOAD_MB,
        key=f"uploader-{generation}",
    )
    if dropped:
        st.session_state["uploader"] = generation + 1
        _take([(one.name, one) for one in dropped])
    with st.form("path", border=False):
        path = st.text_input("Or the path of a file or folder on this machine, of any size")
        if st.form_submit_button("Open") and path.strip():
            _open([os.path.expanduser(path.strip())])


def _take(files: list) -> None:
    uploads = state.uploads()
    folder, paths = uploads.write(files)
    job = _open(paths, go=False)
    if job is not None:
        uploads.keep(job.id, folder)
        st.switch_page(st.session_state["pages"]["overview"])


def _open(paths, *, go=True):
    try:
        job = state.open_paths(paths)
    except TraceviewError as error:
        ui.problem(error.lines)
        return None
    if go:
        st.switch_page(st.session_state["pages"]["overview"])
    return job
