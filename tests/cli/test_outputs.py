"""``--output``: where results go, what is refused, and what GitHub Actions gets."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import threading

import pytest
from lxml import etree

from traceview.cli import outputs
from traceview.render import outputs as registry

PROGRAM = [sys.executable, "-c", "import sys; from traceview.cli.main import main; sys.exit(main())"]


@pytest.fixture
def trace(samples):
    return samples / "unfused-by-hand.cuda-authored.json"


def test_the_command_line_offers_every_form():
    assert tuple(registry.FORMATS) == outputs.FORMATS


def test_several_outputs_of_one_check(trace, tmp_path, run):
    paths = {form: tmp_path / f"out.{form}" for form in ("text", "json", "markdown", "junit", "sarif")}
    done = run(
        "check-dispatch", trace, *(f"--output={form}={path}" for form, path in paths.items()), "--output", "github"
    )
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith("::error file=")
    assert paths["text"].read_text().startswith("FAIL: ")
    assert json.loads(paths["json"].read_text())["verdict"] == "fail"
    assert paths["markdown"].read_text().startswith("## traceview check-dispatch\n\n**FAIL**: ")
    assert etree.parse(paths["junit"]).getroot().get("failures") == "2"
    assert json.loads(paths["sarif"].read_text())["runs"][0]["invocations"][0]["exitCode"] == 1


@pytest.mark.parametrize("form", outputs.FORMATS)
def test_format_is_short_for_an_output_to_stdout(form, trace, run):
    short = run("check-dispatch", trace, "--format", form)
    assert short.code == 1
    assert short.out
    for spelling in (form, f"{form}=-"):
        assert run("check-dispatch", trace, "--output", spelling) == short


def test_with_files_alone_text_still_goes_to_stdout(trace, tmp_path, run):
    done = run("check-dispatch", trace, "--output", f"json={tmp_path / 'out.json'}")
    assert done == run("check-dispatch", trace)


def test_the_exit_code_stays(samples, tmp_path, run):
    host_only = tmp_path / "host-only.json"
    host_only.write_text(
        '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 5}]}'
    )
    out = tmp_path / "out.xml"
    for path, more, code, result in (
        (samples / "flash-requested-flash-ran.cuda-authored.json.gz", [], 0, None),
        (samples / "flash-requested-math-ran.cuda-authored.json.gz", [], 1, "failure"),
        (host_only, [], 3, "error"),
        (host_only, ["--inconclusive=warn"], 0, "skipped"),
    ):
        assert run("check-dispatch", path, *more, "--output", f"junit={out}").code == code
        found = {child.tag for case in etree.parse(out).iter("testcase") for child in case} - {"system-out"}
        assert found == ({result} if result else set())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "json", "--output", "sarif"], "--output: json and sarif cannot both go to standard output."),
        (["--format", "json", "--output", "github"], "--output: json and github cannot both go to standard output."),
        (["--output", "json={}/no/such/out.json"], "there is no folder {}/no/such. Create it first."),
        (["--output", "json={}"], "that is a folder. Name a file in it."),
        (["--output", "json={}/x", "--output", "sarif={}/./x"], "json is written to the same file."),
    ],
    ids=["two to stdout", "format and output", "no folder", "a folder", "one file for two"],
)
def test_refused_before_the_trace_is_read(arguments, message, tmp_path, run):
    done = run("check-dispatch", "/no/such/trace.json", *(one.replace("{}", str(tmp_path)) for one in arguments))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("traceview: error: --output")
    assert message.replace("{}", str(tmp_path)) in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sarf=x", "'sarf' is no format: did you mean sarif?"),
        ("pdf", "'pdf' is no format: formats are text, json, markdown, junit, sarif, github"),
        ("json=", "'json=' names no file; json alone writes to standard output"),
    ],
)
def test_a_form_that_does_not_exist(text, message, trace, run):
    done = run("check-dispatch", trace, "--output", text)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_the_trace_is_never_overwritten(trace, tmp_path, run):
    copy = tmp_path / "trace.json"
    copy.write_bytes(trace.read_bytes())
    (tmp_path / "link.json").symlink_to(copy)
    done = run("check-dispatch", copy, "--output", f"json={tmp_path / 'link.json'}")
    assert (done.code, done.out) == (2, "")
    assert "that file was read as input and would be overwritten" in done.err
    assert copy.read_bytes() == trace.read_bytes()


def test_a_file_is_replaced_at_once(tmp_path):
    old = tmp_path / "old.json"
    old.write_text("old")
    old.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(old)
    with open(old) as reader:
        outputs.write_file(str(link), "new \udcff")
        assert reader.read() == "old"
    assert old.read_text() == "new \\udcff"
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "old.json"]


def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    outputs.write_file(str(pipe), "text")
    reader.join(10)
    assert got == ["text"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_cannot_be_written_leaves_the_rest(trace, tmp_path, monkeypatch, run):
    first, second = tmp_path / "first.json", tmp_path / "second.md"
    replace = os.replace

    def full(source, target):
        if target.endswith(".json"):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    done = run("check-dispatch", trace, "--output", f"json={first}", "--output", f"markdown={second}")
    assert done.code == 2
    assert done.out.startswith("FAIL: ")
    assert done.err == f"traceview: error: --output json={first}: cannot write: No space left on device.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["second.md"]


def test_a_reader_that_goes_away_costs_no_file(trace, tmp_path):
    out = tmp_path / "out.json"
    script = '"$0" -c "$1" check-dispatch "$2" --output json="$3" --output github | true; echo ${PIPESTATUS[0]}'
    done = subprocess.run(
        ["bash", "-c", script, PROGRAM[0], PROGRAM[2], trace, out], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("1\n", "")
    assert json.loads(out.read_text())["verdict"] == "fail"


@pytest.fixture
def actions(monkeypatch, tmp_path, run):
    """A step of GitHub Actions; ``run`` comes first, as it clears the environment."""
    summary = tmp_path / "summary.md"
    summary.touch()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    return summary


def test_github_actions_gets_text_annotations_and_a_summary(actions, trace, run):
    done = run("check-dispatch", trace)
    assert (done.code, done.err) == (1, "")
    lines = done.out.splitlines()
    token = re.fullmatch(r"::stop-commands::([0-9a-f]{32})", lines[0])[1]
    assert lines[1].startswith("FAIL: ")
    end = lines.index(f"::{token}::")
    assert lines[end + 1].startswith("::error file=transformers/integrations/eager_paged.py,line=14,")
    assert lines[-1].startswith("traceview check-dispatch: fail: ")
    assert actions.read_text().startswith("## traceview check-dispatch\n")
    assert run("check-dispatch", trace).out.splitlines()[0] != lines[0], "the token must not be known before"


def test_a_summary_is_added_to(actions, trace, run):
    actions.write_text("# Before")
    run("check-dispatch", trace)
    run("check-dispatch", trace)
    text = actions.read_text()
    assert text.startswith("# Before\n\n## traceview check-dispatch\n")
    assert text.count("\n\n## traceview check-dispatch\n") == 2


def test_a_summary_stays_below_its_limit(actions, trace, run):
    actions.write_text("x" * 899_000 + "\n")
    done = run("check-dispatch", trace)
    assert done.code == 1
    assert done.err == "traceview: note: the job summary is 899,001 bytes long already, so nothing is added to it.\n"
    actions.write_text("x" * 895_000 + "\n")
    assert run("check-dispatch", trace).err == ""
    assert 895_001 < actions.stat().st_size <= 900_000


@pytest.mark.parametrize(
    ("path", "note"),
    [
        ("", "GITHUB_STEP_SUMMARY is not set, so no job summary is written"),
        ("{}/missing.md", "cannot write the job summary: No such file or directory"),
        ("{}", "cannot write the job summary: Is a directory"),
    ],
)
def test_a_summary_that_cannot_be_written_is_a_note(path, note, actions, trace, tmp_path, monkeypatch, run):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", path.replace("{}", str(tmp_path)))
    done = run("check-dispatch", trace)
    assert (done.code, done.err) == (1, f"traceview: note: {note}.\n")
    assert not (tmp_path / "missing.md").exists()
    assert "::error file=" in done.out


def test_a_chosen_output_is_all_there_is_on_stdout(actions, trace, run):
    assert run("check-dispatch", trace, "--format", "json").json["verdict"] == "fail"
    text = run("check-dispatch", trace, "--format", "text").out
    assert text.startswith("::stop-commands::")
    assert "::error" not in text
    assert actions.read_text() == ""


def test_files_do_not_turn_annotations_off(actions, trace, tmp_path, run):
    done = run("check-dispatch", trace, "--output", f"sarif={tmp_path / 'out.sarif'}")
    assert "\n::error file=" in done.out
    assert actions.read_text()


def test_text_into_a_file_is_plain(actions, trace, tmp_path):
    with open(tmp_path / "out.txt", "w") as out:
        subprocess.run([*PROGRAM, "check-dispatch", trace], stdout=out, check=False)
    text = (tmp_path / "out.txt").read_text()
    assert text.startswith("FAIL: ")
    assert "::" not in text.splitlines()[-1]
    assert "::error" not in text
