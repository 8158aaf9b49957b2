"""The timeline in a browser: keys and mouse, the address, what is told below it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import polars as pl
import pytest

from traceview import load

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
MATH = SAMPLES / "flash-requested-math-ran.cuda-authored.json.gz"
CANVAS = "canvas[aria-roledescription=timeline][data-draws]"
GUTTER, TOP = 216, 40


@pytest.fixture(scope="session")
def link(dashboard, contexts):
    """The address of the timeline of a sample that is open; an upload would go with its session."""
    page = contexts("light").new_page()
    page.set_default_timeout(60_000)
    page.goto(dashboard)
    page.get_by_text(re.compile(r"All \d+ samples")).click()
    page.locator(".st-key-sample-flash-requested-math-ran button").first.click()
    page.locator("[class*=st-key-headline]").first.wait_for()
    trace = address(page)["trace"]
    page.close()
    return f"{dashboard}/timeline?trace={trace}"


def opened(page, link):
    page.goto(link)
    canvas = page.locator(CANVAS)
    canvas.wait_for()
    return canvas


def shown(canvas):
    low, high = canvas.get_attribute("data-view").split("-")
    return int(low), int(high)


def address(page):
    return {key: values[0] for key, values in parse_qs(urlsplit(page.url).query).items()}


def until(page, canvas, change, *before):
    """Wait until the canvas is as wanted; ``change`` is an expression in ``c``, its data set, and ``b``."""
    page.wait_for_function(f"([e, b]) => (c => {change})(e.dataset)", arg=[canvas.element_handle(), list(before)])


def span(page, canvas, test):
    """Wait until the length of what is shown passes a test, an expression in ``s``."""
    until(page, canvas, f"(s => {test})(c.view.split('-')[1] - c.view.split('-')[0])")


def told(page, **wanted):
    """Wait until the address says so."""
    for name, value in wanted.items():
        page.wait_for_url(re.compile(rf"[?&]{name}={re.escape(str(value))}(&|$)"))


def test_keys_zoom_and_a_reload_shows_the_same(page, link, keep):
    canvas = opened(page, link)
    whole = shown(canvas)
    canvas.focus()
    for key in ("w", "w", "w", "d"):
        page.keyboard.press(key)
    span(page, canvas, f"s < {(whole[1] - whole[0]) / 3}")
    page.wait_for_url(re.compile(r"[?&]t0=[1-9]"))
    near = shown(canvas)
    assert (near[1] - near[0]) / (whole[1] - whole[0]) == pytest.approx(1.5**-3, rel=0.01)
    told(page, t0=near[0], t1=near[1])
    page.reload()
    canvas.wait_for()
    assert shown(canvas) == near
    keep("after-reload")
    # A page that comes back builds the timeline anew, and gets its events again.
    page.get_by_role("link", name="Gaps", exact=True).first.click()
    canvas.wait_for(state="detached")
    page.get_by_role("link", name="Timeline", exact=True).first.click()
    canvas.wait_for()
    assert shown(canvas) == near
    canvas.focus()
    page.keyboard.press("f")
    until(page, canvas, "c.view === b[0]", f"{whole[0]}-{whole[1]}")
    # The wheel is the page's own until the timeline has the focus; then it zooms where the pointer is.
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + GUTTER + 10, box["y"] + 100)
    page.mouse.wheel(0, -300)
    span(page, canvas, f"s < {0.7 * (whole[1] - whole[0])}")
    assert float(canvas.get_attribute("data-draw-ms")) < 500


def test_search_finds_in_the_whole_trace_and_selects(page, link, wait):
    canvas = opened(page, link)
    canvas.focus()
    page.keyboard.press("/")
    search = page.get_by_role("searchbox", name="Search all events by name")
    search.fill("softmax")
    page.get_by_text(re.compile(r"^\d+ matches$")).wait_for()
    search.press("Enter")
    told(page, q="softmax")
    page.wait_for_url(re.compile(r"event=\d+"))
    first = address(page)["event"]
    page.get_by_role("heading", name="Selected event").wait_for()
    page.get_by_text(re.compile(r"\d+ events with “softmax” in the name")).wait_for()
    wait()
    search.press("Enter")
    page.wait_for_url(re.compile(rf"event=(?!{first}\b)\d+"))
    assert int(address(page)["event"]) > int(first)
    # A row of the table leads to its event.
    table = page.locator("[data-testid=stDataFrame]").last
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    second = int(address(page)["event"])
    page.mouse.click(box["x"] + 15, box["y"] + 35 + 2 * 35 + 17)
    page.wait_for_url(re.compile(rf"event=(?!{second}\b)\d+"))
    assert int(address(page)["event"]) > second
    canvas.focus()
    page.keyboard.press("Escape")
    page.wait_for_url(re.compile(r"^(?!.*event=)"))


def test_a_dragged_area_is_told_in_numbers_and_measured(page, link, wait, keep):
    canvas = opened(page, link)
    box = canvas.bounding_box()
    width = box["width"] - GUTTER
    left, right = box["x"] + GUTTER + width * 0.25, box["x"] + GUTTER + width * 0.75
    page.mouse.move(left, box["y"] + TOP + 26)
    page.mouse.down()
    page.mouse.move(right, box["y"] + TOP + 60, steps=3)
    page.mouse.up()
    page.get_by_role("heading", name="Selected area").wait_for()
    wait()
    now = address(page)
    low, high = shown(canvas)
    assert int(now["a1"]) - int(now["a0"]) == pytest.approx((high - low) / 2, rel=0.02)
    assert "p0d0s7" in now["lanes"].split(",")
    assert page.get_by_text(re.compile(r"events? in [\d.]+ ms; GPU 0 busy [\d.]+ ms \([\d.]+ %\)")).count() == 1
    page.keyboard.press("m")
    keep("measured")


def test_a_drag_ends_where_the_button_is_let_go(page, link, wait):
    """A busy browser may drop the moves in between."""
    canvas = opened(page, link)
    box = canvas.bounding_box()
    width = box["width"] - GUTTER
    left, right = box["x"] + GUTTER + width * 0.25, box["x"] + GUTTER + width * 0.75
    page.mouse.move(left, box["y"] + TOP + 26)
    page.mouse.down()
    canvas.dispatch_event("pointerup", {"clientX": right, "clientY": box["y"] + TOP + 60, "bubbles": True})
    page.get_by_role("heading", name="Selected area").wait_for()
    page.mouse.up()
    wait()
    now = address(page)
    low, high = shown(canvas)
    assert int(now["a1"]) - int(now["a0"]) == pytest.approx((high - low) / 2, rel=0.02)
    assert "p0d0s7" in now["lanes"].split(",")


def test_a_kernel_shows_what_launched_it_and_a_launch_its_kernel(page, link, wait):
    events = load(str(MATH)).events
    kernel = events.filter((pl.col("kind") == "kernel") & pl.col("launch_id").is_not_null()).row(5, named=True)
    for event in (kernel["id"], kernel["launch_id"]):
        canvas = opened(page, f"{link}&event={event}")
        page.wait_for_function("c => c.dataset.flows === '1'", arg=canvas.element_handle())
        page.get_by_role("heading", name="Selected event").wait_for()
    page.get_by_text("It launched 1 piece of device work.").wait_for()
    canvas.focus()
    page.keyboard.press("Escape")
    page.wait_for_function("c => c.dataset.flows === '0'", arg=canvas.element_handle())
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys and mouse").wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("dialog", name="Keys and mouse").wait_for(state="hidden")


def test_an_address_may_name_an_event_alone(page, link):
    page.goto(f"{link}&event=40")
    canvas = page.locator(CANVAS)
    canvas.wait_for()
    page.wait_for_function("c => c.dataset.chosen === '40'", arg=canvas.element_handle())
    low, high = shown(canvas)
    assert high - low < 10**7


def test_what_is_too_much_for_a_browser_is_merged_by_the_server(page, merging_dashboard, wait):
    page.goto(merging_dashboard)
    page.get_by_text(re.compile(r"All \d+ samples")).click()
    page.locator(".st-key-sample-flash-requested-math-ran button").first.click()
    page.locator("[class*=st-key-headline]").first.wait_for()
    page.get_by_role("link", name="Timeline", exact=True).first.click()
    canvas = page.locator(CANVAS)
    canvas.wait_for()
    page.get_by_text("short ones are merged, with their number kept").wait_for()
    whole = shown(canvas)
    coarse = canvas.get_attribute("data-entries")
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + GUTTER + (box["width"] - GUTTER) / 2, box["y"] + 70)
    canvas.focus()
    for _ in range(6):
        page.keyboard.press("w")
    span(page, canvas, f"s < {(whole[1] - whole[0]) / 11}")
    near = shown(canvas)
    told(page, t0=near[0], t1=near[1])
    wait()
    page.wait_for_function("([c, before]) => c.dataset.entries !== before", arg=[canvas.element_handle(), coarse])
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


def test_every_step_from_the_tools_to_an_event_can_be_done_with_keys_alone(page, link, wait, keep):
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
    told = page.locator(".tv-live")
    page.wait_for_function("e => /^gap of/.test(e.textContent)", arg=told.element_handle())
    page.keyboard.press("f")
    # The first event that is shown, the one after it, and one in a row below.
    seen = []
    for key in (".", ".", "Shift+ArrowDown", "Shift+ArrowDown"):
        page.keyboard.press(key)
        until(page, canvas, "c.chosen !== '' && c.chosen !== b[0]", seen[-1] if seen else "")
        seen.append(canvas.get_attribute("data-chosen"))
    events = load(str(MATH)).events
    assert events["name"][int(seen[-1])] in told.inner_text()
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
    wait()
    page.locator("[data-testid=stDataFrame]").last.locator("canvas").first.wait_for()
    for _ in range(20):
        page.keyboard.press("Tab")
        if focused(page)[2] == "data-grid-canvas":
            page.keyboard.press("ArrowDown")
            page.keyboard.press("Shift+Space")
            break
    told_of = re.compile(rf"[?&]event=(?!{seen[-1]}\b)\d+")
    page.wait_for_url(told_of)
    wait()
    assert "softmax" in events["name"][int(address(page)["event"])].lower()
