"""What was compiled while it ran, and what was copied again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from traceview.dashboards import ui
from traceview.dashboards.pages.loading import opened
from traceview.dashboards.views import recompiles as view
from traceview.render.recompile_text import recompile_sentence
from traceview.render.transfer_text import transfer_sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.dashboards.views.table import Table
    from traceview.recompile_report import RecompileReport
    from traceview.transfer_report import TransferReport


def page() -> None:
    """The page."""
    report = opened().report
    compiled, copied = report.recompiles, report.transfers
    # What limits the trace as a whole would else stand under each part.
    texts = [note.text for part in (compiled, copied) if part for note in part.notes]
    both = [text for text in dict.fromkeys(texts) if texts.count(text) > 1]
    for at, text in enumerate(both):
        ui.text(text, kind="small", key=f"both-{at}")
    if compiled is None or compiled.recompiles is None:
        _missing("Compilations", compiled)
    else:
        _answer("Compilations", compiled, recompile_sentence(compiled), view.compilations_table(compiled), both)
    if copied is None or copied.transfers is None:
        _missing("Copies", copied)
    else:
        _answer("Copies", copied, transfer_sentence(copied), view.copies_table(copied), both)
    st.markdown("#### Memory taken from the driver and given back")
    taken = view.allocations_table(copied) if copied else None
    if taken is None:
        st.caption("No call of the driver's allocator and no change of reserved memory is recorded.")
    else:
        ui.table(taken)


def _missing(title: str, result: RecompileReport | TransferReport | None) -> None:
    st.markdown(f"#### {title}")
    ui.not_recorded(title, result.notes if result else [])


def _answer(
    title: str, result: RecompileReport | TransferReport, sentence: str, table: Table | None, said: Sequence[str]
) -> None:
    """One answer: its sentence, what limits it beside what was ``said`` above, its table."""
    st.markdown(f"#### {title}")
    ui.text(sentence, kind="strong", key=title)
    for at, note in enumerate(result.notes):
        if note.text not in said:
            ui.text(note.text, kind="small", key=f"{title}-{at}")
    if table is not None:
        ui.table(table)
