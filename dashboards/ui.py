"""Small pieces that all pages are made of. Words from a trace are shown as plain text, never as Markdown or HTML."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import streamlit as st

from traceview.dashboards.views.table import Show, cell
from traceview.render.names import plain
from traceview.render.palette import FAILED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from traceview.dashboards.views.findings import FindingView
    from traceview.dashboards.views.overview import Figure
    from traceview.dashboards.views.table import Table
    from traceview.report_parts import PartNote

STYLE: Final = f"""<style>
[data-testid="stMainBlockContainer"] {{ padding-top: 4.6rem; padding-bottom: 3rem; max-width: 78rem; }}
[data-testid="stText"] {{ font-family: inherit; white-space: pre-wrap; overflow-wrap: anywhere; }}
[class*="st-key-headline"] [data-testid="stText"] {{ font-size: 1.45rem; line-height: 1.3; font-weight: 600; }}
[class*="st-key-small"] [data-testid="stText"] {{ font-size: 0.85rem; line-height: 1.4; opacity: 0.8; }}
[class*="st-key-strong"] [data-testid="stText"] {{ font-weight: 600; }}
[class*="st-key-failed"] {{ border-left: 0.35rem solid {FAILED}; padding-left: 0.9rem; }}
[class*="st-key-passed"], [class*="st-key-unsure"], [class*="st-key-answered"] {{
  border-left: 0.35rem solid #9AA0A6; padding-left: 0.9rem;
}}
[class*="st-key-card-"] {{ padding: 0.6rem 0.9rem; }}
[class*="st-key-card-"] button {{ min-height: 1.8rem; padding: 0 0.6rem; }}
[class*="st-key-card-"] [data-testid="stHorizontalBlock"] {{ gap: 0.5rem; }}
[data-testid="stFileUploaderDropzone"] {{ min-height: 6.5rem; align-items: center; }}
[data-testid="stHeaderActionElements"] {{ display: none; }}
[data-testid="stMetricValue"] {{ font-size: 1.35rem; }}
</style>"""

ICONS: Final = {
    "fail": ":material/cancel:",
    "pass": ":material/check_circle:",
    "inconclusive": ":material/help:",
    "error": ":material/cancel:",
    "warning": ":material/warning:",
    "info": ":material/info:",
    "slow": ":material/cancel:",
    "ok": ":material/check_circle:",
    "unknown": ":material/help:",
}
"""An icon beside each verdict and severity, so that colour is never the only sign."""


def style() -> None:
    """The little CSS that the pages need; fixed text, nothing from a trace."""
    st.html(STYLE)


def text(words: str, *, kind: str = "", key: str = "") -> None:
    """Words as they are.

    Args:
        words: Anything, also names from a trace.
        kind: ``headline``, ``small`` or ``strong``; empty for plain text.
        key: Tells two texts of one kind on one page apart.
    """
    if not kind:
        st.text(plain(words))
        return
    with st.container(key=f"{kind}-{key}" if key else None):
        st.text(plain(words))


def problem(lines: Iterable[str]) -> None:
    """What went wrong, one line each."""
    for at, line in enumerate(lines):
        with st.container(border=True, key=f"problem-{at}"):
            st.markdown(f"{ICONS['error']} **This could not be done**")
            text(line)


def not_recorded(what: str, notes: Sequence[PartNote] | Sequence[str]) -> None:
    """Say why a part of a page is empty.

    Args:
        what: What would stand here.
        notes: Why it does not.
    """
    reasons = [note if isinstance(note, str) else note.text for note in notes]
    with st.container(border=True):
        st.markdown(f":material/block: **{what}: not recorded**")
        for reason in dict.fromkeys(reasons):
            text(reason)
        if not reasons:
            text("The trace holds nothing of it.")


def facts(pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values in one line after the other."""
    for name, value in pairs:
        left, right = st.columns([1, 6], gap="small")
        left.caption(name)
        with right:
            text(value)


def table(
    shown: Table,
    *,
    key: str | None = None,
    select: bool = False,
    height: int | None = None,
    first: int | None = None,
) -> list[int]:
    """Show a table.

    Args:
        shown: The table.
        key: Its key, needed to select in it.
        select: Let the reader choose one row.
        height: Most pixels to take.
        first: The row that is chosen before the reader chooses.

    Returns:
        The chosen rows: none or one.
    """
    columns: dict[str, Any] = {}
    for name, how in shown.shows.items():
        if how is Show.MEDIUM or how is Show.LONG:
            columns[name] = st.column_config.TextColumn(width="medium" if how is Show.MEDIUM else "large")
    rows = shown.frame.height
    # Numbers stay numbers, so that columns sort and align; the words for them go along as a style.
    plain_frame = shown.frame.with_columns(
        pl.col(name) * 100 for name, how in shown.shows.items() if how is Show.SHARE
    ).to_pandas()
    words: dict[str, Any] = {
        name: partial(cell, shown.shows.get(name, Show.NUMBER))
        for name, kind in shown.frame.schema.items()
        if kind.is_numeric()
    }
    frame = plain_frame.style.format(words)
    options: dict[str, Any] = {
        "hide_index": True,
        "column_config": columns,
        "height": min(35 * (rows + 1) + 2, height or 457),
        "width": "stretch",
        "placeholder": "-",
    }
    chosen: list[int] = []
    if select:
        chosen_first: Any = None
        if first is not None:
            chosen_first = {"selection": {"rows": [first], "columns": [], "cells": []}}
        event = st.dataframe(
            frame, key=key, on_select="rerun", selection_mode="single-row", selection_default=chosen_first, **options
        )
        chosen = list(event.selection.rows)
    else:
        st.dataframe(frame, key=key, **options)
    for remark in shown.remarks:
        st.caption(remark)
    return chosen


def figures(shown: Sequence[Figure]) -> None:
    """Key figures beside each other."""
    for column, one in zip(st.columns(len(shown)), shown, strict=True):
        with column, st.container(gap=None):
            st.metric(one.name, one.value, help=one.meaning)
            st.caption(one.note)


def finding(shown: FindingView, at: int) -> None:
    """One finding: what is so, what it costs, what to do, and on demand the evidence."""
    with st.container(border=True, key=f"finding-{at}", gap="xsmall"):
        st.markdown(f"{ICONS[shown.severity]} {shown.severity} · `{shown.code}`")
        text(shown.title, kind="strong", key=f"finding-{at}")
        if shown.cost:
            text(f"{shown.cost[:1].upper()}{shown.cost[1:]}.", kind="small", key=f"cost-{at}")
        if shown.trust:
            text(f"Trust {shown.trust}", kind="small", key=f"trust-{at}")
        if shown.fix:
            text(f"Do: {shown.fix}")
        if shown.event is not None:
            to_event(shown.event)
        with st.expander("Evidence, and when this is wrong"):
            facts(shown.details)


def to_timeline(trace_id: str, start_ns: int, dur_ns: int) -> None:
    """A link to the timeline, zoomed to a stretch with some room on both sides; nothing where there is no timeline."""
    room = max(dur_ns // 4, 1000)
    _on_timeline({"trace": trace_id, "t0": str(start_ns - room), "t1": str(start_ns + dur_ns + room)})


def to_event(event: int, label: str = "Show it on the timeline") -> None:
    """A link to an event of the open trace on the timeline."""
    _on_timeline({"event": str(event)}, label)


def _on_timeline(where: Mapping[str, str], label: str = "Show it on the timeline") -> None:
    """A link to a place on the timeline; of the open trace, if none is named."""
    page = st.session_state["pages"].get("timeline")
    if page is None:
        return
    trace: dict[str, str] = {"trace": st.session_state["trace"]} if st.session_state.get("trace") else {}
    st.page_link(page, label=label, icon=":material/view_timeline:", query_params={**trace, **where})
