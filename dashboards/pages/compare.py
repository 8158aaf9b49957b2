"""Two open traces side by side: whether they can be compared, whether a step got faster, and by what."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import streamlit as st

from traceview.compare import Comparison, Side, compare_sides, side
from traceview.dashboards import drawings, state, ui
from traceview.dashboards.shelf import State
from traceview.dashboards.uploads import MOST_UPLOAD_MB, without_folders
from traceview.dashboards.views import compare as view
from traceview.errors import TraceviewError, UsageError
from traceview.render.compare_document import compare_document
from traceview.render.compare_text import headline, print_comparison
from traceview.render.documents import dumps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlit.delta_generator import DeltaGenerator
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from traceview.dashboards.shelf import Job, Opened

_BEFORE: Final = "before"
_AFTER: Final = "after"
"""The query parameters of the two traces, so that a link shows the same comparison."""

_JUST_OPENED: Final = "compare-just-opened"
"""Key in the session of the trace that was opened on this page last."""


def page() -> None:
    """The page."""
    jobs = {job.id: job for job in state.shelf().jobs if job.state in {State.READY, State.WORKING}}
    for name in (_BEFORE, _AFTER):
        # A trace that the server let go of is read again.
        known = st.query_params.get(name)
        job = state.shelf().get(known) if known and known not in jobs else None
        if job is not None:
            jobs[job.id] = job
    problems = st.container()
    if _not_here(jobs):
        # Two other traces in their place would be an answer to another question.
        with problems:
            st.info(
                "This server does not have every trace of this link: it was started anew, or an upload was removed "
                "with its session. Open the files again; the same content gets the same link.",
                icon=":material/link_off:",
            )
            if st.button("Compare traces that are open"):
                state.to_address(**{_BEFORE: None, _AFTER: None})
                st.rerun()
        _add(problems, expanded=True)
        return
    if len(jobs) < 2:
        st.info("Open two traces to compare them: one before a change, one after it.", icon=":material/compare_arrows:")
        _add(problems, expanded=True)
        return
    before, after = _choose(jobs)
    _add(problems, expanded=False)
    if before == after:
        st.info("Choose two different traces.", icon=":material/compare_arrows:")
        return
    traces = [_ready(before), _ready(after)]
    if traces[0] is None or traces[1] is None:
        return
    with st.spinner("Comparing"):
        found = compare_sides(_side(before, traces[0]), _side(after, traces[1]))
    _show(found)


def _not_here(jobs: Mapping[str, Job]) -> list[str]:
    """What the address asks to compare and the server does not know, unless the reader has chosen something since."""
    if _JUST_OPENED in st.session_state:
        return []
    chosen = {name: st.session_state.get(f"compare-{name}") in jobs for name in (_BEFORE, _AFTER)}
    asked = {name: st.query_params.get(name) for name in (_BEFORE, _AFTER)}
    return [one for name, one in asked.items() if one and one not in jobs and not chosen[name]]


def _choose(jobs: dict[str, Job]) -> tuple[str, str]:
    """Which is before and which after: what was just opened, those of the address, else as they were opened."""
    ids = list(jobs)
    current = state.trace_id()
    one = current if current in jobs else ids[0]
    other = next(trace for trace in ids if trace != one)
    # Whoever opens two traces opens the one before the change first.
    before, after = sorted((one, other), key=lambda trace: jobs[trace].number)
    just = st.session_state.pop(_JUST_OPENED, None)
    if just in jobs:
        # What is looked at and what was opened beside it belong together, whatever else the server has.
        st.session_state[f"compare-{_AFTER}"] = just
        if current in jobs and current != just:
            st.session_state[f"compare-{_BEFORE}"] = current
    chosen = []
    left, right, turn = st.columns([5, 5, 1], vertical_alignment="bottom")
    with turn:
        st.button(
            "Swap", icon=":material/swap_horiz:", on_click=_swap, width="stretch", help="Take the one for the other"
        )
    for column, name, default in zip((left, right), (_BEFORE, _AFTER), (before, after), strict=True):
        key = f"compare-{name}"
        if st.session_state.get(key) not in jobs:
            given = st.query_params.get(name)
            st.session_state[key] = given if given in jobs else default
        with column:
            # Titles are file names: options are plain text.
            one = st.selectbox(
                name.capitalize(), ids, format_func=lambda trace: f"{jobs[trace].title} ({trace[:6]})", key=key
            )
        chosen.append(one)
    state.to_address(**dict(zip((_BEFORE, _AFTER), chosen, strict=True)))
    return chosen[0], chosen[1]


def _swap() -> None:
    keys = (f"compare-{_BEFORE}", f"compare-{_AFTER}")
    known = [st.session_state.get(key) for key in keys]
    for key, value in zip(keys, reversed(known), strict=True):
        st.session_state[key] = value


def choose(before: str, after: str) -> None:
    """Compare two open traces on the next run of this page."""
    st.session_state[f"compare-{_BEFORE}"] = before
    st.session_state[f"compare-{_AFTER}"] = after


def _add(problems: DeltaGenerator, *, expanded: bool) -> None:
    """A way to open one more trace without leaving the page; it becomes the one after the change."""
    with st.expander("Open another trace", expanded=expanded, icon=":material/folder_open:"):
        generation = st.session_state.setdefault("compare-uploader", 0)
        files = st.file_uploader(
            "Drop files here, or choose them; several are the ranks of one run",
            accept_multiple_files=True,
            max_upload_size=MOST_UPLOAD_MB,
            key=f"compare-files-{generation}",
        )
        with st.form("compare-open", border=False):
            path = st.text_input("Or give a file, folder or pattern on this machine", key="compare-path")
            asked = st.form_submit_button("Open")
    try:
        if files:
            st.session_state["compare-uploader"] = generation + 1
            job = _take(files)
        elif asked and path.strip():
            job = state.shelf().open([os.path.expanduser(path.strip())])
        else:
            return
    except TraceviewError as error:
        with problems:
            ui.problem(error.lines)
        return
    st.session_state[_JUST_OPENED] = job.id
    st.rerun()


def _take(files: Sequence[UploadedFile]) -> Job:
    """Open an upload.

    Raises:
        TraceviewError: it is no trace.
    """
    uploads = state.uploads()
    folder, paths = uploads.write([(one.name, one) for one in files])
    state.drop_from_memory(files)
    try:
        job = state.shelf().open([folder] if len(paths) > 1 else paths, title=os.path.basename(paths[0]))
    except TraceviewError as error:
        uploads.remove(folder)
        where = without_folders(error.where).replace(folder, "the upload")
        raise UsageError(error.code, where=where, why=error.why, next_step=error.next_step) from None
    uploads.keep(job.id, folder)
    return job


def _ready(trace_id: str) -> Opened | None:
    """A trace, if it is there; else the page says what it waits for."""
    job = state.shelf().get(trace_id)
    found = None if job is None else state.ready(job)
    if job is not None and found is None:
        if job.state is State.FAILED:
            ui.problem(job.error)
        elif job.state is State.LEFT:
            st.info("Reading this trace was stopped. Open it again.", icon=":material/block:")
        else:
            _wait(job)
    return found


@st.fragment(run_every=0.5)
def _wait(job: Job) -> None:
    """How far the reading is; the page goes on when it is done."""
    if job.done.is_set():
        st.rerun()
    with st.container(key=f"waits-{job.id}"):
        ui.text(job.title)
        st.progress(min(job.share, 1.0), text=f"{job.phase} …")


@st.cache_resource(max_entries=4, show_spinner=False)
def _side(trace_id: str, _trace: Opened) -> Side:
    """The analysis of one side; known by the id of its trace alone."""
    assert trace_id
    return side(_trace.timeline)


def _show(found: Comparison) -> None:
    icon, words = view.COMPARABLE[found.comparable]
    differ, alike = view.conditions(found)
    with st.container(border=True):
        st.markdown(f"{ui.ICONS[icon]} **{words}**")
        for text in differ:
            ui.text(text)
        with st.expander("What is alike"):
            for text in alike:
                ui.text(text)
    ui.text(headline(found), kind="headline", key="compared")
    shown = view.figures(found)
    if shown:
        ui.figures(shown)
    bars = view.bars(found)
    if bars is not None:
        st.markdown("#### A step, before and after (mean)")
        drawings.steps(bars, "compare", title="A step before and after")
    _tables(found)
    with st.container(horizontal=True):
        for form, mime, make in (
            ("JSON", "application/json", partial(_json, found)),
            ("Markdown", "text/markdown", partial(_markdown, found)),
        ):
            st.download_button(
                form,
                make,
                f"traceview-compare.{'md' if form == 'Markdown' else 'json'}",
                mime,
                icon=":material/download:",
                on_click="ignore",
            )


def _tables(found: Comparison) -> None:
    st.markdown("#### What ran instead")
    dispatches = view.dispatch_table(found)
    if dispatches is None:
        st.caption("The same implementations ran in both.")
    else:
        ui.table(dispatches)
    st.markdown("#### What a step goes to on the device")
    if found.parts is None:
        ui.not_recorded("Parts of a step", ["Device work is not recorded in both traces."])
    else:
        ui.table(view.delta_table(found.parts, "part", ("Of one step, mean; each column adds up to the mean step.",)))
    st.markdown("#### Stages")
    stages = view.stages_table(found)
    if stages is None:
        ui.not_recorded("Stages", ["A trace has no stage."])
    else:
        ui.table(stages)
    st.markdown("#### Kernels, largest difference first")
    if found.kernels:
        ui.table(view.kernels_table(found))
    else:
        ui.not_recorded("Kernels", ["Neither trace has device work in its steps."])
    ui.facts([("compiled after warm-up", view.recompiles_line(found))])


def _json(found: Comparison) -> str:
    return dumps(compare_document(_to_share(found), 0))


def _markdown(found: Comparison) -> str:
    out = io.StringIO()
    print_comparison(_to_share(found), out, limit=40)
    return out.getvalue()


def _to_share(found: Comparison) -> Comparison:
    """Without the folders of uploads: where one lies means nothing to whoever reads the file."""
    sides = []
    for one in (found.before, found.after):
        files = tuple(without_folders(name) for name in one.trace.files)
        sides.append(replace(one, setting=replace(one.setting, trace=replace(one.trace, files=files))))
    return replace(found, before=sides[0], after=sides[1])
