"""What a user does with the dashboard, done by a browser."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from in_browser import EXCEPTION, HEADLINE, LAST, address, again, drawn, expect, row_of, settled, to, told

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
MATH = SAMPLES / "flash-requested-math-ran.cuda-authored.json.gz"
FLASH = SAMPLES / "flash-requested-flash-ran.cuda-authored.json.gz"
NSYS = SAMPLES / "two-ranks.nsys-authored.sqlite"
TPU = SAMPLES / "xprof" / "jax-tpu-unfused.xprof-authored.xplane.pb"


def drop(page, address, *files):
    """Drop files on the first page."""
    page.goto(address)
    page.locator("input[type=file]").first.set_input_files([str(file) for file in files])


def answered(page, address, *files):
    """Drop files and wait for the whole answer."""
    drop(page, address, *files)
    page.get_by_role("heading", name=LAST["Overview"], exact=True).wait_for()
    settled(page)
    return page.locator(HEADLINE).first


def main(page):
    return page.locator("[data-testid=stMain]")


@pytest.mark.parametrize(
    ("file", "says"),
    [
        pytest.param(MATH, "6 SDPA calls fell back to math: 21.839 ms of device time", id="kineto"),
        pytest.param(NSYS, "6 SDPA calls fell back to math", id="nsys"),
        pytest.param(TPU, "8 attention calls of XLA ran unfused: 2.400 ms of device time", id="xprof"),
    ],
)
def test_a_dropped_trace_is_answered_on_the_first_screen_and_fills_every_page(page, dashboard, keep, file, says):
    found = answered(page, dashboard, file)
    expect(found).to_have_text(re.compile(f"^{re.escape(says)}"))
    page.wait_for_function("e => e.getBoundingClientRect().bottom < 800", arg=found.element_handle())
    page.wait_for_url(re.compile(r"/overview\?trace=[0-9a-f]{16}"))
    keep("overview")
    for name, expected in (("Dispatch", "Failed"), ("Gaps", "idle"), ("Recompiles & transfers", "compil")):
        to(page, name)
        expect(main(page)).to_contain_text(re.compile(expected, re.IGNORECASE))
        assert page.locator(EXCEPTION).count() == 0, name
        keep(name.split(maxsplit=1)[0].lower())
    to(page, "Timeline")
    drawn(page)


def test_a_row_of_the_dispatch_table_shows_its_evidence(page, dashboard):
    answered(page, dashboard, SAMPLES / "mixed-backends.cuda-authored.json")
    to(page, "Dispatch")
    said = "attention: mem-efficient (pytorch): 2 calls of aten::scaled_dot_product_attention"
    expect(main(page)).not_to_contain_text(said)
    row_of(page.locator("[data-testid=stDataFrame]").first, 1)
    told(page, row="1")
    expect(main(page)).to_contain_text(said)
    expect(main(page)).to_contain_text("flash by F1: query, key and value are float32.")


def test_two_traces_are_compared(page, dashboard, keep):
    answered(page, dashboard, FLASH)
    before = address(page)["trace"]
    to(page, "Compare")
    # With one trace open the page has the way to open another unfolded, else it is to be unfolded.
    fold = page.get_by_text("Open another trace").first
    fold.wait_for()
    drop_zone = page.locator("input[type=file]").first
    if not page.locator("details[open]").filter(has_text="Open another trace").count():
        fold.click()
    drop_zone.set_input_files(str(MATH))
    said = re.compile(r"^Slower: a step takes 10\.22 ms instead of 3\.211 ms \(3\.18x as long")
    expect(page.locator(HEADLINE).first).to_have_text(said)
    told(page, before=before, after=re.compile("(?!" + before + ")[0-9a-f]{16}"))
    settled(page)
    keep("compared")
    assert page.locator(EXCEPTION).count() == 0
    page.reload()
    expect(page.locator(HEADLINE).first).to_have_text(said)


def test_several_files_are_the_ranks_of_one_run(page, dashboard):
    folder = SAMPLES / "two-ranks"
    answered(page, dashboard, *sorted(folder.glob("rank?.cuda-authored.json")))
    to(page, "Timeline")
    expect(drawn(page)).to_have_attribute("aria-label", re.compile("^Timeline of 262 events in 13 lanes over "))


def test_a_finding_leads_to_its_longest_event_and_a_trace_can_be_removed(page, dashboard):
    answered(page, dashboard, TPU)
    trace = address(page)["trace"]
    page.locator("[class*=st-key-finding-0]").get_by_role("link", name="Show it on the timeline").first.click()
    canvas = drawn(page)
    page.get_by_role("heading", name="Selected event").wait_for()
    event = told(page, trace=trace, event=re.compile(r"\d+"))["event"]
    expect(canvas).to_have_attribute("data-chosen", event)
    to(page, "Open")
    known = page.locator(f".st-key-known-{trace}")
    known.get_by_role("button", name="Remove").click()
    known.wait_for(state="detached")
    page.goto(f"{dashboard}/overview?trace={trace}")
    page.get_by_text("This server does not have the trace of this link").wait_for()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param("text.json", r"text\.json: .*not a trace", id="no-trace"),
        pytest.param("nsys.authored.nsys-rep", r"nsys\.authored\.nsys-rep: .*nsys export", id="raw-report"),
    ],
)
def test_a_file_that_is_no_trace_is_told_in_one_line(page, dashboard, name, says):
    drop(page, dashboard, SAMPLES / "bad" / name)
    expect(page.locator("[class*=st-key-problem-0]").first).to_contain_text(re.compile(says, re.DOTALL))
    settled(page)
    assert "Traceback" not in page.locator("body").inner_text()


def test_a_broken_file_is_told_with_what_was_still_read(page, dashboard):
    found = answered(page, dashboard, SAMPLES / "bad" / "cut.json.gz")
    expect(found).to_have_text(re.compile(r"\w"))
    expect(main(page)).to_contain_text(re.compile(r"trust: (limited|poor)"))
    assert "Traceback" not in main(page).inner_text()


class TestDark:
    @pytest.fixture
    def scheme(self):
        return "dark"

    def test_the_dark_theme_reaches_page_and_timeline(self, page, dashboard, keep):
        answered(page, dashboard, NSYS)
        keep("overview")
        to(page, "Timeline")
        ground = "e => Math.max(...getComputedStyle(e).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)) < 60"
        page.wait_for_function(ground, arg=page.locator("[data-testid=stApp]").element_handle())
        corner = "e => Math.max(...[...e.getContext('2d').getImageData(2, 2, 1, 1).data].slice(0, 3)) < 60"
        page.wait_for_function(corner, arg=drawn(page).element_handle())


HOSTILE = '<img src=x onerror="window.hit=1"><script>window.hit=2</script> **bold** [x](javascript:window.hit=3)'


def hostile(path):
    """A trace whose every name tries to be more than text."""
    named = {"name": "process_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": HOSTILE}}
    thread = {**named, "name": "thread_name"}
    start = 1_000_000.0
    sdpa = {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::scaled_dot_product_attention",
        "pid": 1,
        "tid": 1,
        "ts": start,
        "dur": 90,
    }
    op = {"ph": "X", "cat": "cpu_op", "name": HOSTILE, "pid": 1, "tid": 1, "ts": start + 1, "dur": 80}
    mark = {
        "ph": "X",
        "cat": "user_annotation",
        "name": "stage " + HOSTILE,
        "pid": 1,
        "tid": 1,
        "ts": start - 5,
        "dur": 200,
    }
    launch = {
        "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": start + 5, "dur": 2,
        "args": {"correlation": 7},
    }  # fmt: skip
    kernel = {
        "ph": "X", "cat": "kernel", "name": HOSTILE + "kernel", "pid": 0, "tid": 7, "ts": start + 20, "dur": 100,
        "args": {"correlation": 7, "device": 0, "stream": 7},
    }  # fmt: skip
    devices = [{"id": 0, "name": HOSTILE, "computeMajor": 9, "computeMinor": 0}]
    events = [named, thread, mark, sdpa, op, launch, kernel]
    path.write_text(
        json.dumps({"schemaVersion": 1, "deviceProperties": devices, "traceEvents": events}), encoding="utf-8"
    )
    return path


def test_words_of_a_trace_stay_words_on_every_page(page, dashboard, tmp_path):
    answered(page, dashboard, hostile(tmp_path / "names.json"))
    for name in ("Overview", "Dispatch", "Gaps", "Recompiles & transfers", "Timeline"):
        to(page, name)
        assert page.locator("img[src=x], a[href^=javascript]").count() == 0, name
    canvas = drawn(page)
    # The kernel is the long bar in the lane of the stream: pointing at it shows its name as it is.
    width = canvas.bounding_box()["width"] - 216
    tip = page.locator(".tv-tip")
    places = itertools.cycle({"x": 216 + width * share / 205, "y": 40 + 22 + 8} for share in (75, 80))
    again(lambda: canvas.hover(position=next(places)), tip.is_visible, page)
    expect(tip).to_contain_text(HOSTILE + "kernel")
    canvas.click(position=next(places))
    page.get_by_role("heading", name="Selected event").wait_for()
    settled(page)
    assert page.locator("img[src=x], a[href^=javascript]").count() == 0
    assert page.evaluate("window.hit") is None
