"""What a user does with the dashboard, done by a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
MATH = SAMPLES / "flash-requested-math-ran.cuda-authored.json.gz"
FLASH = SAMPLES / "flash-requested-flash-ran.cuda-authored.json.gz"
NSYS = SAMPLES / "two-ranks.nsys-authored.sqlite"
TPU = SAMPLES / "xprof" / "jax-tpu-unfused.xprof-authored.xplane.pb"

HEADLINE = "[class*=st-key-headline]"


def drop(page, address, *files):
    """Drop files on the first page."""
    page.goto(address)
    page.locator("input[type=file]").first.set_input_files([str(file) for file in files])


def answered(page, address, *files):
    """Drop files and wait for the answer."""
    drop(page, address, *files)
    found = page.locator(HEADLINE).first
    found.wait_for()
    return found


def to(page, name):
    page.get_by_role("link", name=name, exact=True).first.click()


@pytest.mark.parametrize(
    ("file", "says"),
    [
        pytest.param(MATH, "6 SDPA calls fell back to math: 21.839 ms of device time", id="kineto"),
        pytest.param(NSYS, "6 SDPA calls fell back to math", id="nsys"),
        pytest.param(TPU, "8 attention calls of XLA ran unfused: 2.400 ms of device time", id="xprof"),
    ],
)
def test_a_dropped_trace_is_answered_on_the_first_screen_and_fills_every_page(page, dashboard, keep, wait, file, says):
    found = answered(page, dashboard, file)
    assert found.inner_text().startswith(says)
    box = found.bounding_box()
    assert box["y"] + box["height"] < 800
    assert re.search(r"/overview\?trace=[0-9a-f]{16}", page.url)
    keep("overview")
    for name, expected in (("Dispatch", "Failed"), ("Gaps", "idle"), ("Recompiles & transfers", "compil")):
        to(page, name)
        page.get_by_text(re.compile(expected, re.IGNORECASE)).first.wait_for()
        wait()
        assert page.locator("[data-testid=stException]").count() == 0, name
        keep(name.split(maxsplit=1)[0].lower())
    to(page, "Timeline")
    page.locator("canvas[aria-roledescription=timeline][data-draws]").wait_for()


def test_a_row_of_the_dispatch_table_shows_its_evidence(page, dashboard, wait):
    answered(page, dashboard, SAMPLES / "mixed-backends.cuda-authored.json")
    to(page, "Dispatch")
    table = page.locator("[data-testid=stDataFrame]").first
    table.wait_for()
    wait()
    before = page.locator("[data-testid=stMain]").inner_text()
    box = table.bounding_box()
    # The rows are drawn on a canvas; the box to choose one is at their left edge. This is the second row.
    page.mouse.click(box["x"] + 15, box["y"] + 35 + 35 + 17)
    page.wait_for_url(re.compile(r"[?&]row=\d"))
    wait()
    after = page.locator("[data-testid=stMain]").inner_text()
    said = "attention: mem-efficient (pytorch): 2 calls of aten::scaled_dot_product_attention"
    assert said not in before
    assert said in after
    assert "flash by F1: query, key and value are float32." in after


def test_two_traces_are_compared(page, dashboard, wait, keep):
    answered(page, dashboard, FLASH)
    to(page, "Compare")
    page.get_by_text("Open another trace").first.click()
    page.locator("input[type=file]").first.set_input_files(str(MATH))
    page.wait_for_url(re.compile(r"before=[0-9a-f]{16}.*after=[0-9a-f]{16}|after=[0-9a-f]{16}.*before=[0-9a-f]{16}"))
    page.get_by_text(re.compile("times as long|as long|slower")).first.wait_for()
    wait()
    keep("compared")
    assert page.locator("[data-testid=stException]").count() == 0
    said = page.locator(HEADLINE).first.inner_text()
    assert said.startswith("Slower: a step takes 10.22 ms instead of 3.211 ms (3.18x as long")
    page.reload()
    page.locator(HEADLINE).first.wait_for()
    assert page.locator(HEADLINE).first.inner_text() == said


def test_several_files_are_the_ranks_of_one_run(page, dashboard):
    folder = SAMPLES / "two-ranks"
    answered(page, dashboard, *sorted(folder.glob("rank?.cuda-authored.json")))
    to(page, "Timeline")
    canvas = page.locator("canvas[aria-roledescription=timeline][data-draws]")
    canvas.wait_for()
    assert canvas.get_attribute("aria-label").startswith("Timeline of 262 events in 13 lanes over ")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param("text.json", r"text\.json: .*not a trace", id="no-trace"),
        pytest.param("nsys.authored.nsys-rep", r"nsys\.authored\.nsys-rep: .*nsys export", id="raw-report"),
    ],
)
def test_a_file_that_is_no_trace_is_told_in_one_line(page, dashboard, name, says):
    drop(page, dashboard, SAMPLES / "bad" / name)
    problem = page.locator("[class*=st-key-problem]").first
    problem.wait_for()
    text = problem.inner_text()
    assert re.search(says, text, re.DOTALL), text
    assert "Traceback" not in page.locator("body").inner_text()


def test_a_broken_file_is_told_with_what_was_still_read(page, dashboard):
    found = answered(page, dashboard, SAMPLES / "bad" / "cut.json.gz")
    assert found.inner_text()
    body = page.locator("[data-testid=stMain]").inner_text()
    assert re.search(r"trust: (limited|poor)", body), body
    assert "Traceback" not in body


class TestDark:
    @pytest.fixture
    def scheme(self):
        return "dark"

    def test_the_dark_theme_reaches_page_and_timeline(self, page, dashboard, keep):
        answered(page, dashboard, NSYS)
        keep("overview")
        to(page, "Timeline")
        canvas = page.locator("canvas[aria-roledescription=timeline][data-draws]")
        canvas.wait_for()
        ground = page.locator("[data-testid=stApp]").evaluate("app => getComputedStyle(app).backgroundColor")
        assert max(map(int, re.findall(r"\d+", ground)[:3])) < 60
        corner = canvas.evaluate("c => [...c.getContext('2d').getImageData(2, 2, 1, 1).data]")
        assert max(corner[:3]) < 60


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


def test_words_of_a_trace_stay_words_on_every_page(page, dashboard, tmp_path, wait):
    answered(page, dashboard, hostile(tmp_path / "names.json"))
    for name in ("Overview", "Dispatch", "Gaps", "Recompiles & transfers", "Timeline"):
        to(page, name)
        page.wait_for_url(re.compile(name.split()[0].lower()))
        wait()
        assert page.locator("img[src=x], a[href^=javascript]").count() == 0, name
    canvas = page.locator("canvas[aria-roledescription=timeline][data-draws]")
    canvas.wait_for()
    box = canvas.bounding_box()
    # The kernel is the long bar in the lane of the stream: pointing at it shows its name as it is.
    page.mouse.move(box["x"] + 216 + (box["width"] - 216) * 75 / 205, box["y"] + 40 + 22 + 8)
    tip = page.locator(".tv-tip")
    tip.wait_for()
    assert tip.inner_text().startswith(HOSTILE + "kernel")
    page.mouse.down()
    page.mouse.up()
    page.get_by_role("heading", name="Selected event").wait_for()
    wait()
    assert page.locator("img[src=x], a[href^=javascript]").count() == 0
    assert page.evaluate("window.hit") is None
