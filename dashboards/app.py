"""The app: its pages and how they are found; ``entry/script.py`` runs it for every interaction."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import streamlit as st

from traceview.dashboards import boundary, state, ui
from traceview.dashboards.preload import imported, preload


class Entry(NamedTuple):
    """One page: its module in ``pages``, what it is called, its icon; the module's name is its place in the address."""

    module: str
    title: str
    icon: str


PAGES: Final = (
    Entry("open", "Open", ":material/folder_open:"),
    Entry("overview", "Overview", ":material/speed:"),
    Entry("dispatch", "Dispatch", ":material/alt_route:"),
    Entry("gaps", "Gaps", ":material/hourglass_empty:"),
    Entry("recompiles", "Recompiles & transfers", ":material/sync:"),
    Entry("timeline", "Timeline", ":material/view_timeline:"),
    Entry("what_if", "What-if", ":material/tune:"),
    Entry("compare", "Compare", ":material/compare_arrows:"),
    Entry("rules", "Rules & glossary", ":material/menu_book:"),
)
"""Every page in the order of the navigation. One whose module is not there is left out."""

_ICON: Final = str(Path(__file__).with_name("icon.svg"))


def _run(module: str) -> None:
    if module != "open":
        # An address that names a trace makes it the open one, and every page keeps it there, whatever it shows.
        # At once: a page that is reloaded while it still works it out must not forget its trace.
        state.trace_id()
        state.to_address()
    boundary.guarded(imported(f"traceview.dashboards.pages.{module}").page)


def main() -> None:
    """Choose the page and run it."""
    preload()
    # A file of our own: Streamlit fetches the icon of a name or an emoji from a server of others.
    st.set_page_config(page_title="traceview", page_icon=_ICON, layout="wide")
    ui.style()
    pages = {
        entry.module: st.Page(
            partial(_run, entry.module),
            title=entry.title,
            icon=entry.icon,
            url_path=entry.module,
            default=entry.module == "open",
        )
        for entry in PAGES
        if find_spec(f"traceview.dashboards.pages.{entry.module}")
    }
    st.session_state["pages"] = pages
    st.navigation(list(pages.values()), position="top").run()
