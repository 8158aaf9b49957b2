"""Open a trace: drop it, name its path, or take a sample."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import streamlit as st

from traceview.dashboards import state, ui
from traceview.dashboards.library import State
from traceview.dashboards.samples import KINDS, SAMPLES, sample_folder, sample_paths
from traceview.dashboards.uploads import MOST_UPLOAD_MB, without_folders
from traceview.errors import TraceviewError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from traceview.dashboards.library import Job

_PROBLEM: Final = "problem"
"""Key in the session of what went wrong last."""

_STATES: Final = {
    State.WORKING: ":material/hourglass_top: being read",
    State.READY: ":material/check_circle: ready",
    State.FAILED: ":material/cancel: could not be read",
    State.LEFT: ":material/block: stopped",
}


def page() -> None:
    """The page."""
    # What goes wrong stands at the top, where it is seen without scrolling.
    with st.container(key="problems"):
        told = st.session_state.pop(_PROBLEM, None)
        if told:
            ui.problem(told)
    _open_given()
    st.markdown("### Which kernel actually ran, where the time went, and why")
    left, right = st.columns([3, 2], gap="large")
    with left:
        _drop()
        _path()
    with right:
        _samples()
    _known()


def _open_given() -> None:
    """The traces of the command line, once in a session, unless a link asks for another."""
    given = state.traces_given()
    if given and not st.session_state.get("given"):
        st.session_state["given"] = True
        if not st.query_params.get(state.TRACE):
            _open(given)


def _drop() -> None:
    st.markdown("#### Drop a trace")
    st.caption(
        "PyTorch profiler (.json, .json.gz), Nsight Systems (SQLite export) or XProf (.xplane.pb, .trace.json.gz), "
        "told by content, not by name. Several files are the ranks of one run."
    )
    generation = st.session_state.setdefault("uploader", 0)
    files = st.file_uploader(
        "Drop files here, or choose them",
        accept_multiple_files=True,
        max_upload_size=MOST_UPLOAD_MB,
        key=f"files-{generation}",
    )
    with st.expander("A folder"):
        folder = st.file_uploader(
            "Drop a folder here, or choose it",
            accept_multiple_files="directory",
            max_upload_size=MOST_UPLOAD_MB,
            key=f"folder-{generation}",
        )
    dropped = [*files, *folder]
    if dropped:
        # Widgets with new keys forget the files, and with them Streamlit does.
        st.session_state["uploader"] = generation + 1
        _take(dropped)
    st.caption(
        f"Up to {MOST_UPLOAD_MB // 1024} GB a file; it goes to a folder of this machine that is removed with your "
        "session. For larger ones give the path."
    )


def _path() -> None:
    st.markdown("#### Or give its path")
    with st.form("path", border=False):
        path = st.text_input(
            "File, folder or pattern on this machine, of any size", placeholder="/data/run/trace.json.gz", key="path"
        )
        if st.form_submit_button("Open") and path.strip():
            _open([os.path.expanduser(path.strip())])


def _samples() -> None:
    st.markdown("#### Or take a sample")
    folder = sample_folder()
    if folder is None:
        st.caption("The samples are not installed; they are in the folder sample_traces of the repository.")
        return
    for kind, words in KINDS.items():
        st.caption(words)
        for at, sample in enumerate(SAMPLES):
            if sample.kind == kind and st.button(sample.title, key=f"sample-{at}", width="stretch"):
                _open(sample_paths(sample, folder), title=sample.title)


def _known() -> None:
    jobs = state.library().jobs
    if not jobs:
        return
    st.markdown("#### Traces of this server")
    for job in jobs:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            ui.text(job.title)
            st.markdown(_STATES[job.state])
            if job.opened is not None:
                ui.text(f"{job.opened.report.trace.producer}, {job.opened.report.trace.events:,} events")
            st.page_link(
                st.session_state["pages"]["overview"],
                label="Show",
                icon=":material/arrow_forward:",
                query_params={state.TRACE: job.id},
            )


def _take(files: Sequence[UploadedFile]) -> None:
    uploads = state.uploads()
    folder, paths = uploads.write([(one.name, one) for one in files])
    state.drop_from_memory(files)
    try:
        with st.spinner("Looking at the files …"):
            job = state.open_paths([folder] if len(paths) > 1 else paths)
    except TraceviewError as error:
        uploads.remove(folder)
        _tell([without_folders(line).replace(folder, "the upload") for line in error.lines])
        return
    uploads.keep(job.id, folder)
    _go(job)


def _open(paths: Sequence[str], *, title: str | None = None) -> None:
    try:
        with st.spinner("Looking at the files …"):
            job = state.open_paths(paths, title=title)
    except TraceviewError as error:
        _tell(error.lines)
        return
    _go(job)


def _tell(lines: Sequence[str]) -> None:
    st.session_state[_PROBLEM] = list(lines)
    st.rerun()


def _go(job: Job) -> None:
    st.switch_page(st.session_state["pages"]["overview"], query_params={state.TRACE: job.id})
