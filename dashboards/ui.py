"""Small pieces that all pages are made of. Words from a trace are shown as plain text, never as Markdown or HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import streamlit as st

from traceview.render.names import plain
from traceview.render.palette import FAILED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.report_parts import PartNote

STYLE: Final = f"""<style>
[data-testid="stMainBlockContainer"] {{ padding-top: 3.2rem; padding-bottom: 3rem; max-width: 78rem; }}
[data-testid="stText"] {{ font-family: inherit; white-space: pre-wrap; overflow-wrap: anywhere; }}
[class*="st-key-headline"] [data-testid="stText"] {{ font-size: 1.45rem; line-height: 1.3; font-weight: 600; }}
[class*="st-key-small"] [data-testid="stText"] {{ font-size: 0.85rem; line-height: 1.4; opacity: 0.8; }}
[class*="st-key-strong"] [data-testid="stText"] {{ font-weight: 600; }}
[class*="st-key-failed"] {{ border-left: 0.35rem solid {FAILED}; padding-left: 0.9rem; }}
[class*="st-key-passed"] {{ border-left: 0.35rem solid #009E73; padding-left: 0.9rem; }}
[class*="st-key-unsure"] {{ border-left: 0.35rem solid #9AA0A6; padding-left: 0.9rem; }}
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
            st.markdown(f"{ICONS['error']} **This did not work**")
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
