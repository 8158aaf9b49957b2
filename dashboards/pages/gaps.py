"""Why the devices stood idle, and what could be won back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from traceview.dashboards import charts, state, ui
from traceview.dashboards.pages.loading import opened
from traceview.dashboards.views import gaps as view
from traceview.render.idle_text import gap_sentence

if TYPE_CHECKING:
    from traceview.dashboards.shelf import Opened
    from traceview.gap_report import GapReport

_ROW = "gap"


def page() -> None:
    """The page."""
    trace = opened()
    result = trace.report.gaps
    if result is None:
        ui.not_recorded("Gaps", [])
        return
    ui.text(gap_sentence(result), kind="headline", key="gaps")
    for at, note in enumerate(dict.fromkeys(note.text for note in result.notes)):
        ui.text(note, kind="small", key=f"note-{at}")
    causes = view.causes_table(result)
    if causes is None:
        why = [note for note in result.notes if note.part in {"gaps", "devices"}]
        if result.causes is None:
            ui.not_recorded("Idle time by cause", why)
        else:
            st.success("No device stood idle between its first and its last work.", icon=":material/check_circle:")
    else:
        st.markdown("#### Idle time by cause")
        ui.table(causes)
        _stretches(trace, result)
    _host(result)


def _stretches(trace: Opened, result: GapReport) -> None:
    frame = view.histogram(result)
    if frame.height:
        st.markdown("#### How long the idle stretches are")
        charts.show(view.histogram_chart(frame), "gaps")
    table = view.gaps_table(result)
    if table is None:
        return
    st.markdown("#### Idle stretches, most to win first")
    given = st.query_params.get(_ROW, "")
    first = int(given) if given.isdecimal() and int(given) < table.frame.height else 0
    chosen = ui.table(table, key=f"gaps-{trace.id}", select=True, height=380, first=first)
    if not chosen or result.gaps is None:
        state.to_address(**{_ROW: None})
        st.caption("Choose a row to see what held the device.")
        return
    state.to_address(**{_ROW: str(chosen[0])})
    start_ns, dur_ns = result.gaps.select("start_ns", "dur_ns").row(chosen[0])
    with st.container(border=True, key="gap"):
        ui.facts(view.gap_story(trace.timeline, result, chosen[0]))
        ui.to_timeline(trace.id, start_ns, dur_ns)


def _host(result: GapReport) -> None:
    st.markdown("#### How the devices are fed")
    feeding = view.feeding_table(result)
    if feeding is None:
        why = [note for note in result.notes if note.part == "devices"]
        ui.not_recorded("Launches", why or ["No work of a device has a launch in the file."])
    else:
        ui.table(feeding)
    st.markdown("#### Where the host waits")
    waits = view.waits_table(result)
    if waits is None:
        st.caption("No wait of the host is recorded.")
    else:
        ui.table(waits)
