"""What each rule finds, and what the words on these pages mean."""

from __future__ import annotations

import streamlit as st

from traceview.dashboards import state, ui
from traceview.dashboards.views.glossary import glossary, rule_pages, rules_table


def page() -> None:
    """The page."""
    pages = rule_pages()
    st.markdown("#### Rules")
    chosen = ui.table(rules_table(), key="rules", select=True, height=420)
    codes = [one.code for one in pages]
    given = st.query_params.get("rule", "").upper()
    at = chosen[0] if chosen else codes.index(given) if given in codes else None
    if at is None:
        st.caption("Choose a rule to read what it needs as evidence, when it is wrong, and what to do.")
    else:
        state.to_address(rule=pages[at].code)
        with st.container(border=True):
            st.markdown(f"**{pages[at].title}**")
            st.markdown(pages[at].body)
    st.markdown("#### Glossary")
    search = st.text_input("Search the terms", key="term")
    shown = glossary(search)
    if shown.frame.height:
        ui.table(shown, height=520)
    else:
        st.caption("No term has that in it.")
