"""Charts on a page, with what the reader needs to take them away."""

from __future__ import annotations

import io
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import streamlit as st

from traceview.render.palette import INK, INK_ON_DARK

if TYPE_CHECKING:
    import altair as alt


def ink() -> str:
    """The colour of text on the ground of the reader's theme."""
    return INK_ON_DARK if st.context.theme.type == "dark" else INK


def show(chart: alt.Chart | alt.LayerChart, name: str) -> None:
    """Draw a chart, with downloads where the converter is installed.

    Args:
        chart: The chart.
        name: Of the file to download, and what tells the buttons of a page apart.
    """
    st.altair_chart(chart, width="stretch", key=f"chart-{name}")
    if find_spec("vl_convert"):
        with st.container(horizontal=True):
            for form, mime in (("svg", "image/svg+xml"), ("png", "image/png")):
                st.download_button(
                    form.upper(),
                    partial(drawn, chart, form),
                    f"traceview-{name}.{form}",
                    mime,
                    key=f"{form}-{name}",
                    icon=":material/download:",
                    type="tertiary",
                    on_click="ignore",
                )


def drawn(chart: alt.Chart | alt.LayerChart, form: str) -> bytes:
    """A chart as a file, on white ground."""
    wide = chart.properties(width=900, background="white")
    if form == "svg":
        text = io.StringIO()
        wide.save(text, format="svg")
        return text.getvalue().encode()
    out = io.BytesIO()
    wide.save(out, format="png", scale_factor=2)
    return out.getvalue()
