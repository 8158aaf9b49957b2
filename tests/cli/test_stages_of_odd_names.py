"""``stages`` and ``steps`` on names that a hostile or careless program writes; authored events."""

from __future__ import annotations

import json

import pytest

BREAKING = "x\n\n# Heading\n\x1b]0;title\x07 **y** | <b>z</b> \u202eabc @octocat"


def annotation(name, ts, dur, tid=1):
    return {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur}


def work(ts, run_at, dur, correlation):
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": ts, "dur": 1}
    ran = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": run_at, "dur": dur}
    return [
        {**call, "args": {"correlation": correlation}},
        {**ran, "args": {"correlation": correlation, "device": 0, "stream": 7}},
    ]


@pytest.fixture
def trace(tmp_path):
    def write(*names, steps=4, lasting=250):
        events = []
        for step in range(steps):
            start = 1000 * step
            events.append(annotation(f"ProfilerStep#{step}", start, 990))
            for at, name in enumerate(names):
                events.append(annotation(name, start + 10 + 300 * at, lasting))
                events += work(start + 20 + 300 * at, start + 30 + 300 * at, 200, 10 * step + at)
        path = tmp_path / "trace.json"
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        return path

    return write


@pytest.mark.parametrize("form", ["markdown", "text"])
@pytest.mark.parametrize("command", ["stages", "steps", "gaps", "recompiles", "transfers"])
def test_no_name_reaches_the_page_raw(command, form, trace, run):
    path = trace(f"traceview.stage:{BREAKING}", BREAKING, f"execute_diffusion_1_64x64{BREAKING}")
    out = run(command, path, "--format", form).out
    assert not set(out) & set("\x1b\x07\u202e\r")
    assert "# Heading" not in {line.strip() for line in out.splitlines()}
    if form == "markdown":
        assert "<b>" not in out
        assert "@octocat" not in out
        assert out.startswith(f"## traceview {command}\n\n**")
        assert out.splitlines()[2].endswith("**")


def test_a_name_of_a_megabyte_is_shortened_everywhere(trace, run):
    path = trace("traceview.stage:" + "A" * 1_000_000, "B" * 1_000_000)
    for form in ("text", "markdown"):
        assert max(map(len, run("stages", path, "--format", form).out.splitlines())) < 600
    assert run("report", path).out.splitlines()[0].startswith("A step takes")
    assert max(map(len, run("report", path).out.splitlines())) <= 100


def test_a_stage_called_unattributed_stands_in_quotes(trace, run):
    out = run("stages", trace("traceview.stage:Unattributed")).out
    first = [line.split("  ")[1] for line in out.splitlines() if "nattributed" in line and line.startswith("  ")]
    assert first[:2] == ['"Unattributed"', "Unattributed"]
    assert out.startswith('Longest stage: "Unattributed", ') or '"Unattributed"' in out.splitlines()[0]


def test_the_headline_calls_only_the_longest_the_longest(tmp_path, run):
    """The outer stage holds nearly all of the time: what leads is its longest part, and says that it is a part."""
    events = []
    for step in range(3):
        start = 1000 * step
        events += [annotation(f"ProfilerStep#{step}", start, 1000), annotation("traceview.stage:model", start + 5, 990)]
        events += [
            annotation("traceview.stage:body", start + 10, 800),
            annotation("traceview.stage:head", start + 820, 90),
        ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    out = " ".join(run("stages", path).out.split())
    assert out.startswith("model takes 99.0 % of the time; its longest part: body, 80.0 % of the time; ")


def test_the_legend_explains_the_columns_that_are_there(trace, run):
    out = " ".join(run("stages", trace("traceview.stage:a")).out.split())
    assert "2x: if the stage is twice as fast, gone: if it takes no time." in out
    assert "floor" not in out


def test_what_rounds_to_nothing_is_not_nothing(tmp_path, run):
    """A stage of 4 us in a step of 200 s."""
    events = [annotation("ProfilerStep#0", 0, 200_000_000), annotation("traceview.stage:a", 10, 4), *work(11, 12, 2, 1)]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    out = run("stages", path).out
    row = next(line for line in out.splitlines() if line.startswith("  a "))
    assert row.split()[2:5] == ["<0.001", "<0.1", "%"]
    assert "In no stage: 99.9 %." in out
    assert "99.9 % of the time is in no stage" in out
