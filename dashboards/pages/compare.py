"""Two open traces side by side: whether they can be compared, whether a step got faster, and by what."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import streamlit as st

from traceview.compare import Comparison, Side, compare_sides, side
from traceview.dashboards import drawings, state, ui
from traceview.dashboards.library import State
from traceview.dashboards.views import compare as view
from traceview.render.compare_document import compare_document
from traceview.render.compare_text import headline, print_comparison
from traceview.render.documents import dumps

if TYPE_CHECKING:
    from traceview.dashboards.library import Job, Opened

_BEFORE: Final = "before"
_AFTER: Final = "after"
"""The query parameters of the two traces, so that a link shows the same comparison."""


def page() -> None:
    """The page."""
    jobs = {job.id: job for job in state.library().jobs if job.state in {State.READY, State.WORKING}}
    for name in (_BEFORE, _AFTER):
        # A trace that the server let go of is read again.
        known = st.query_params.get(name)
        job = state.library().get(known) if known and known not in jobs else None
        if job is not None:
            jobs[job.id] = job
    if len(jobs) < 2:
        st.info("Open two traces to compare them: one before a change, one after it.", icon=":material/compare_arrows:")
        st.page_link(st.session_state["pages"]["open"], label="Open a trace", icon=":material/folder_open:")
        return
    before, after = _choose(jobs)
    if before == after:
        st.info("Choose two different traces.", icon=":material/compare_arrows:")
        return
    traces = [_ready(before), _ready(after)]
    if traces[0] is None or traces[1] is None:
        return
    with st.spinner("Comparing"):
        found = compare_sides(_side(before, traces[0]), _side(after, traces[1]))
    _show(found)


def _choose(jobs: dict[str, Job]) -> tuple[str, str]:
    """Which is before and which after: those of the address, else the open trace and the one opened before it."""
    ids = list(jobs)
    current = state.trace_id()
    second = current if current in jobs else ids[0]
    first = next(one for one in ids if one != second)
    chosen = []
    for column, name, default in zip(st.columns(2), (_BEFORE, _AFTER), (first, second), strict=True):
        given = st.query_params.get(name)
        with column:
            one = st.selectbox(
                name.capitalize(),
                ids,
                index=ids.index(given if given in jobs else default),
                format_func=lambda key: f"{jobs[key].title} ({key[:6]})",
                key=f"compare-{name}",
            )
        st.query_params[name] = one
        chosen.append(one)
    return chosen[0], chosen[1]


def _ready(trace_id: str) -> Opened | None:
    """A trace, if it is there; else the page says what it waits for."""
    job = state.library().get(trace_id)
    found = None if job is None else state.ready(job, 30.0)
    if job is not None and found is None:
        if job.state is State.FAILED:
            ui.problem(job.error)
        else:
            st.info("A trace is still being read. Come back in a moment.", icon=":material/hourglass_top:")
            st.button("Look again")
    return found


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
    return dumps(compare_document(found, 0))


def _markdown(found: Comparison) -> str:
    import io

    out = io.StringIO()
    print_comparison(found, out, limit=40)
    return out.getvalue()
