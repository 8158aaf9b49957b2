"""The GitHub Action: its shell step is run here as a runner would, with the installation replaced by this checkout."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass

import pytest
import yaml

import sample_traces

PYTHON = """\
#!/bin/bash
# Stands for python3: makes an environment whose pip only notes what it was asked for.
if [ "$1 $2" = "-m venv" ]; then
  mkdir -p "$3/bin"
  cp "$0" "$3/bin/python"
  cp "$(dirname "$0")/traceview" "$3/bin/traceview"
elif [ "$1 $2" = "-m pip" ]; then
  printf '%s\\n' "${@: -1}" >> "$STUB_LOG.pip"
else
  exec "$STUB_PYTHON" "$@"
fi
"""
TRACEVIEW = """\
#!/bin/bash
printf '%s\\0' "$@" > "$STUB_LOG.arguments"
[ -z "${STUB_STATUS:-}" ] || exit "$STUB_STATUS"
exec "$STUB_PYTHON" -c 'import sys; from traceview.cli.main import main; sys.exit(main())' "$@"
"""


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str
    outputs: dict[str, str]
    arguments: list[str] | None
    installed: str | None
    summary: str


@pytest.fixture
def action(repository):
    return yaml.safe_load((repository / "action.yml").read_text(encoding="utf-8"))


@pytest.fixture
def run(action, tmp_path):
    """``run(trace=…, …)`` runs the step with these inputs in an empty folder."""
    (step,) = action["runs"]["steps"]
    stubs, work = tmp_path / "stubs", tmp_path / "work dir"
    stubs.mkdir()
    work.mkdir()
    for name, text in {"python3": PYTHON, "traceview": TRACEVIEW}.items():
        (stubs / name).write_text(text)
        (stubs / name).chmod(0o755)
    (tmp_path / "temp").mkdir()

    def run_step(stub_status="", **inputs):
        for name in ("output", "summary"):
            (tmp_path / name).write_text("")
        given = {name: one.get("default", "") for name, one in action["inputs"].items()} | {
            name.replace("_", "-"): value for name, value in inputs.items()
        }
        values = {}
        for variable, expression in step["env"].items():
            values[variable] = given[re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", expression)[1]]
        script = tmp_path / "step.sh"
        script.write_text(step["run"])
        environment = {
            "PATH": f"{stubs}{os.pathsep}{os.environ['PATH']}", "STUB_PYTHON": sys.executable, "STUB_LOG": str(tmp_path / "log"),
            "STUB_STATUS": stub_status, "RUNNER_TEMP": str(tmp_path / "temp"), "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": "/the/action", "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        }  # fmt: skip
        # What a runner starts for `shell: bash`.
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            cwd=work, env=environment | values, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        arguments, installed = tmp_path / "log.arguments", tmp_path / "log.pip"
        assert {path.name for path in work.iterdir()} <= {"out.sarif"}, "an input was run"
        return Ran(
            done.returncode,
            done.stdout,
            done.stderr,
            dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines()),
            arguments.read_text().split("\0")[:-1] if arguments.exists() else None,
            installed.read_text().splitlines()[-1] if installed.exists() else None,
            (tmp_path / "summary").read_text(),
        )

    return run_step


@pytest.fixture
def sample():
    folder = os.path.dirname(sample_traces.__file__)
    return lambda name: os.path.join(folder, name)


def test_inputs_reach_the_script_as_variables_only(action):
    for step in action["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert step["run"].startswith("set -euo pipefail\n")
        assert "${{" not in step["run"]
    assert set(action["inputs"]) == {"trace", "expect", "inconclusive", "sarif-file", "version"}
    assert all(one["description"] for kind in ("inputs", "outputs") for one in action[kind].values())


def test_every_input_and_output_is_documented(action, repository):
    page = (repository / "docs" / "ci.md").read_text(encoding="utf-8")
    for kind in ("inputs", "outputs"):
        assert [name for name in action[kind] if f"| `{name}` |" not in page] == []


@pytest.mark.parametrize(
    ("trace", "status", "verdict"),
    [
        ("flash-requested-flash-ran.cuda-authored.json.gz", 0, "pass"),
        ("flash-requested-math-ran.cuda-authored.json.gz", 1, "fail"),
    ],
)
def test_it_ends_with_the_verdict(trace, status, verdict, run, sample):
    ran = run(trace=sample(trace), sarif_file="out.sarif")
    assert (ran.status, ran.err, ran.outputs["verdict"]) == (status, "", verdict)
    assert ran.installed == "/the/action"
    assert ("\n::error file=" in ran.out) == bool(status)
    assert ran.summary.startswith("## traceview check-dispatch\n")
    with open(ran.outputs["markdown-file"], encoding="utf-8") as file:
        assert file.read() == ran.summary


def test_sarif_is_written_where_it_was_asked_for(run, sample, tmp_path):
    run(trace=sample("unfused-by-hand.cuda-authored.json"), sarif_file="out.sarif")
    assert json.loads((tmp_path / "work dir" / "out.sarif").read_text())["version"] == "2.1.0"


def test_what_is_inconclusive_can_be_let_through(run, tmp_path):
    trace = tmp_path / "host only.json"
    trace.write_text(
        '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 5}]}'
    )
    assert [(ran.status, ran.outputs["verdict"]) for ran in (run(trace=str(trace)), run(trace=str(trace), inconclusive="warn"))] == [
        (3, "inconclusive"), (0, "inconclusive")
    ]  # fmt: skip


def test_a_check_that_cannot_run_has_no_verdict(run):
    ran = run(trace="missing.json")
    assert (ran.status, ran.outputs) == (2, {})
    assert ran.err == "traceview: error: missing.json: no such file or folder. Check the path.\n"


def test_arguments(run):
    ran = run(stub_status="0", trace="  rank 0.json\n\nranks/*.json  \n", expect="ci/dispatch.toml", version="1.2.0rc1")
    check, inconclusive, as_json, as_markdown, *rest = ran.arguments
    assert (check, inconclusive) == ("check-dispatch", "--inconclusive=fail")
    assert re.fullmatch(r"--output=json=.*/temp/traceview\.\w+/check\.json", as_json)
    assert re.fullmatch(r"--output=markdown=.*/temp/traceview\.\w+/check\.md", as_markdown)
    assert rest == ["--expect=ci/dispatch.toml", "--", "rank 0.json", "ranks/*.json"]
    assert ran.installed == "traceview==1.2.0rc1"


@pytest.mark.parametrize("text", ['"; touch owned; "', "$(touch owned)", "`touch owned`", "--help", "-o owned", "a'b"])
def test_no_input_is_run_or_read_as_an_option(text, run):
    ran = run(stub_status="0", trace=text, expect=text, sarif_file=text)
    assert ran.arguments[-2:] == ["--", text]
    assert f"--expect={text}" in ran.arguments
    assert f"--output=sarif={text}" in ran.arguments
    for name in ("version", "inconclusive"):
        refused = run(stub_status="0", trace="x", **{name: text})
        assert (refused.status, refused.outputs) == (2, {})
        assert refused.err.startswith(f"::error title=traceview::The input {name} ")


def test_no_trace_is_said(run):
    ran = run(stub_status="0", trace=" \n ")
    assert (ran.status, ran.arguments, ran.err) == (
        2, None, "::error title=traceview::The input trace is empty; name a trace file.\n"
    )  # fmt: skip
