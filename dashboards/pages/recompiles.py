"""What was compiled while it ran, and what was copied again and again."""

from __future__ import annotations

import streamlit as st

from traceview.dashboards import ui
from traceview.dashboards.pages.loading import opened
from traceview.dashboards.views import recompiles as view
from traceview.render.recompile_text import recompile_sentence
from traceview.render.transfer_text import transfer_sentence


def page() -> None:
    """The page."""
    report = opened().report
    st.markdown("#### Compilations")
    compiled = report.recompiles
    if compiled is None or compiled.recompiles is None:
        ui.not_recorded("Compilations", compiled.notes if compiled else [])
    else:
        ui.text(recompile_sentence(compiled), kind="strong", key="compiled")
        for at, note in enumerate(compiled.notes):
            ui.text(note.text, kind="small", key=f"compiled-{at}")
        table = view.compilations_table(compiled)
        if table is not None:
            ui.table(table)
    st.markdown("#### Copies")
    copied = report.transfers
    if copied is None or copied.transfers is None:
        ui.not_recorded("Copies", copied.notes if copied else [])
    else:
        ui.text(transfer_sentence(copied), kind="strong", key="copied")
        for at, note in enumerate(copied.notes):
            ui.text(note.text, kind="small", key=f"copied-{at}")
        table = view.copies_table(copied)
        if table is not None:
            ui.table(table)
    st.markdown("#### Memory taken from the driver and given back")
    taken = view.allocations_table(copied) if copied else None
    if taken is None:
        st.caption("No call of the driver's allocator and no change of reserved memory is recorded.")
    else:
        ui.table(taken)
