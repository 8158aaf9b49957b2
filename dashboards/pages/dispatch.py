"""Asked, got, verdict, share; the evidence of a row; expectations and reports to take away."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import streamlit as st

from traceview.attention import SLOW
from traceview.dashboards import state, ui
from traceview.dashboards.pages.loading import opened
from traceview.dashboards.uploads import without_folders
from traceview.dashboards.views import dispatch as view
from traceview.dashboards.views.overview import WORDS, sentence
from traceview.expectations.baseline import last_day
from traceview.expectations.proposing import Acceptance, propose
from traceview.explaining import ATTENTION
from traceview.render.outputs import Checked, plain_text, render
from traceview.render.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.dashboards.shelf import Opened
    from traceview.dispatch import Dispatch

_ROW: Final = "row"
_OUTPUTS: Final = (
    ("text", "txt", "text/plain"),
    ("json", "json", "application/json"),
    ("markdown", "md", "text/markdown"),
    ("sarif", "sarif", "application/json"),
    ("junit", "xml", "application/xml"),
)
_MANY: Final = 10_000


def page() -> None:
    """The page."""
    trace = opened()
    check = trace.check
    with st.container(key={"fail": "failed", "pass": "passed", "inconclusive": "unsure"}[check.verdict.value]):
        st.markdown(f"{ui.ICONS[check.verdict.value]} **{WORDS[check.verdict]}** · by the built-in policy")
        ui.text(sentence(check.summary), kind="headline", key="summary")
    rows = check.table.dispatches
    if not rows:
        reasons = [note for note in trace.report.notes if note.part in {"devices", "kernels"}]
        ui.not_recorded("Dispatches", reasons or ["The trace has no device work and no op that asks for attention."])
    else:
        chosen = _table(trace, rows)
        if chosen is not None:
            _evidence(trace, chosen)
        else:
            st.caption("Choose a row to see its evidence, the rules that refused something faster, and the fix.")
    _expectations(trace)
    _downloads(trace)


def _table(trace: Opened, rows: Sequence[Dispatch]) -> Dispatch | None:
    attention = [row for row in rows if row.family == ATTENTION]
    which = "all"
    if attention and len(attention) < len(rows):
        labels = {"all": f"all ({len(rows):,})", "attention": f"attention ({len(attention):,})"}
        which = st.segmented_control(
            "Rows",
            list(labels),
            default="all",
            required=True,
            format_func=lambda one: labels[one],
            key="rows",
            label_visibility="collapsed",
        )
    numbers = [at for at, row in enumerate(rows) if which == "all" or row.family == ATTENTION]
    shown = [rows[at] for at in numbers]
    if not attention:
        note = "No op asks for attention and no known attention kernel ran."
        ui.text(note, kind="small", key="no-attention")
    picked = ui.table(
        view.dispatch_table_view(shown, trace.check.table.busy_ns),
        key=f"dispatches-{trace.id}-{which}",
        select=True,
        first=_first_choice(rows, numbers),
    )
    if not picked:
        state.to_address(**{_ROW: None})
        return None
    state.to_address(**{_ROW: str(numbers[picked[0]])})
    return shown[picked[0]]


def _first_choice(rows: Sequence[Dispatch], numbers: Sequence[int]) -> int | None:
    """The row of the address, else the first that is slow, as its place among those that are shown."""
    given = st.query_params.get(_ROW, "")
    if given.isdecimal() and int(given) in numbers:
        return numbers.index(int(given))
    return next((place for place, at in enumerate(numbers) if rows[at].verdict == "slow"), None)


def _evidence(trace: Opened, row: Dispatch) -> None:
    found = view.evidence(trace.timeline, trace.check, row)
    with st.container(border=True, key="evidence"):
        st.markdown(f"{ui.ICONS[found.verdict]} **{found.verdict}**")
        ui.text(found.heading, kind="strong", key="evidence")
        for at, line in enumerate(found.change):
            ui.text(f"{'Change: ' if at == 0 else ''}{line}")
        ui.facts(found.story)
        if found.kernels.frame.height:
            ui.table(found.kernels, height=240)
        snippet = view.expectation(row, trace.pieces)
        if snippet is not None:
            st.markdown("**As an expectation** (copy it into a `dispatch.toml`)")
            st.code(snippet, language="toml")


def _expectations(trace: Opened) -> None:
    st.markdown("#### A file of expectations from this trace")
    reason = ""
    slow = any(row.implementation in SLOW for row in trace.check.table.attention)
    if slow:
        reason = st.text_input(
            "This trace has slow paths. Why are they known? With a reason they are accepted for 90 days.", key="reason"
        )
    today = datetime.now(tz=UTC).date()
    acceptance = Acceptance(reason.strip(), last_day(None, today)) if reason.strip() else None
    proposal = propose(trace.timeline, trace.check.table, trace.check.findings, acceptance)
    if proposal.why_not is not None:
        ui.text(f"No file: this trace is no good example: {proposal.why_not}.", kind="small", key="why-not")
        return
    ui.text(f"It states {counted(len(proposal.stated), 'expectation')}.", kind="small", key="stated")
    with st.expander("dispatch.toml"):
        st.code(proposal.text, language="toml")
    st.download_button(
        "dispatch.toml", proposal.text, "dispatch.toml", "text/plain", icon=":material/download:", on_click="ignore"
    )


def _downloads(trace: Opened) -> None:
    st.markdown("#### Take the check away")
    # Where an upload lies means nothing to whoever reads the file.
    about = replace(trace.report.trace, files=tuple(without_folders(one) for one in trace.report.trace.files))
    checked = Checked(trace.check, about, trace.report.import_report, trace.check.exit_code, _MANY)
    with st.container(horizontal=True):
        for form, ending, mime in _OUTPUTS:
            make = partial(plain_text, checked) if form == "text" else partial(render, form, checked)
            st.download_button(
                form,
                make,
                f"check-dispatch.{ending}",
                mime,
                key=f"get-{form}",
                icon=":material/download:",
                on_click="ignore",
            )
