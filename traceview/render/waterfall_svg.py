"""Charts of where steps went, as SVG text: each step a bar, its parts beside each other, adding up to it exactly.

Nothing but text in, text out: no font is loaded, no script runs, no file is referred to. Names from a trace are
escaped. Colour is never the only sign: a part that is wide enough carries its name, every part has one in the legend
with its time, and hovering shows the exact figures. Idle time of a stage is striped in the stage's colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape, quoteattr

from traceview.quantities import percent
from traceview.render.names import middle_cut, plain
from traceview.render.palette import OTHERS as OTHERS_COLOUR
from traceview.render.palette import PARTS, UNATTRIBUTED, stage_colours
from traceview.render.units import duration
from traceview.waterfall import OTHERS
from traceview.waterfall import UNATTRIBUTED as NO_STAGE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traceview.waterfall import Waterfall

WIDTH: Final = 900
"""Width of a chart in its own units; it is readable at as many pixels."""

_MOST_LABEL: Final = 230
_VALUE: Final = 80
_ROW: Final = 26
_BAR: Final = 20
_LINE: Final = 20
_TEXT: Final = 12
_LETTER: Final = 6.9
"""Width of an average letter at that size; text that might not fit is cut or left out."""
_LEAST_LETTERS: Final = 12
"""Fewer of a longer name do not tell it from others."""

_FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', Arial, sans-serif"


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of text and ground: CSS variables on a page, fixed where there is none."""

    text: str
    faint: str
    ground: str | None


THEMES: Final = {
    "page": Theme("var(--text, #1f2328)", "var(--faint, #59636e)", None),
    "light": Theme("#1f2328", "#59636e", "#ffffff"),
    "dark": Theme("#e6e8eb", "#a5adb6", "#14171b"),
}
"""``page`` takes the colours of the page that the chart stands in, and no ground of its own."""


@dataclass(frozen=True, slots=True)
class _Segment:
    name: str
    ns: int
    colour: str
    striped: bool


def waterfall_svg(chart: Waterfall, *, theme: str = "page", width: int = WIDTH, title: str = "Steps by stage") -> str:
    """The steps by stage, or by part of the device's time.

    Args:
        chart: What to draw.
        theme: One of :data:`THEMES`.
        width: Width in units; text keeps its size.
        title: What the chart is called by readers who do not see it.
    """
    colours = _colours(chart)
    rows = []
    for bar in chart.bars:
        segments = []
        for part in bar.parts:
            shown = _short(part.name, chart.within)
            apart = chart.by_stage and chart.on_device
            solid, striped = (part.busy_ns, part.idle_ns) if apart else (part.ns, 0)
            segments += [
                _Segment(f"{shown}{words}", ns, colours[part.name], stripes)
                for ns, words, stripes in ((solid, "", False), (striped, ", device idle", True))
                if ns
            ]
        rows.append((bar.label, bar.wall_ns, segments))
    whole = sum(one.ns for one in chart.means)
    means = {one.name: one for one in chart.means}
    legend = []
    for name in chart.names:
        words, mean = _short(name, chart.within), means.get(name)
        apart = chart.by_stage and chart.on_device and mean is not None
        all_idle = apart and mean is not None and mean.ns == mean.idle_ns > 0
        if mean is not None:
            words += f": {duration(mean.ns)} ({percent(mean.ns / whole if whole else 0.0)})"
        if apart and mean is not None and mean.idle_ns:
            words += ", all of it idle" if all_idle else f", of it idle {duration(mean.idle_ns)}"
        legend.append((words, colours[name], all_idle))
    return _svg(rows, legend, theme=THEMES[theme], width=width, title=title)


def accounting_svg(
    rows: Sequence[tuple[str, Sequence[tuple[str, int]]]], *, theme: str = "page", width: int = WIDTH
) -> str:
    """What the time of a step goes to, a bar for each device.

    Args:
        rows: For each bar its label, and name and length of each part, ns, as
            :attr:`traceview.accounting.DeviceTime.parts`; they add up to the wall time. The legend has their means.
        theme: One of :data:`THEMES`.
        width: Width in units.
    """
    bars = []
    totals: dict[str, int] = {}
    for label, parts in rows:
        for name, ns in parts:
            totals[name] = totals.get(name, 0) + ns
        segments = [_Segment(name, ns, part_colour(name), name.startswith("idle")) for name, ns in parts if ns > 0]
        bars.append((label, sum(ns for _, ns in parts), segments))
    whole = sum(totals.values())
    legend = [
        (
            f"{name}: {duration(round(ns / len(rows)))} ({percent(ns / whole)})",
            part_colour(name),
            name.startswith("idle"),
        )
        for name, ns in totals.items()
        if ns
    ]
    return _svg(bars, legend, theme=THEMES[theme], width=width, title="Time of a step")


def svg_to_png(svg: str, *, scale: float = 2.0) -> bytes:
    """A chart as PNG; needs the extra ``dashboard``.

    Args:
        svg: A chart of a theme with a ground: ``light`` or ``dark``.
        scale: Pixels per unit.

    Raises:
        ImportError: ``vl-convert-python`` is not installed.
    """
    import vl_convert

    return bytes(vl_convert.svg_to_png(svg, scale=scale))


def part_colour(name: str) -> str:
    """Colour of a part of the device's time; all causes of idle time have that of idle time."""
    if name == "unattributed":
        return UNATTRIBUTED
    return PARTS.get(name, PARTS["idle"])


def _colours(chart: Waterfall) -> Mapping[str, str]:
    if not chart.by_stage:
        return {name: part_colour(name) for name in chart.names}
    stages = [name for name in chart.names if name != OTHERS]
    return {**stage_colours(stages, NO_STAGE), OTHERS: OTHERS_COLOUR}


def _short(name: str, within: str | None) -> str:
    """A stage as a chart names it: without the stage that all of them are parts of."""
    if within is not None and name == within:
        name = f"{within.rsplit('/', 1)[-1]} itself"
    elif within is not None and name.startswith(f"{within}/"):
        name = name[len(within) + 1 :]
    return middle_cut(plain(name), 48)


def _svg(
    rows: Sequence[tuple[str, int, Sequence[_Segment]]],
    legend: Sequence[tuple[str, str, bool]],
    *,
    theme: Theme,
    width: int,
    title: str,
) -> str:
    side = min(max((int(len(label) * _LETTER) for label, _, _ in rows), default=0) + 20, _MOST_LABEL)
    room = width - side - _VALUE
    longest = max((wall for _, wall, _ in rows), default=0)
    placed, lines = _legend(legend, width)
    height = len(rows) * _ROW + 12 + lines * _LINE + 4
    title = middle_cut(plain(title), 200)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(title)}'
    striped = {one.colour for _, _, segments in rows for one in segments if one.striped}
    striped |= {colour for _, colour, stripes in legend if stripes}
    out = [
        f'{head} font-family="{_FONT}" font-size="{_TEXT}">',
        f"<title>{escape(title)}</title>",
        *_patterns(striped),
    ]
    if theme.ground:
        out.append(f'<rect width="{width}" height="{height}" fill="{theme.ground}"/>')
    for at, (label, wall, segments) in enumerate(rows):
        top = at * _ROW + 4
        middle = top + _BAR / 2 + 4
        out.append(_words(middle_cut(plain(label), int((side - 12) / _LETTER)), side - 8, middle, theme.text, "end"))
        out += _bar(segments, wall, longest, (side, room), top)
        end = side + (wall / longest * room if longest else 0) + 6
        out.append(_words(duration(wall), end, middle, theme.text))
    base = len(rows) * _ROW + 12
    for (words, colour, stripes), (x, line) in zip(legend, placed, strict=True):
        y = base + line * _LINE
        out.append(f'<rect x="{x}" y="{y + 3}" width="12" height="12" rx="2" fill="{_fill(colour, striped=stripes)}"/>')
        out.append(_words(words, x + 18, y + 13, theme.text))
    out.append("</svg>")
    return "\n".join(out)


def _bar(segments: Sequence[_Segment], wall: int, longest: int, place: tuple[int, int], top: int) -> list[str]:
    """The parts of one bar: edges come from running sums of whole nanoseconds, so that they meet and lose nothing."""
    out = []
    done = 0
    side, room = place
    for one in segments:
        left = side + done / longest * room
        done += one.ns
        right = side + done / longest * room
        share = percent(one.ns / wall if wall else 0.0)
        hover = f"{one.name}: {duration(one.ns)}, {share} of this step"
        out.append(
            f'<rect x="{left:.2f}" y="{top}" width="{max(right - left, 0):.2f}" height="{_BAR}" '
            f'fill="{_fill(one.colour, striped=one.striped)}" data-ns="{one.ns}"><title>{escape(hover)}</title></rect>'
        )
        letters = int((right - left - 8) / _LETTER)
        # Of a name that loses much nothing can be read; the legend has it whole, and so has whoever points at it.
        if letters >= len(one.name) or letters >= max(_LEAST_LETTERS, len(one.name) * 2 / 3):
            name = middle_cut(one.name, letters)
            ink = "#000000" if one.striped else _ink(one.colour)
            out.append(_words(name, left + 4, top + _BAR / 2 + 4, ink, halo=one.striped))
    return out


def _legend(legend: Sequence[tuple[str, str, bool]], width: int) -> tuple[list[tuple[int, int]], int]:
    """Where each entry stands: as many on a line as fit."""
    placed = []
    x, line = 8, 0
    for words, _, _ in legend:
        needed = int(len(words) * _LETTER) + 36
        if x > 8 and x + needed > width:
            x, line = 8, line + 1
        placed.append((x, line))
        x += needed
    return placed, line + 1 if legend else 0


def _words(text: str, x: float, y: float, colour: str, anchor: str = "start", *, halo: bool = False) -> str:
    edge = (
        ' paint-order="stroke" stroke="#ffffff" stroke-width="4" stroke-opacity="0.9" stroke-linejoin="round"'
        if halo
        else ""
    )
    return f'<text x="{x:.2f}" y="{y:.2f}" fill="{colour}" text-anchor="{anchor}"{edge}>{escape(text)}</text>'


def _patterns(colours: set[str]) -> list[str]:
    """Stripes in each colour: idle time of a stage, or of the device."""
    if not colours:
        return []
    made = [
        f'<pattern id="{_pattern(colour)}" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><rect width="6" height="6" fill="{colour}" fill-opacity="0.28"/>'
        f'<rect width="2" height="6" fill="{colour}"/></pattern>'
        for colour in sorted(colours)
    ]
    return ["<defs>", *made, "</defs>"]


def _pattern(colour: str) -> str:
    return f"idle-{colour.lstrip('#')}"


def _fill(colour: str, *, striped: bool) -> str:
    return f"url(#{_pattern(colour)})" if striped else colour


def _ink(colour: str) -> str:
    """Black or white, whichever reads better on a colour (relative luminance of WCAG 2)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.179 else "#ffffff"
