"""Open a trace: drop it, name its path, or take a sample."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import streamlit as st

from traceview import samples
from traceview.dashboards import state, ui
from traceview.dashboards.pages import compare
from traceview.dashboards.shelf import State
from traceview.dashboards.uploads import MOST_UPLOAD_MB, without_folders
from traceview.dashboards.views.samples import FORMATS, featured
from traceview.errors import TraceviewError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from traceview.dashboards.shelf import Job
    from traceview.dashboards.views.samples import Story
    from traceview.samples import Sample

_PROBLEM: Final = "problem"
"""Key in the session of what went wrong last."""

_KINDS: Final = {
    True: "Authored: written by a program, with chosen times. They show what traceview says, not how fast anything is.",
    False: "Recorded: real recordings, made on a CPU.",
}
"""What is said of samples that were authored, and of those that were not."""

_LISTED: Final = 6
"""Traces of the server that are listed at once; the others are folded."""

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
    try:
        found, stories = samples.catalogue(), samples.pairs()
    except TraceviewError as error:
        st.caption(error.why)
        return
    told = featured(found, stories)
    if all(sample.authored for story in told for sample in story.samples):
        st.caption("Authored: written by a program, with chosen times. Real recordings are among all samples.")
    for story in told:
        _story(story)
    with st.expander(f"All {len(found)} samples", icon=":material/list:"):
        for authored, words in _KINDS.items():
            st.caption(words)
            for sample in found:
                if sample.authored == authored and st.button(
                    f"{sample.title} ({sample.device})", key=f"sample-{sample.name}", help=sample.story, width="stretch"
                ):
                    _open_sample(sample)


def _story(story: Story) -> None:
    """A sample, or a pair of them, with what it shows."""
    first = story.samples[0]
    with st.container(border=True, key=f"card-{first.name}", gap="xsmall"):
        st.markdown(f"**{first.title}**")
        st.caption(f"{first.device}, {FORMATS.get(first.format, first.format)}. {story.words}")
        with st.container(horizontal=True, gap="small"):
            labels = ("Before", "After") if len(story.samples) > 1 else ("Open the sample",)
            for label, sample in zip(labels, story.samples, strict=True):
                if st.button(label, key=f"story-{label}-{sample.name}", help=sample.story):
                    _open_sample(sample)
            if len(story.samples) > 1 and st.button(
                "Compare the pair", key=f"pair-{story.pair}", icon=":material/compare_arrows:"
            ):
                _open_pair(*story.samples)


def _open_sample(sample: Sample) -> None:
    _open([str(path) for path in sample.paths], title=sample.title)


def _open_pair(before: Sample, after: Sample) -> None:
    jobs = []
    for sample in (before, after):
        try:
            jobs.append(state.shelf().open([str(path) for path in sample.paths], title=sample.title))
        except TraceviewError as error:
            _tell(error.lines)
            return
    state.show(jobs[0])
    compare.choose(jobs[0].id, jobs[1].id)
    where = {state.TRACE: jobs[0].id, "before": jobs[0].id, "after": jobs[1].id}
    st.switch_page(st.session_state["pages"]["compare"], query_params=where)


def _known() -> None:
    jobs = state.shelf().jobs
    if not jobs:
        return
    st.markdown("#### Traces of this server")
    for job in jobs[:_LISTED]:
        _one_known(job)
    if len(jobs) > _LISTED:
        with st.expander(f"{len(jobs) - _LISTED} opened before these", icon=":material/history:"):
            for job in jobs[_LISTED:]:
                _one_known(job)


def _one_known(job: Job) -> None:
    with st.container(border=True, horizontal=True, vertical_alignment="center", key=f"known-{job.id}"):
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
        st.button(
            "Remove",
            key=f"remove-{job.id}",
            icon=":material/close:",
            type="tertiary",
            help="Let this server forget the trace, in every window that shows it. Its file stays; an upload goes.",
            on_click=_remove,
            args=(job.id,),
        )


def _remove(trace_id: str) -> None:
    state.shelf().forget(trace_id)
    state.uploads().forget(trace_id)
    if state.trace_id() == trace_id:
        state.close()


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
