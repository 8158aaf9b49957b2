"""The charts of steps: exact sums, well-formed and harmless SVG, colours that people can tell apart."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import sample_traces
from traceview import load
from traceview.render.palette import PARTS, STAGES
from traceview.render.waterfall_svg import THEMES, accounting_svg, part_colour, waterfall_svg
from traceview.report_parts import describe
from traceview.steps import find_steps
from traceview.waterfall import MOST_STEPS, OTHERS, UNATTRIBUTED, PartOfStep, StepBar, Waterfall, waterfall

SAMPLES = Path(sample_traces.__file__).parent
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</text><script>alert(1)</script><img src=x onerror="x">&\x1b[31m\u202e' + "x" * 5000


def chart_of(path):
    timeline = load(path)
    return waterfall(timeline, find_steps(timeline), describe(timeline).devices)


def parsed(svg):
    return ET.fromstring(svg)  # noqa: S314 - our own text


def bars(svg):
    """The parts of each bar, by their height on the page: ns, left edge and width."""
    found: dict[float, list[tuple[int, float, float]]] = {}
    for rect in parsed(svg).iter(f"{SVG}rect"):
        if "data-ns" in rect.attrib:
            place = (int(rect.attrib["data-ns"]), float(rect.attrib["x"]), float(rect.attrib["width"]))
            found.setdefault(float(rect.attrib["y"]), []).append(place)
    return [found[y] for y in sorted(found)]


@pytest.mark.parametrize(
    "name",
    ["flash-requested-math-ran.cuda-authored.json.gz", "two-ranks", "two-ranks.nsys-authored.sqlite",
     "torch-cpu-attention.json", "gaps-and-copies.cuda-authored.json"],
)  # fmt: skip
def test_the_parts_of_a_bar_add_up_to_its_wall_time_exactly(name):
    chart = chart_of(SAMPLES / name)
    assert [sum(part.ns for part in bar.parts) for bar in chart.bars] == [bar.wall_ns for bar in chart.bars]
    drawn = bars(waterfall_svg(chart))
    assert [sum(ns for ns, _, _ in bar) for bar in drawn] == [bar.wall_ns for bar in chart.bars]
    for bar in drawn:  # No part lies on another one, and none leaves a hole.
        for (_, x, width), (_, following, _) in itertools.pairwise(bar):
            assert x + width == pytest.approx(following, abs=0.011)


def test_stages_of_the_sample_by_name():
    chart = chart_of(SAMPLES / "flash-requested-math-ran.cuda-authored.json.gz")
    assert chart.names == ("denoise", "vae_decode", "text_encoder", UNATTRIBUTED)
    assert [one.ns for one in chart.means] == [8_028_443, 1_978_323, 207_907, 9_789]
    assert (chart.steps, len(chart.bars), chart.on_device, chart.within) == (3, 3, True, None)
    text = waterfall_svg(chart)
    assert ">denoise<" in text  # In the bar,
    assert "denoise: 8.028 ms (78.5 %), of it idle 71.01 us" in text  # and in the legend.


def test_without_a_device_nothing_is_said_to_be_idle():
    chart = chart_of(SAMPLES / "torch-cpu-attention.json")
    assert not chart.on_device
    svg = waterfall_svg(chart)
    assert "idle" not in svg.replace("idle-", "")
    assert "<pattern" not in svg


def test_labels_tell_ranks_apart():
    labels = [bar.label for bar in chart_of(SAMPLES / "two-ranks").bars]
    assert labels == [f"ProfilerStep#{step}, rank {rank} device {rank}" for rank in (0, 1) for step in (0, 1)]


def bar(label, *parts):
    return StepBar(label, sum(busy + idle for _, busy, idle in parts), tuple(PartOfStep(*part) for part in parts))


def chart(*rows, within=None):
    names = tuple(dict.fromkeys(part.name for row in rows for part in row.parts))
    means = tuple(PartOfStep(name, 1000, 0) for name in names)
    return Waterfall(names, rows, means, len(rows), by_stage=True, on_device=True, within=within)


def test_names_of_a_trace_are_text_and_nothing_else():
    svg = waterfall_svg(chart(bar(HOSTILE, (HOSTILE, 500, 500), ("b", 1, 0))), title=HOSTILE)
    root = parsed(svg)
    assert {one.tag for one in root.iter()} <= {
        f"{SVG}{tag}" for tag in ("svg", "title", "rect", "text", "defs", "pattern")
    }
    assert not [name for one in root.iter() for name in one.attrib if name.startswith("on") or "href" in name]
    assert "\x1b" not in svg
    assert "\u202e" not in svg
    assert len(svg) < 20_000


def test_a_name_that_does_not_fit_its_part_is_left_out_and_not_cut_to_nonsense():
    # 10 of 100 parts are 60 units wide: room for 7 letters.
    svg = waterfall_svg(chart(bar("step", ("idle: async wait", 10, 0), ("ab", 8, 0), ("denoise", 82, 0))))
    written = [one.text for one in parsed(svg).iter(f"{SVG}text")]
    assert "ab" in written
    assert "denoise" in written
    assert not [one for one in written if "…" in one or "..." in one]
    assert any(one.startswith("idle: async wait: ") for one in written), "the legend has it"


def test_a_long_name_may_lose_a_few_letters():
    name = "a" * 24 + "b" * 24
    svg = waterfall_svg(chart(bar("step", (name, 1000, 0))), width=420)
    (words,) = [
        one.text for one in parsed(svg).iter(f"{SVG}text") if one.text.startswith("aaa") and ":" not in one.text
    ]
    assert len(name) * 2 / 3 <= len(words) < len(name)


def test_a_bar_of_no_length_and_no_bars_at_all():
    assert bars(waterfall_svg(chart(StepBar("empty", 0, ())))) == []
    assert parsed(waterfall_svg(Waterfall((), (), (), 0, by_stage=True, on_device=True))) is not None


def test_the_parts_of_a_stage_that_is_nearly_everything_with_the_small_ones_together():
    chart = chart_of(SAMPLES / "torch-cpu-recompiles.json.gz")
    assert chart.within == "forward"
    assert all(name.startswith("forward") for name in chart.names if name not in {OTHERS, UNATTRIBUTED})
    assert OTHERS in chart.names
    assert len(chart.names) == 9
    assert [sum(part.ns for part in one.parts) for one in chart.bars] == [one.wall_ns for one in chart.bars]


def test_many_steps_on_several_devices_without_stages(corpus):
    chart = chart_of(corpus / "xprof" / "tpu-v6e-inference.xplane.pb")
    assert (chart.steps, chart.by_stage) == (400, False)
    assert len(chart.bars) == MOST_STEPS
    waiting = next(one.ns for one in chart.means if one.name == "async wait")
    assert 0.96 < waiting / sum(one.ns for one in chart.means) < 0.98
    assert chart.names[0] == "compute"


def test_the_account_of_a_step_as_a_bar():
    svg = accounting_svg([("device 0", [("compute", 700), ("idle: launch", 200), ("unattributed", 100)])])
    assert [[ns for ns, _, _ in bar] for bar in bars(svg)] == [[700, 200, 100]]
    assert "compute: 700 ns (70.0 %)" in svg
    assert part_colour("idle: launch") == PARTS["idle"]


@pytest.mark.parametrize("theme", THEMES)
def test_themes(theme):
    svg = waterfall_svg(chart(bar("step", ("a", 10, 0))), theme=theme)
    assert ("var(--" in svg) is (theme == "page")
    if theme != "page":
        assert THEMES[theme].ground in svg


def test_png(tmp_path):
    pytest.importorskip("vl_convert")
    from traceview.render.waterfall_svg import svg_to_png

    png = svg_to_png(waterfall_svg(chart(bar("step", ("a", 10, 5))), theme="light"), scale=1)
    assert png.startswith(b"\x89PNG")


def simulated(colour, kind):
    """A colour as somebody without one kind of cones sees it (Vienot, Brettel and Mollon 1999), as CIE Lab."""
    rgb = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_lms = np.array([[17.8824, 43.5161, 4.11935], [3.45565, 27.1554, 3.86714], [0.0299566, 0.184309, 1.46709]])
    lms = to_lms @ linear
    if kind == "protan":
        lms[0] = 2.02344 * lms[1] - 2.52581 * lms[2]
    elif kind == "deutan":
        lms[1] = 0.494207 * lms[0] + 1.24827 * lms[2]
    linear = np.clip(np.linalg.inv(to_lms) @ lms, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    f = np.cbrt(xyz / np.array([0.9505, 1.0, 1.089]))
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("kind", ["protan", "deutan", "all cones"])
def test_neighbouring_stages_differ_for_people_who_see_few_colours(kind):
    """Neighbours in a bar are neighbours in the list; 10 is a difference that nobody overlooks in areas."""
    labs = [simulated(colour, kind) for colour in STAGES]
    assert min(float(np.linalg.norm(a - b)) for a, b in itertools.pairwise(labs)) > 10


def test_letters_in_a_part_stand_out_from_it():
    """Contrast of at least 4.5 between a name and the colour it stands on (WCAG 2.2, 1.4.3)."""

    def luminance(colour):
        rgb = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ np.array([0.2126, 0.7152, 0.0722]))

    names = [f"stage {n}" for n in range(8)]
    svg = waterfall_svg(chart(bar("step", *((name, 1000, 0) for name in names))), width=2400)
    pairs = re.findall(r'fill="(#\w{6})" data-ns.*?</rect>\n<text [^>]*fill="(#\w{6})"', svg)
    assert len(pairs) == 8
    for ground, ink in pairs:
        light, dark = sorted((luminance(ground), luminance(ink)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (ground, ink)
