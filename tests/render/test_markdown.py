"""Names from a trace have no power over a Markdown report, and the report stays within its size."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from authored_outcomes import EVIL, EXPECTED, FAIL, HOSTILE, MATH, OUTCOMES, dispatch, table
from traceview.render.markdown import code, inert, render_markdown
from traceview.render.outcome import shortened

GFM = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
OURS = {
    "h2", "h3", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code", "details", "summary", "b", "ul", "li", "br"
}  # fmt: skip


def tags(page):
    return {match[1] for match in re.finditer(r"<(/?[A-Za-z!][^\s>/]*)", page)}


@pytest.mark.parametrize("name", OUTCOMES)
def test_only_our_own_elements_come_out(name):
    page = GFM.render(render_markdown(OUTCOMES[name]))
    assert {tag.removeprefix("/") for tag in tags(page)} <= OURS
    assert page.count("<details>") == page.count("</details>") == len(OUTCOMES[name].findings)


@pytest.mark.parametrize("name", OUTCOMES)
def test_every_row_has_the_cells_of_its_heading(name):
    lines = render_markdown(OUTCOMES[name]).splitlines()
    for at, line in enumerate(lines):
        if line.startswith("|") and not lines[at - 1].startswith("|"):
            width = line.count("|")
        if line.startswith("|"):
            assert line.count("|") == width, line


def test_a_hostile_name_is_shown_and_nothing_else():
    page = GFM.render(
        f"x {inert('`a` **b** <i>c</i> [d](e) | ~~f~~ _g_ &amp; https://h')} {code('`a` | <i>_b_</i> **c**')}"
    )
    assert page == (
        "<p>x `a` **b** &lt;i&gt;c&lt;/i&gt; [d](e) | ~~f~~ _g_ &amp;amp; https://h <code>`a` | &lt;i&gt;_b_&lt;/i&gt; **c**</code></p>\n"
    )


@pytest.mark.parametrize("text", ["@admin", "#12", "a/b#12", "GH-12", "mail@x.example"])
def test_no_mention_and_no_reference(text):
    assert re.search(r"@\w|#\d|GH-\d", inert(text)) is None
    assert inert(text).replace("\u200b", "") == text


@pytest.mark.parametrize(
    "text", ["aten::_softmax", "a_b_c", "f<4, Add<T>>", "dims [[1,16],[2]]", shortened(HOSTILE), "a](b", "a\\"]
)
def test_the_text_survives(text):
    assert html.unescape(GFM.renderInline(inert(text))).replace("\u200b", "") == text


@pytest.mark.parametrize("most_bytes", [4_000, 20_000, 65_000])
def test_a_report_that_would_be_too_long_says_what_is_left_out(most_bytes):
    found = replace(
        EXPECTED,
        expectations=EXPECTED.expectations * 30,
        findings=(MATH,) * 300,
        table=table(*(dispatch(op=f"op{at} " + "é" * 50) for at in range(300))),
    )
    text = render_markdown(found, most_bytes)
    assert len(text.encode()) <= most_bytes
    assert text.splitlines()[-1].startswith("Left out, the report would be too long: ")
    assert text.count("<details>") == text.count("</details>")
    assert text.endswith(" findings, 300 rows of attention calls, 1 note. The JSON output has all.\n")


def test_one_thing_left_out_is_one():
    text = render_markdown(FAIL, len(render_markdown(FAIL).encode()) + 400 - 20)
    assert text.splitlines()[-1] == (
        "Left out, the report would be too long: 1 row of attention calls. The JSON output has all."
    )


def test_a_hostile_report_stays_small():
    assert len(render_markdown(EVIL)) < 20_000
