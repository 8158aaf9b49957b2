"""The rules that decided about a dispatch, in short: what the rulebook says, for a page about many things."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.reasons import Role
from traceview.render.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceview.dispatch import Dispatch
    from traceview.reasons import Reason
    from traceview.render.page import Page

MOST_STORIES: Final = 3

NAMES: Final = {
    Role.CAUSE: "refused",
    Role.ALSO: "refused",
    Role.OPEN: "cannot tell",
    Role.ALLOWED: "allowed",
    Role.NOT_EXCLUDED: "not excluded",
    Role.ORDER: "so",
}
"""What of a row's reasons is shown, in this order, and under which name."""


def write_why(page: Page, rows: Sequence[Dispatch]) -> None:
    """Why no fused backend took the slow calls, each story once."""
    stories: dict[tuple[tuple[str, str], ...], int] = {}
    for row in rows:
        story = tuple(_story(row))
        if story:
            stories[story] = stories.get(story, 0) + row.count
    if not stories:
        return
    page.heading("Why the slow calls were not fused")
    for at, (story, count) in enumerate(list(stories.items())[:MOST_STORIES]):
        page.facts([("calls", f"{count:,}"), *story], blank=at > 0)
    if len(stories) > MOST_STORIES:
        page.remark(f"{counted(len(stories) - MOST_STORIES, 'more set')} of rules: traceview explain lists all.")
    page.remark("traceview explain shows the sources of these rules and what to change.")


def _story(row: Dispatch) -> Iterator[tuple[str, str]]:
    """The rules that speak about a row; the recorded facts they rest on are in the finding."""
    last = ""
    for role, name in NAMES.items():
        for reason in row.reasons:
            if reason.role is role:
                yield (name if name != last else "", rule_words(reason))
                last = name


def rule_words(reason: Reason, facts: str = "") -> str:
    """``flash by F1: Flash attention takes half-precision inputs only, all three of one dtype.``.

    Args:
        reason: A reason of any role.
        facts: What was recorded, to stand before the rule.
    """
    if not reason.detail.statement:
        return reason.text
    backends = ", ".join(reason.detail.backends)
    tried = ", if it is tried before," if reason.role is Role.ALSO else ""
    recorded = f"{facts}. " if facts else ""
    return f"{backends}{tried} by {reason.rule}: {recorded}{reason.detail.statement}"
