"""Every event on its lane; what is selected is told below, in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import streamlit as st

from traceview.dashboards import boundary, state, ui
from traceview.dashboards.pages.loading import opened
from traceview.dashboards.timeline import detail, inside
from traceview.dashboards.timeline.component import point, timeline_view, told
from traceview.dashboards.timeline.lanes import Drawing, draw
from traceview.dashboards.timeline.payload import Selection, selection
from traceview.dashboards.views import timeline as view
from traceview.render.units import counted

if TYPE_CHECKING:
    import polars as pl

    from traceview.dashboards.shelf import Opened
    from traceview.dashboards.timeline.payload import Area, Flag
    from traceview.timeline import Timeline

MOST_KEPT: Final = 3
_SHOWN: Final = "timeline-shown"
_POINTED: Final = "timeline-pointed"
_WISHES: Final = "timeline-wishes"
_PARAMETERS: Final = ("t0", "t1", "q", "event", "a0", "a1", "lanes")


class Drawn(NamedTuple):
    """A trace as it is drawn."""

    timeline: Timeline
    drawing: Drawing
    flags: list[Flag]
    colours: dict[str, str]


@st.cache_resource(max_entries=MOST_KEPT, show_spinner="Laying out the timeline …")
def _drawn(trace_id: str, _trace: Opened) -> Drawn:  # noqa: ARG001 - the key of the cache; frames are not hashed
    from traceview.stages import assign_stages

    timeline = assign_stages(_trace.timeline).timeline
    flags = view.flags(timeline, _trace.report.gaps, _trace.check.table, _trace.check.findings)
    return Drawn(timeline, draw(timeline), flags, view.waterfall_colours(_trace.partition))


def page() -> None:
    """The page."""
    trace = opened()
    drawn = _drawn(trace.id, trace)
    if not drawn.drawing.lanes:
        ui.not_recorded("Timeline", ["The trace holds no event that could be drawn."])
        return
    st.markdown("### Timeline")
    _body(trace.id, drawn, _first(trace.id, drawn))


def _first(trace_id: str, drawn: Drawn) -> Selection | None:
    """What to show at first: what the address says, else what was shown when this page was left.

    An address may name an event alone (``?event=17``); then the timeline shows what is around it.
    """
    parameters, drawing = st.query_params, drawn.drawing
    event = _number(parameters.get("event"))
    if event is not None and "t0" not in parameters:
        return view.around(drawn.timeline, event)
    if "t0" in parameters:
        lanes = [one for one in parameters.get("lanes", "").split(",") if one]
        numbers = {name: _number(parameters.get(name)) for name in ("t0", "t1", "a0", "a1")}
        area = {"t0": numbers["a0"], "t1": numbers["a1"], "lanes": lanes} if lanes else None
        told = {
            "trace": trace_id, "t0": numbers["t0"], "t1": numbers["t1"], "q": parameters.get("q", ""),
            "id": event, "area": area,
        }  # fmt: skip
        return selection(told, drawing, trace_id)
    kept: tuple[str, Selection] | None = st.session_state.get(_SHOWN)
    return kept[1] if kept is not None and kept[0] == trace_id else None


def _number(text: str | None) -> int | None:
    try:
        return int(text) if text else None
    except ValueError:
        return None


def _remember(trace_id: str, shown: Selection) -> None:
    """Keep what is shown in the session and in the address."""
    if st.session_state.get(_SHOWN) == (trace_id, shown):
        return
    st.session_state[_SHOWN] = (trace_id, shown)
    parameters = {
        "t0": str(shown.start_ns), "t1": str(shown.end_ns), "q": shown.search,
        "event": "" if shown.event is None else str(shown.event),
    }  # fmt: skip
    if shown.area is not None:
        area = shown.area
        parameters |= {"a0": str(area.start_ns), "a1": str(area.end_ns), "lanes": ",".join(area.lanes)}
    state.to_address(**{name: parameters.get(name) for name in _PARAMETERS})


@st.fragment
def _body(trace_id: str, drawn: Drawn, first: Selection | None) -> None:
    boundary.guarded(lambda: _show(trace_id, drawn, first))


def _show(trace_id: str, drawn: Drawn, first: Selection | None) -> None:
    drawing = drawn.drawing
    key = f"timeline-{trace_id}"
    cells = matches = None
    if drawing.events.height > detail.MOST_EVENTS:
        # What is shown now is known only after the browser has said so, and this run is its answer.
        now = selection(told(key), drawing, trace_id) or first or Selection(0, max(drawing.end_ns, 1))
        cells = (*detail.cells(drawing, now.start_ns, now.end_ns), f"{trace_id}-{now.start_ns}-{now.end_ns}")
        if now.search:
            total, found = inside.search(drawn.timeline, drawing, now.search)
            matches = (now.search, total, found["start_ns"].to_list())
    shown = timeline_view(
        drawing,
        trace=trace_id,
        key=key,
        colours=drawn.colours,
        flags=drawn.flags,
        shown=first,
        cells=cells,
        matches=matches,
    )
    _remember(trace_id, shown)
    if shown.area is not None:
        _area(drawn, shown.area)
    elif shown.event is not None:
        _event(drawn.timeline, shown.event)
    elif not shown.search:
        st.caption("Click an event, drag over a stretch of lanes, or search: what it holds is listed here.")
    if shown.search:
        _search(drawn, shown.search)


def _area(drawn: Drawn, area: Area) -> None:
    found = inside.inside(drawn.timeline, drawn.drawing, area)
    names = {lane.device: lane.label.split(" · ")[0] for lane in drawn.drawing.lanes if lane.device is not None}
    with st.container(key="timeline-area"):
        st.markdown("#### Selected area")
        ui.text(view.area_sentence(found, names))
        for tab, (what, parts) in zip(
            st.tabs(["By name", "By stage", "By kind"]),
            (("name", found.names), ("stage", found.stages), ("kind", found.kinds)),
            strict=True,
        ):
            with tab:
                _table(view.parts_table(parts, what, found.length_ns), f"area-{what}")
                if parts.height > view.MOST_ROWS:
                    st.caption(f"The first {view.MOST_ROWS} of {parts.height:,}.")


def _event(timeline: Timeline, event: int) -> None:
    with st.container(key="timeline-event"):
        st.markdown("#### Selected event")
        known = inside.facts(timeline, event)
        if not known:
            ui.text("The trace has no such event.")
            return
        # A kernel's name can be longer than a cell of a table shows.
        ui.text(known[0][1], kind="strong", key="event-name")
        _facts(known[1:])
        work = inside.launched(timeline, event)
        if work:
            st.caption(f"It launched {counted(len(work), 'piece')} of device work.")
        if st.toggle("Every recorded argument", key="timeline-arguments"):
            _facts(inside.arguments(timeline, event))


def _facts(pairs: list[tuple[str, str]]) -> None:
    """Names and values as a table: short, and to be copied."""
    st.dataframe(
        view.facts_table(pairs),
        hide_index=True,
        column_config={"": st.column_config.Column(width=200), "value": st.column_config.Column(width=860)},
    )


def _search(drawn: Drawn, text: str) -> None:
    total, found = inside.search(drawn.timeline, drawn.drawing, text)
    with st.container(key="timeline-search"):
        st.markdown("#### Search")
        if not total:
            ui.text(f"No event has “{text}” in its name.")
            return
        more = f", the first {found.height:,} listed" if total > found.height else ""
        ui.text(f"{total:,} event{'' if total == 1 else 's'} with “{text}” in the name{more}.")
        rows = _table(view.found_table(found), "search", select=True)
        st.caption("Choose a row to see it in the timeline; with keys, Shift+Space on one of its cells.")
        if rows and rows[0] < found.height:
            _go_to(drawn.timeline, int(found["id"][rows[0]]))
        else:
            st.session_state.pop(_POINTED, None)


def _go_to(timeline: Timeline, event: int) -> None:
    """Show an event in the timeline, once for each time that it is chosen."""
    if st.session_state.get(_POINTED) != event:
        st.session_state[_POINTED] = event
        st.session_state[_WISHES] = st.session_state.get(_WISHES, 0) + 1
    wish = view.around(timeline, event)
    if wish is not None:
        point(wish, st.session_state.get(_WISHES, 0), "timeline-point")


def _table(frame: pl.DataFrame, key: str, *, select: bool = False) -> list[int]:
    """Show a table; the rows that are chosen in it."""
    columns = {
        name: st.column_config.NumberColumn(format="%.1f" if "%" in name else "%.3f")
        for name in frame.columns
        if name.endswith(("us", "%"))
    }
    if not select:
        st.dataframe(frame, hide_index=True, column_config=columns, key=f"timeline-table-{key}")
        return []
    shown = st.dataframe(
        frame,
        hide_index=True,
        column_config=columns,
        key=f"timeline-table-{key}",
        on_select="rerun",
        selection_mode="single-row",
    )
    return list(shown.selection.rows)
