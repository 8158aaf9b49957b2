"""The colours of charts, in one place: told apart by people who see few colours, on light and on dark ground.

The first stage colours are those of Okabe and Ito (Color Universal Design, 2008), without black and yellow and with red
left out: red says that a check failed, and nothing else. The others were chosen so that no two colours of a chart come
close for people with deuteranopia or protanopia either; ``tests/render/test_palette.py`` holds them to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

STAGES: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#8ECF7C", "#5B3FD0", "#7A5A1E")
"""Colours of stages, longest stage first."""

OTHERS: Final = "#57636F"
"""What all stages share for which no colour is left."""

UNATTRIBUTED: Final = "#B9BFC5"
"""Time in no stage, of no known cause."""

PARTS: Final = {
    "compute": "#0072B2",
    "collective (exposed)": "#CC79A7",
    "copy (exposed)": "#56B4E9",
    "async wait": "#E69F00",
    "idle": "#C4C9CE",
}
"""Colours of the parts of a step, by :class:`traceview.accounting.Part`; every cause of idle time has that of idle."""

INK: Final = "#31333F"
"""Text on light ground."""

INK_ON_DARK: Final = "#FAFAFA"
"""Text on dark ground."""

FAILED: Final = "#C5221F"
"""A verdict that failed."""


def stage_colours(stages: Sequence[str], unattributed: str) -> dict[str, str]:
    """A colour for each stage, in the order given; with more stages than colours they repeat.

    Args:
        stages: Their names, longest first.
        unattributed: The name that stands for time in no stage.
    """
    named = [stage for stage in stages if stage != unattributed]
    colours = {stage: STAGES[at % len(STAGES)] for at, stage in enumerate(named)}
    return {stage: colours.get(stage, UNATTRIBUTED) for stage in stages}
