"""The report as one page: complete, self-contained, without script, and safe whatever a trace calls things."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import sample_traces
from traceview import load
from traceview.gate import check
from traceview.render.html_parts import STYLE, words
from traceview.render.report_html import ReportPage, report_html
from traceview.report import report
from traceview.waterfall import waterfall

SAMPLES = Path(sample_traces.__file__).parent
MOST_BYTES = 300_000
VOID = {"meta", "link", "br", "img", "hr", "input"}
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)><a href="javascript:1">**b** $x$ \x1b[31m\u202e'


def page(path):
    timeline = load(path)
    result = report(timeline)
    chart = waterfall(timeline, result.time.table, result.trace.devices) if result.time else None
    return report_html(ReportPage(result, check(timeline), chart))


class Read(HTMLParser):
    """Elements with their attributes, and the text; fails where tags do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def math_page():
    return page(SAMPLES / "flash-requested-math-ran.cuda-authored.json.gz")


def test_the_page_holds_the_answer_and_its_evidence(math_page):
    text = " ".join(Read(math_page).text)
    for words_ in (
        "A step takes 10.22 ms (median of 3)",
        "✗ Failed",
        "Steps by stage",
        "TV102",
        "to win",
        "fix",
        "What was asked for and what ran",
        "attention: math",
        "✗ slow",
        "Idle time by cause",
        "Import: trust good",
        "NVIDIA H100 80GB HBM3",
        "denoise",
    ):
        assert words_ in text, words_


@pytest.mark.parametrize(
    "name",
    ["two-ranks", "two-ranks.nsys-authored.sqlite", "no-device-work.cuda-authored.json", "torch-cpu-recompiles.json.gz",
     "graph-replay.cuda-authored.json", "rocm.hip-authored.json"],
)  # fmt: skip
def test_every_kind_of_trace_has_a_page(name):
    text = page(SAMPLES / name)
    Read(text)
    assert len(text.encode()) < MOST_BYTES


def test_nothing_runs_and_nothing_is_fetched(math_page):
    read = Read(math_page)
    assert {tag for tag, _ in read.elements} & {"script", "link", "img", "iframe", "object", "form", "base"} == set()
    attributes = [(name, value) for _, attrs in read.elements for name, value in attrs.items()]
    assert [name for name, _ in attributes if name.startswith("on") or name in {"src", "href", "style"}] == []
    assert set(re.findall(r"https?://[^\s\"<]+", math_page)) <= {"http://www.w3.org/2000/svg"}
    assert re.findall(r"url\((?!#)", math_page) == []


def test_the_policy_allows_its_own_style_sheet_alone(math_page):
    policies = [attrs["content"] for tag, attrs in Read(math_page).elements if attrs.get("http-equiv")]
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    assert policies == [f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"]
    assert f"<style>{STYLE}</style>" in math_page


def test_tables_are_for_everybody(math_page):
    elements = Read(math_page).elements
    assert elements[0][0] == "html"
    assert elements[0][1] == {"lang": "en"}
    heads = [attrs.get("scope") for tag, attrs in elements if tag == "th"]
    assert {"col", "row"} == set(heads)
    assert [tag for tag, _ in elements if tag == "h1"] == ["h1"]
    assert all(attrs.get("aria-label") for tag, attrs in elements if tag == "svg" or attrs.get("role") == "region")


def test_what_a_trace_calls_things_is_text(tmp_path):
    original = json.loads((SAMPLES / "compiled.cuda-authored.json").read_text())
    for event in original["traceEvents"]:
        if event.get("cat") in {"kernel", "user_annotation", "cpu_op"} and "ProfilerStep" not in event["name"]:
            event["name"] = HOSTILE + event["name"]
    path = tmp_path / 'x"><script>alert(3)<.json'.replace("/", "")
    path.write_text(json.dumps(original))
    text = page(path)
    read = Read(text)
    assert {tag for tag, _ in read.elements} & {"script", "img", "a"} == set()
    assert [name for _, attrs in read.elements for name in attrs if name.startswith("on")] == []
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "alert(1)" in "".join(read.text)  # It is there, as text.


def test_names_without_end_do_not_make_a_page_without_end(tmp_path):
    original = json.loads((SAMPLES / "compiled.cuda-authored.json").read_text())
    for event in original["traceEvents"]:
        if event.get("cat") == "kernel":
            event["name"] += "<" + "a&" * 50_000 + ">"
    path = tmp_path / "t.json"
    path.write_text(json.dumps(original))
    assert len(page(path).encode()) < MOST_BYTES


def test_the_folder_of_the_trace_is_not_told(tmp_path):
    folder = tmp_path / "home-of-somebody"
    folder.mkdir()
    path = folder / "t.json"
    path.write_bytes((SAMPLES / "compiled.cuda-authored.json").read_bytes())
    assert "home-of-somebody" not in page(path)


def test_escaping():
    assert words("<a href='x'>&\"\x00") == "&lt;a href=&#x27;x&#x27;&gt;&amp;&quot;\\x00"


def test_real_traces(corpus):
    """The unfused attention of the model leads to its finding, the TPU to its waits."""
    owl = " ".join(Read(page(corpus / "pytorch" / "owlv2-large-h100.json.gz")).text)
    assert "180 attention calls ran unfused" in owl
    assert "86.9 % of busy time" in owl
    assert "Use scaled_dot_product_attention" in owl
    tpu = page(corpus / "xprof" / "tpu-v6e-inference.xplane.pb")
    assert "waits for asynchronous work 97.0 %" in " ".join(Read(tpu).text)
    assert len(tpu.encode()) < MOST_BYTES
