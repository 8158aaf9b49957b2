"""The timeline as a Streamlit component: one ES module and one style sheet, served by the app itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from traceview.dashboards.timeline.payload import Selection, payload, selection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from traceview.dashboards.timeline.lanes import Drawing
    from traceview.dashboards.timeline.payload import Flag

_HERE: Final = Path(__file__).parent
_MODULES: Final = ("core.js", "paint.js", "navigate.js", "timeline.js")
_IMPORT: Final = re.compile(r'^import \{[^}]*\} from "\./\w+\.js";$', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?!default)", re.MULTILINE)


def script() -> str:
    """The modules as one: a component is one script, and cannot import a neighbour by its path."""
    parts = [(_HERE / name).read_text(encoding="utf-8") for name in _MODULES]
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", part)) for part in parts)


_mount: Final = st.components.v2.component(
    "traceview_timeline", css=(_HERE / "timeline.css").read_text(encoding="utf-8"), js=script()
)


# Words of a trace never come this way: it carries numbers only.
_point: Final = st.components.v2.component(
    "traceview_timeline_point",
    js="""export default function ({ data }) {
  window.dispatchEvent(new CustomEvent("traceview-show", { detail: data }));
}""",
)


def point(selected: Selection, number: int, key: str) -> None:
    """Make the timeline of the page select an event and go there.

    Args:
        selected: The event, and what is around it.
        number: Another one each time; the same again is no new wish.
        key: Names this element.
    """
    wish = {"id": selected.event, "t0": selected.start_ns, "t1": selected.end_ns, "nonce": number}
    _point(key=key, data=wish, height="content")


def timeline_view(
    drawing: Drawing,
    *,
    trace: str,
    key: str,
    colours: Mapping[str, str] | None = None,
    flags: Sequence[Flag] = (),
    shown: Selection | None = None,
    cells: tuple[pl.DataFrame, pl.DataFrame, str] | None = None,
    matches: tuple[str, int, Sequence[int]] | None = None,
) -> Selection:
    """Show a timeline. Arguments are those of :func:`traceview.dashboards.timeline.payload.payload`.

    Args:
        drawing: What there is.
        trace: Names the trace.
        key: Names this timeline among the elements of the app.
        colours: Colours that stages have elsewhere.
        flags: Stretches to mark.
        shown: What to show and select at first.
        cells: Merged events instead of all of them.
        matches: What a search found, for merged events.

    Returns:
        What it shows now, and what is selected: reported once it has been still for a moment.
    """
    first = shown or Selection(0, max(drawing.end_ns, 1))
    if cells is None and _has(key, trace):
        # Every move of the timeline comes back here; sending all events again each time would make it stutter.
        data: dict[str, Any] = {"trace": trace}
    else:
        data = payload(drawing, trace=trace, colours=colours, flags=flags, shown=first, cells=cells, matches=matches)
    result: Any = _mount(key=key, data=data, height="content", on_view_change=_nothing)
    return selection(result.get("view"), drawing, trace) or first


def told(key: str) -> Any:
    """What the browser reported last of a timeline; ``None`` before it has."""
    state = st.session_state.get(key)
    return state.get("view") if state else None


def _has(key: str, trace: str) -> bool:
    """The browser has the events: it reported what it shows of them. If it lost them it reports no trace."""
    state = told(key)
    return isinstance(state, dict) and state.get("trace") == trace


def _nothing() -> None:
    """A state is reported only if something listens for it."""
