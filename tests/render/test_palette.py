"""The colours of charts, held to what people with few colours, and on light or dark ground, can tell apart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from traceview.cli.dashboard import SETTINGS
from traceview.dashboards.timeline.payload import KIND_COLOURS
from traceview.render import palette, waterfall_svg

LIGHT, DARK = "#FFFFFF", "#0E1117"
"""Grounds of the two themes of Streamlit."""

LIGHT_PANEL, DARK_PANEL = "#F0F2F6", "#262730"

DEUTERANOPIA = ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))
"""Machado, Oliveira and Fernandes (IEEE TVCG 15(6), 2009), table 1, severity 1.0; for linear RGB."""

PROTANOPIA = ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998))
"""The same for protanopia."""


def linear(colour):
    parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """Of WCAG 2.2."""
    low, high = sorted(float(linear(colour) @ (0.2126, 0.7152, 0.0722)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(rgb):
    """CIE L*a*b* of linear sRGB, D65."""
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ rgb
    t = xyz / (0.9505, 1.0, 1.089)
    f = np.where(t > 0.008856, np.cbrt(t), t * 7.787 + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def seen(colour, by=None):
    rgb = linear(colour)
    return lab(rgb if by is None else np.clip(np.array(by) @ rgb, 0, 1))


def nearest(colours, by=None):
    """The distance (CIE 1976) of the two that are most alike, and which they are."""
    return min(
        (float(np.linalg.norm(seen(one, by) - seen(other, by))), one, other)
        for one, other in itertools.combinations(dict.fromkeys(colours), 2)
    )


def mixed(colour, ground, share):
    """A colour drawn over a ground with some opacity."""
    both = [[int(one[at : at + 2], 16) for at in (1, 3, 5)] for one in (colour, ground)]
    return "#" + "".join(f"{round(a * share + b * (1 - share)):02X}" for a, b in zip(*both, strict=True))


SETS = {
    "stages": [*palette.STAGES, palette.OTHERS, palette.UNATTRIBUTED],
    "parts": [*palette.PARTS.values()],
    "kinds": [*KIND_COLOURS.values(), palette.UNATTRIBUTED],
}


@pytest.mark.parametrize("by", [None, DEUTERANOPIA, PROTANOPIA], ids=["all", "deuteranopia", "protanopia"])
@pytest.mark.parametrize("name", SETS)
def test_no_two_colours_of_a_chart_come_close(name, by):
    distance, *which = nearest(SETS[name], by)
    assert distance >= 14, which


def test_the_measure_of_distance_sees_what_a_reader_sees():
    # Orange and olive are one colour to people with protanopia; the simulation has to say so.
    assert nearest(["#E69F00", "#B8A600"])[0] > 20
    assert nearest(["#E69F00", "#B8A600"], PROTANOPIA)[0] < 2
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(
    ("ink", "grounds"), [(palette.INK, (LIGHT, LIGHT_PANEL)), (palette.INK_ON_DARK, (DARK, DARK_PANEL))]
)
def test_text_can_be_read_in_both_themes_also_where_it_is_paler(ink, grounds):
    for ground in grounds:
        assert contrast(ink, ground) >= 7
        # The canvas draws its key at 0.7, the page its remarks at 0.8.
        assert contrast(mixed(ink, ground, 0.7), ground) >= 4.5


@pytest.mark.parametrize("colour", sorted({one for some in SETS.values() for one in some}))
def test_a_name_can_be_read_on_every_colour(colour):
    assert contrast(waterfall_svg._ink(colour), colour) >= 4.5
    # A bar without a name still stands out from its ground; each has its name beside it or when pointed at.
    assert min(contrast(colour, LIGHT), contrast(colour, DARK)) >= 1.6


def test_focus_and_failure_stand_out_in_both_themes():
    assert contrast(SETTINGS["theme.light.primaryColor"], LIGHT) >= 3
    assert contrast(SETTINGS["theme.dark.primaryColor"], DARK) >= 3
    assert min(contrast(palette.FAILED, LIGHT), contrast(palette.FAILED, DARK)) >= 3


@pytest.mark.parametrize("name", ["light", "dark"])
def test_words_of_a_drawing_can_be_read_on_its_own_ground(name):
    theme = waterfall_svg.THEMES[name]
    assert min(contrast(theme.text, theme.ground), contrast(theme.faint, theme.ground)) >= 4.5
