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
    compiled, copied = report.recompiles, report.transfers
    # What limits the trace as a whole would else stand under each part.
    texts = [note.text for part in (compiled, copied) if part for note in part.notes]
    both = [text for text in dict.fromkeys(texts) if texts.count(text) > 1]
    for at, text in enumerate(both):
        ui.text(text, kind="small", key=f"both-{at}")
    st.markdown("#### Compilations")
    if compiled is None or compiled.recompiles is None:
        ui.not_recorded("Compilations", compiled.notes if compiled else [])
    else:
        ui.text(recompile_sentence(compiled), kind="strong", key="compiled")
        for at, note in enumerate(compiled.notes):
            if note.text not in both:
                ui.text(note.text, kind="small", key=f"compiled-{at}")
        table = view.compilations_table(compiled)
        if table is not None:
            ui.table(table)
    st.markdown("#### Copies")
    if copied is None or copied.transfers is None:
        ui.not_recorded("Copies", copied.notes if copied else [])
    else:
        ui.text(transfer_sentence(copied), kind="strong", key="copied")
        for at, note in enumerate(copied.notes):
            if note.text not in both:
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
