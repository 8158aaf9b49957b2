"""The timeline in a browser: keys and mouse, the address, what is told below it."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import polars as pl
import pytest

from in_browser import LAST, PATIENCE_MS, again, drawn, expect, row_of, settled, shown, span, to, told, until
from traceview import load

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
MATH = SAMPLES / "flash-requested-math-ran.cuda-authored.json.gz"
GUTTER, TOP = 216, 40


@pytest.fixture(scope="session")
def link(dashboard, contexts):
    """The address of the timeline of a sample that is open; an upload would go with its session."""
    page = contexts("light").new_page()
    page.set_default_timeout(PATIENCE_MS)
    trace = sample(page, dashboard)
    page.close()
    return f"{dashboard}/timeline?trace={trace}"


def sample(page, dashboard):
    """Open a sample on the first page; the id of its trace."""
    page.goto(dashboard)
    page.get_by_text(re.compile(r"All \d+ samples")).click()
    page.locator(".st-key-sample-flash-requested-math-ran button").first.click()
    page.get_by_role("heading", name=LAST["Overview"], exact=True).wait_for()
    return told(page, trace=re.compile("[0-9a-f]{16}"))["trace"]


def opened(page, link):
    page.goto(link)
    canvas = drawn(page)
    # Whatever the page still has to say of what is selected, it has said.
    settled(page)
    return canvas


def test_keys_zoom_and_a_reload_shows_the_same(page, link, keep):
    canvas = opened(page, link)
    whole = shown(canvas)
    canvas.focus()
    for key in ("w", "w", "w", "d"):
        page.keyboard.press(key)
    length = whole[1] - whole[0]
    near = length / 1.5**3
    # Three times closer to the middle, then a part of that to the right.
    start = whole[0] + (length - near) / 2 + 0.15 * near
    until(page, canvas, "Math.abs(c.view.split('-')[0] - b[0]) < 2", start)
    near = shown(canvas)
    assert (near[1] - near[0]) / length == pytest.approx(1.5**-3, rel=0.01)
    told(page, t0=near[0], t1=near[1])
    page.reload()
    assert shown(drawn(page)) == near
    keep("after-reload")
    # A page that comes back builds the timeline anew, and gets its events again.
    to(page, "Gaps")
    to(page, "Timeline")
    assert shown(drawn(page)) == near
    canvas.focus()
    page.keyboard.press("f")
    until(page, canvas, "c.view === b[0]", f"{whole[0]}-{whole[1]}")
    # The wheel is the page's own until the timeline has the focus; then it zooms where the pointer is.
    canvas.hover(position={"x": GUTTER + 10, "y": 100})
    page.mouse.wheel(0, -300)
    span(page, canvas, f"s < {0.7 * length}")
    assert float(canvas.get_attribute("data-draw-ms")) >= 0


def test_search_finds_in_the_whole_trace_and_selects(page, link):
    canvas = opened(page, link)
    canvas.focus()
    page.keyboard.press("/")
    search = page.get_by_role("searchbox", name="Search all events by name")
    expect(search).to_be_focused()
    search.fill("softmax")
    page.get_by_text(re.compile(r"^\d+ matches$")).wait_for()
    search.press("Enter")
    first = told(page, q="softmax", event=re.compile(r"\d+"))["event"]
    page.get_by_role("heading", name="Selected event").wait_for()
    page.get_by_text(re.compile(r"\d+ events with “softmax” in the name")).wait_for()
    search.press("Enter")
    second = told(page, event=re.compile(rf"(?!{first}$)\d+"))["event"]
    assert int(second) > int(first)
    settled(page)
    # A row of the table leads to its event.
    row_of(page.locator(".st-key-timeline-search [data-testid=stDataFrame]"), 2)
    assert int(told(page, event=re.compile(rf"(?!{second}$)\d+"))["event"]) > int(second)
    canvas.focus()
    page.keyboard.press("Escape")
    told(page, event=None)


def dragged(page, canvas):
    """Press the button a quarter into the timeline; where three quarters are."""
    width = canvas.bounding_box()["width"] - GUTTER
    canvas.hover(position={"x": GUTTER + width * 0.25, "y": TOP + 26})
    page.mouse.down()
    box = canvas.bounding_box()
    return box["x"] + GUTTER + width * 0.75, box["y"] + TOP + 60


def half_is_selected(page, canvas):
    page.get_by_role("heading", name="Selected area").wait_for()
    low, high = shown(canvas)
    now = told(page, a0=re.compile(r"\d+"), a1=re.compile(r"\d+"), lanes=re.compile("(.*,)?p0d0s7(,.*)?"))
    assert int(now["a1"]) - int(now["a0"]) == pytest.approx((high - low) / 2, rel=0.02)


def test_a_dragged_area_is_told_in_numbers_and_measured(page, link, keep):
    canvas = opened(page, link)
    right, bottom = dragged(page, canvas)
    page.mouse.move(right, bottom, steps=3)
    page.mouse.up()
    half_is_selected(page, canvas)
    expect(page.get_by_text(re.compile(r"events? in [\d.]+ ms; GPU 0 busy [\d.]+ ms \([\d.]+ %\)"))).to_have_count(1)
    canvas.focus()
    page.keyboard.press("m")
    expect(page.locator(".tv-live")).to_have_text(re.compile("^measured .* ms$"))
    keep("measured")


def test_a_drag_ends_where_the_button_is_let_go(page, link):
    """A busy browser may drop the moves in between."""
    canvas = opened(page, link)
    right, bottom = dragged(page, canvas)
    canvas.dispatch_event("pointerup", {"clientX": right, "clientY": bottom, "bubbles": True})
    half_is_selected(page, canvas)
    page.mouse.up()
    settled(page)
    half_is_selected(page, canvas)


def test_a_kernel_shows_what_launched_it_and_a_launch_its_kernel(page, link):
    events = load(str(MATH)).events
    kernel = events.filter((pl.col("kind") == "kernel") & pl.col("launch_id").is_not_null()).row(5, named=True)
    for event in (kernel["id"], kernel["launch_id"]):
        canvas = opened(page, f"{link}&event={event}")
        until(page, canvas, "c.flows === '1'")
        page.get_by_role("heading", name="Selected event").wait_for()
    page.get_by_text("It launched 1 piece of device work.").wait_for()
    canvas.focus()
    page.keyboard.press("Escape")
    until(page, canvas, "c.flows === '0'")
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys and mouse").wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("dialog", name="Keys and mouse").wait_for(state="hidden")


def test_a_counter_is_drawn_above_the_lanes_and_tells_its_value(page, dashboard, tmp_path, keep):
    """Power is 100 in the first half and 250 in the second."""
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1000.0, "dur": 1000.0}
    power = [
        {"ph": "C", "name": "GPU power", "pid": 1, "tid": 1, "ts": at, "args": {"watt": watt}}
        for at, watt in ((1000.0, 100), (1500.0, 250))
    ]
    file = tmp_path / "power.json"
    file.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [op, *power]}), encoding="utf-8")
    page.goto(dashboard)
    page.locator("input[type=file]").first.set_input_files(str(file))
    page.get_by_role("heading", name=LAST["Overview"], exact=True).wait_for()
    to(page, "Timeline")
    canvas, tip = drawn(page), page.locator(".tv-tip")
    width = canvas.bounding_box()["width"] - GUTTER
    for share, value in ((0.25, "100 since 0 ns"), (0.75, "250 since 500 us")):
        places = itertools.cycle({"x": GUTTER + width * share + more, "y": TOP + 22 + 15} for more in (0, 5))
        again(lambda: canvas.hover(position=next(places)), lambda: value in (tip.text_content() or ""), page)  # noqa: B023 - used at once
    expect(tip).to_contain_text("GPU power · watt")
    keep("pointed-at")
    # Its head folds it away; what is below moves up.
    canvas.click(position={"x": 30, "y": TOP + 11})
    until(page, canvas, "c.counters === '0'")


def test_an_address_may_name_an_event_alone(page, link):
    canvas = opened(page, f"{link}&event=40")
    until(page, canvas, "c.chosen === '40'")
    low, high = shown(canvas)
    assert high - low < 10**7


def test_what_is_too_much_for_a_browser_is_merged_by_the_server(page, merging_dashboard):
    sample(page, merging_dashboard)
    to(page, "Timeline")
    canvas = drawn(page)
    page.get_by_text("short ones are merged, with their number kept").wait_for()
    whole = shown(canvas)
    coarse = canvas.get_attribute("data-entries")
    canvas.focus()
    for _ in range(6):
        page.keyboard.press("w")
    span(page, canvas, f"s < {(whole[1] - whole[0]) / 11}")
    near = shown(canvas)
    told(page, t0=near[0], t1=near[1])
    until(page, canvas, "c.entries !== b[0]", coarse)
    search = page.get_by_role("searchbox", name="Search all events by name")
    search.fill("softmax")
    page.get_by_text(re.compile(r"^\d+ matches$")).wait_for()
    search.press("Enter")
    until(page, canvas, "c.view !== b[0]", f"{near[0]}-{near[1]}")


FOCUSED = """() => {
  let e = document.activeElement;
  while (e.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
  return [e.tagName, e.ariaLabel ?? "", e.dataset.testid ?? ""];
}"""


def focused(page):
    """Tag, label and test id of what has the focus, also inside a component."""
    return page.evaluate(FOCUSED)


def test_every_step_from_the_tools_to_an_event_can_be_done_with_keys_alone(page, link, keep):
    canvas = opened(page, link)
    page.get_by_role("button", name="Zoom out (S)").focus()
    walked = []
    for _ in range(12):
        walked.append(focused(page)[1])
        if walked[-1].startswith("Timeline of"):
            break
        page.keyboard.press("Tab")
    assert walked[:-1] == [
        "Zoom out (S)",
        "Zoom in (W)",
        "Fit the selection or the whole trace (F)",
        "Search all events by name",
        "Match before (Shift+Enter)",
        "Next match (Enter)",
        "Keys and mouse (?)",
    ]
    assert walked[-1].endswith("The tables below hold the same facts as text.")
    # Whoever walks with keys sees where they are.
    ring = canvas.evaluate(
        "c => { const s = getComputedStyle(c); return [s.outlineStyle, parseFloat(s.outlineWidth)] }"
    )
    assert ring[0] == "solid"
    assert ring[1] >= 2
    page.keyboard.press("n")
    live = page.locator(".tv-live")
    expect(live).to_have_text(re.compile("^gap of"))
    page.keyboard.press("f")
    # The first event that is shown, the one after it, and one in a row below.
    seen = []
    for key in (".", ".", "Shift+ArrowDown", "Shift+ArrowDown"):
        page.keyboard.press(key)
        until(page, canvas, "c.chosen !== '' && c.chosen !== b[0]", seen[-1] if seen else "")
        seen.append(canvas.get_attribute("data-chosen"))
    events = load(str(MATH)).events
    expect(live).to_contain_text(events["name"][int(seen[-1])])
    page.get_by_role("heading", name="Selected event").wait_for()
    keep("chosen")
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys and mouse").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog", name="Keys and mouse").wait_for(state="hidden")
    assert focused(page)[0] == "CANVAS"
    # A row of the table of matches, too; without a selected event it is the only table.
    page.keyboard.press("Escape")
    page.get_by_role("heading", name="Selected event").wait_for(state="detached")
    page.keyboard.press("/")
    page.keyboard.type("softmax")
    page.get_by_text(re.compile(r"\d+ events with “softmax” in the name")).wait_for()
    settled(page)
    page.locator(".st-key-timeline-search [data-testid=stDataFrame] canvas").first.wait_for()
    for _ in range(20):
        page.keyboard.press("Tab")
        if focused(page)[2] == "data-grid-canvas":
            break
    assert focused(page)[2] == "data-grid-canvas"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+Space")
    found = told(page, event=re.compile(rf"(?!{seen[-1]}$)\d+"))["event"]
    assert "softmax" in events["name"][int(found)].lower()
