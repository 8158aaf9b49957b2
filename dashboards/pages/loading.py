"""What stands on a page while its trace is not there: progress, a failure, or the way to open one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import streamlit as st

from traceview.dashboards import state, ui
from traceview.dashboards.shelf import Job, Opened, State
from traceview.dashboards.uploads import without_folders

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.report import Report


def opened(meanwhile: Callable[[Report, str, Callable[[], None]], None] | None = None) -> Opened:
    """The open trace; if it is not there yet, the page ends here with the reason, and goes on when it is.

    Args:
        meanwhile: Shows what is known of a trace, given its title, while what ran is still being judged; calls its last
            argument where the page is to say how far that is.
    """
    job = state.current_job()
    if job is None:
        _none_open()
        st.stop()
    found = state.ready(job)
    if found is not None:
        return found
    if job.state is State.WORKING:
        _progress(job, meanwhile)
    elif job.state is State.READY:
        # It had to make room for others in this very moment: ask for it again.
        st.rerun()
    elif job.state is State.FAILED:
        ui.problem(without_folders(line) for line in job.error)
        _to_open("Open another trace")
    else:
        st.info("Reading this trace was stopped.")
        _to_open("Open a trace")
    st.stop()
    raise AssertionError("st.stop does not return")


def _none_open() -> None:
    if st.query_params.get(state.TRACE):
        st.info(
            "This server does not have the trace of this link: it was started anew, or the upload was removed with "
            "its session. Open the file again; the same content gets the same link.",
            icon=":material/link_off:",
        )
    else:
        st.info("No trace is open.", icon=":material/folder_open:")
    _to_open("Open a trace")


def _to_open(label: str) -> None:
    st.page_link(st.session_state["pages"]["open"], label=label, icon=":material/folder_open:")


@st.fragment(run_every=0.5)
def _progress(job: Job, meanwhile: Callable[[Report, str, Callable[[], None]], None] | None) -> None:
    if job.done.is_set():
        st.rerun()
    report = job.report
    if report is not None and meanwhile is not None:
        # What is known stands where the answer will stand.
        meanwhile(report, job.title, lambda: _judging(job))
        return
    st.markdown("#### Reading the trace" if report is None else "#### Judging what ran")
    ui.text(job.title)
    st.progress(min(job.share, 1.0), text=f"{job.phase} …")
    st.caption("This goes on while you look at other pages or open another trace.")
    _stop(job, "secondary")


def _judging(job: Job) -> None:
    """One line, as high as the verdict that will take its place."""
    with st.container(horizontal=True, vertical_alignment="center", key="judging"):
        st.markdown(f":material/hourglass_top: {job.phase} …")
        _stop(job, "tertiary")


def _stop(job: Job, kind: Literal["secondary", "tertiary"]) -> None:
    if st.button("Stop reading", icon=":material/close:", type=kind):
        state.shelf().leave(job.id)
        st.rerun()
