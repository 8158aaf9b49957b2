"""Charts that are drawn as SVG by the product itself: shown as pictures, and there to be taken away."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import streamlit as st

from traceview.render.waterfall_svg import svg_to_png, waterfall_svg

if TYPE_CHECKING:
    from traceview.waterfall import Waterfall


def steps(chart: Waterfall, name: str, *, title: str) -> None:
    """Steps as bars, with downloads.

    Args:
        chart: The steps.
        name: Of the file to download, and what tells the buttons of a page apart.
        title: What the chart is called by readers who do not see it.
    """
    theme = "dark" if st.context.theme.type == "dark" else "light"
    # A picture: whatever a name in it says, a browser runs nothing of it.
    st.image(waterfall_svg(chart, theme=theme, title=title), width="stretch")
    light = waterfall_svg(chart, theme="light", title=title)
    with st.container(horizontal=True):
        st.download_button(
            "SVG",
            light,
            f"traceview-{name}.svg",
            "image/svg+xml",
            key=f"svg-{name}",
            icon=":material/download:",
            type="tertiary",
            on_click="ignore",
        )
        if find_spec("vl_convert"):
            st.download_button(
                "PNG",
                partial(svg_to_png, light),
                f"traceview-{name}.png",
                "image/png",
                key=f"png-{name}",
                icon=":material/download:",
                type="tertiary",
                on_click="ignore",
            )
