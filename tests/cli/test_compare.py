"""``traceview compare`` as a program: exit codes, forms, mistakes."""

from __future__ import annotations

import pytest

MATH = "flash-requested-math-ran.cuda-authored.json.gz"
FLASH = "flash-requested-flash-ran.cuda-authored.json.gz"


@pytest.mark.parametrize(
    ("before", "after", "options", "code"),
    [
        (FLASH, MATH, (), 0),
        (FLASH, MATH, ("--fail-if", "slower=5%"), 1),
        (MATH, FLASH, ("--fail-if", "slower=5%"), 0),
        ("compiled.cuda-authored.json", MATH, ("--fail-if", "slower=5%"), 3),
        ("compiled.cuda-authored.json", MATH, ("--fail-if", "slower=5%", "--inconclusive", "warn"), 0),
        (MATH, FLASH, ("--fail-if", "slower"), 2),
        (MATH, "missing.json", (), 2),
        (MATH, "README.md", (), 2),
    ],
)
def test_exit_codes(run, samples, before, after, options, code):
    done = run("compare", samples / before, samples / after, *options)
    assert done.code == code
    assert (done.out == "") is (code == 2)
    assert (done.err == "") is (code != 2)
    assert "Traceback" not in done.err


def test_forms(run, samples):
    paths = (samples / MATH, samples / FLASH)
    assert run("compare", *paths, "--format", "json", "--fail-if", "slower=5%").json["limit"]["exit_code"] == 0
    markdown = run("compare", *paths, "--format", "markdown").out
    assert markdown.startswith("## traceview compare\n\n**Faster: a step takes 3.211 ms instead of 10.22 ms")
    assert run("compare", *paths, "--limit", "1").out.count("gone") == 1


def test_a_stage_of_the_user_is_looked_for_in_both(run, samples):
    done = run("compare", samples / MATH, samples / FLASH, "--stage", "mine=scaled_dot", "--format", "json")
    assert "mine" in {one["name"].rsplit("/", 1)[-1] for one in done.json["stages"]}


def test_one_line_for_a_mistake_before_any_trace_is_read(run, tmp_path):
    done = run("compare", tmp_path / "a", tmp_path / "b", "--fail-if", "faster=1%")
    assert done.err == ("traceview: error: --fail-if faster=1%: that is no limit. Write slower=PERCENT%: slower=5%.\n")


def test_a_trace_without_step_marks_is_not_called_a_step(run, samples, tmp_path):
    marked, plain = samples / MATH, tmp_path / "t.json"
    plain.write_text(
        '{"schemaVersion": 1, "deviceProperties": [], "traceEvents": ['
        '{"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 0, "dur": 10, "args": {"device": 0, "stream": 7}}]}'
    )
    words = " ".join(run("compare", plain, plain).out.split())
    assert words.startswith(
        "Inconclusive: the whole trace (no step marks) takes 10.00 us instead of 10.00 us (0.0 %; one each)"
    )
    assert "1 steady step" not in words.split("Conditions")[0]
    assert words.count("(no step marks, trust") == 2
    mixed = " ".join(run("compare", plain, marked).out.split())
    assert not mixed.startswith("Inconclusive: a step takes")
    assert "no step marks" in mixed.split(" before ")[0] or "What is taken as a step takes" in mixed
