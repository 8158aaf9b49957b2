"""``stages`` and ``steps`` on sample traces: options, forms of the result, and what leads it."""

from __future__ import annotations

import json

import pytest

MATH = "flash-requested-math-ran.cuda-authored.json.gz"


def test_stages_add_up(samples, run):
    document = run("stages", samples / MATH, "--format", "json").json
    own = sum(stage["own_wall_ns"] for stage in document["stages"])
    assert own + document["unattributed_ns"] == document["wall_ns"]
    assert document["unattributed_ns"] == document["unattributed_busy_ns"] + document["unattributed_idle_ns"]
    top = document["stages"][0]
    assert top["stage"] == "denoise"
    assert [row["implementation"] for row in top["dispatches"][:1]] == ["math"]


def test_stages_of_the_user(samples, run):
    done = run("stages", samples / MATH, "--stage", "slow=attention_math", "--format", "json")
    assert (done.code, done.err) == (0, "")
    assert done.json["sources"] == ["pattern", "annotation"]
    assert "slow" in {stage["stage"] for stage in done.json["stages"]}


@pytest.mark.parametrize("command", ["stages", "report", "check-dispatch"])
def test_a_pattern_that_is_none_is_one_clear_line(command, samples, run):
    done = run(command, samples / MATH, "--stage", "denoise=(")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "traceview: error: stage 'denoise': no regular expression (unclosed group). "
        "Write it as NAME=REGEX, e.g. 'denoise=transformer|dit'.\n"
    )


def test_a_pattern_without_a_match_is_said(samples, run):
    out = run("stages", samples / MATH, "--stage", "vae=nothing like this").out
    assert "The pattern of stage vae matches no name in the trace." in out


def test_without_stages_the_reason_is_said(tmp_path, run):
    trace = tmp_path / "bare.json"
    trace.write_text(
        '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 5}]}'
    )
    done = run("stages", trace)
    assert (done.code, done.out.splitlines()[0]) == (0, "No stage is known.")
    assert "no annotation, no function or module of a recorded Python stack" in " ".join(done.out.split())
    document = run("stages", trace, "--format", "json").json
    assert document["stages"] is None
    assert document["notes"][0]["part"] == "stages"


def test_the_headline_of_a_step(samples, run):
    out = run("steps", samples / "two-ranks").out
    assert " ".join(out.split()).startswith(
        "A step takes 2.412 ms (median of 4) on 2 devices: idle: data-loading 32.3 %, communication that nothing hides 31.6 %, "
        "compute 25.2 %, copies that nothing hides 10.1 %."
    )


def test_the_headline_where_one_step_is_most_of_the_time(samples, run):
    """The third of four steps compiles: shares of all four beside the median of them would contradict each other."""
    out = " ".join(run("steps", samples / "xprof/jax-cpu-steps.xplane.pb").out.split())
    assert out.startswith("A step takes 24.13 ms (mean of 4, median 311.4 us): idle: compile 79.7 %, ")


def test_steps_add_up(samples, run):
    document = run("steps", samples / "two-ranks", "--format", "json").json
    for one in document["time"]["devices"]:
        parts = ("compute_ns", "collective_ns", "copy_ns", "async_wait_ns", "idle_ns", "unattributed_ns")
        assert sum(one[part] for part in parts) == one["wall_ns"]
    assert [step["warmup"] for step in document["steps"]] == [False] * 4


@pytest.mark.parametrize("command", ["stages", "steps", "report"])
def test_markdown(command, samples, run):
    done = run(command, samples / MATH, "--format", "markdown")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == f"## traceview {command}"
    tables = [line for line in lines if line.startswith("|")]
    assert len(tables) > 8
    # Each row has as many cells as the rule above it.
    width = 0
    for line in lines:
        if line.startswith("|--"):
            width = line.count("|")
        elif line.startswith("| ") and width and not line.startswith("| |"):
            assert line.count("|") == width or "rule" in line, line
        elif not line:
            width = 0


def test_report_in_markdown_says_what_the_text_says(samples, run):
    """The same headline and the same sections in the same order."""
    text, marked = (run("report", samples / MATH, "--format", form).out for form in ("text", "markdown"))
    headline = " ".join(text.split("\n\n")[0].split())
    assert f"**{headline}**" in marked
    written = [line.removeprefix("### ") for line in marked.splitlines() if line.startswith("### ")]
    assert [line for line in text.splitlines() if line in written] == written
    assert {"Findings", "Idle time by cause", "Device time by family"} <= set(written)


def test_names_of_a_trace_are_inert_in_the_markdown_of_a_report(tmp_path, run):
    name = "<script>|*a*|@someone\nnew line"
    events = [
        {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at, "dur": 5, "args": {"device": 0, "stream": 7}}
        for at in (0, 10)
    ]  # fmt: skip
    marked = run("report", authored(tmp_path, *events), "--format", "markdown").out
    assert "script" in marked
    assert "<script" not in marked
    assert "@someone" not in marked
    assert "\nnew line" not in marked


def test_a_limit_keeps_the_longest_stages(samples, run):
    out = run("stages", samples / MATH, "--limit", "1").out
    assert "2 more stages: traceview stages --limit 3 shows all." in out
    assert "denoise" in out


def authored(tmp_path, *events):
    trace = tmp_path / "authored.json"
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": list(events)}))
    return trace


@pytest.mark.parametrize(
    ("command", "headline"),
    [("steps", "No step: nothing that takes time is recorded."), ("report", "No event in this trace.")],
)
def test_an_empty_trace_has_no_step_and_little_to_trust(command, headline, tmp_path, run):
    out = run(command, authored(tmp_path)).out
    assert out.splitlines()[0] == headline
    assert "trust     limited: The file holds metadata but no event." in out
    assert "as one step" not in out


def test_a_report_without_devices_leads_with_the_step(tmp_path, run):
    events = [
        {
            "ph": "X",
            "cat": "user_annotation",
            "name": f"ProfilerStep#{at}",
            "pid": 1,
            "tid": 1,
            "ts": 100 * at,
            "dur": 90,
        }
        for at in range(5)
    ]
    out = " ".join(run("report", authored(tmp_path, *events)).out.split())
    assert out.startswith(
        "No device work in this trace: only what the host did can be seen. A step takes 90.00 us (median of 5)."
    )


@pytest.mark.parametrize("command", ["steps", "report"])
def test_notes_are_sentences(command, tmp_path, run):
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 5}
    out = run(command, authored(tmp_path, op)).out
    assert "  - The trace has no step marks, so all of it is taken as one step.\n" in out
