"""``traceview report --html``: where the page goes, and what it never writes over."""

from __future__ import annotations

import shutil

import pytest

NAME = "compiled.cuda-authored.json"


def test_the_page_alone(run, samples, tmp_path):
    out = tmp_path / "out.html"
    done = run("report", samples / NAME, "--html", out)
    size = out.stat().st_size / 1000
    assert (done.code, done.err) == (0, "")
    assert done.out == f"wrote {out}: the report as one page, {size:.2f} kB. Open it in a browser, or send it.\n"
    assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert run("report", samples / NAME, "--format", "html").out == out.read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["text", "json", "markdown", "html"])
def test_beside_what_format_asks_for(run, samples, tmp_path, form):
    out = tmp_path / "out.html"
    done = run("report", samples / NAME, "--html", out, "--format", form)
    assert done.code == 0
    assert done.out == run("report", samples / NAME, "--format", form).out
    assert done.err.startswith(f"traceview: note: wrote {out}: the report as one page, ")
    assert done.err.count("\n") == 1
    assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_file_that_exists_is_replaced_only_by_force(run, samples, tmp_path):
    out = tmp_path / "out.html"
    out.write_text("mine")
    done = run("report", samples / NAME, "--html", out)
    assert (done.code, done.out) == (2, "")
    assert "the file exists. Choose another name, or replace it with --force." in done.err
    assert out.read_text() == "mine"
    assert run("report", samples / NAME, "--html", out, "--force").code == 0
    assert out.read_text(encoding="utf-8") != "mine"


def test_a_trace_is_never_written_over(run, samples, tmp_path):
    trace = tmp_path / "t.json"
    shutil.copy(samples / NAME, trace)
    before = trace.read_bytes()
    (tmp_path / "hard.json").hardlink_to(trace)
    for given in (trace, tmp_path / "hard.json"):
        done = run("report", trace, "--html", given, "--force")
        assert done.code == 2
        assert "would be overwritten" in done.err
    folder = run("report", tmp_path, "--html", trace, "--force")
    assert folder.code == 2
    assert trace.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--html", "."), "that is a folder"),
        (("--html", "nowhere/out.html"), "there is no folder nowhere"),
        (("--force",), "it belongs to --html"),
    ],
)
def test_mistakes(run, samples, tmp_path, monkeypatch, options, why):
    monkeypatch.chdir(tmp_path)
    done = run("report", samples / NAME, *options)
    assert (done.code, done.out) == (2, "")
    assert why in done.err
