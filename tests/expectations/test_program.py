"""The installed program: exit codes, streams, options and messages."""

from __future__ import annotations

import json

import jsonschema
import pytest

from traceview.cli.expiry import day, today
from traceview.cli.main import main
from traceview.expectations.baseline import has_own_comments, updated

FUSED = '[[expect]]\nop = "attention"\nimplementation = "fused"\n'
CUDNN = FUSED.replace("fused", "cudnn")
NORM = '[[expect]]\nop = "rope"\nmin_share = 0.5\nprecision = "bf16"\n'

GOOD = "flash-requested-flash-ran.cuda-authored.json.gz"
SLOW = "flash-requested-math-ran.cuda-authored.json.gz"
EMPTY = "torch-cpu-gaps.json"


@pytest.mark.parametrize(
    ("trace", "text", "options", "code"),
    [
        (GOOD, FUSED, [], 0),
        (SLOW, FUSED, [], 1),
        (GOOD, CUDNN, [], 1),
        (GOOD, NORM, [], 3),
        (EMPTY, FUSED, [], 3),
        (EMPTY, FUSED, ["--inconclusive=warn"], 0),
        (EMPTY, FUSED, ["--exit-zero"], 0),
        (SLOW, FUSED, ["--exit-zero"], 0),
        (SLOW, FUSED, ["--inconclusive=warn"], 1),
        (GOOD, "x = 1\n", [], 2),
        (GOOD, "x = 1\n", ["--exit-zero", "--inconclusive=warn"], 2),
        ("no-such-trace.json", FUSED, ["--exit-zero"], 2),
        (GOOD, FUSED, ["--torch", "2.9.1+cu128", "--cudnn", "9.10"], 0),
        (GOOD, FUSED, ["--torch", "latest"], 2),
        (GOOD, FUSED, ["--expires", "never"], 2),
        (GOOD, FUSED, ["--update-baseline", "r"], 2),
        (GOOD, FUSED, ["--update-baseline", " ", "--baseline", "b.toml"], 2),
        (GOOD, FUSED, ["--expires", "soon"], 2),
        (GOOD, FUSED, ["--baseline", "missing.toml"], 2),
    ],
)
def test_exit_code(trace, text, options, code, program, samples, write):
    done = program("check-dispatch", samples / trace, "--expect", write(text), *options)
    assert done.returncode == code, done.stdout + done.stderr
    assert (done.stdout == "") is (code == 2)
    assert (done.stderr == "") is (code != 2)
    assert "Traceback" not in done.stderr


def test_every_mistake_is_a_line_on_stderr(program, samples, write):
    write('[[expect]]\nop = "attention"\nimplementation = "flsh"\nmin_shar = 1\n')
    done = program("check-dispatch", samples / GOOD, "--expect", "dispatch.toml")
    assert done.stderr.splitlines() == [
        'traceview: error: dispatch.toml:4: implementation cannot be "flsh". Did you mean "flash"?',
        'traceview: error: dispatch.toml:5: unknown key "min_shar" in [[expect]]. Did you mean "min_share"?',
    ]


def test_a_mistake_is_said_before_the_trace_is_read(program, write):
    done = program("check-dispatch", "no-such-trace.json", "--expect", write("x = 1\n"))
    assert "dispatch.toml:2: unknown key" in done.stderr


def test_a_missing_file(program, samples):
    done = program("check-dispatch", samples / GOOD, "--expect", "none.toml")
    assert (done.returncode, done.stderr) == (
        2,
        (
            "traceview: error: none.toml: no such file. Check the path, or write one with `traceview init-expectations "
            "TRACE -o FILE`.\n"
        ),
    )


def test_a_missing_baseline(program, samples):
    done = program("check-dispatch", samples / GOOD, "--baseline", "none.toml")
    assert (done.returncode, done.stderr) == (
        2,
        ("traceview: error: none.toml: no such file. Check the path, or add --update-baseline REASON to write one.\n"),
    )


def test_a_last_day_that_is_over_is_a_mistake(program, samples, tmp_path):
    """What is written would never count."""
    for command in (
        ("check-dispatch", "--baseline", "b.toml", "--update-baseline", "known"),
        ("init-expectations", "--accept-slow", "known"),
    ):
        done = program(*command, samples / SLOW, "--expires", "2020-01-01")
        assert done.returncode == 2
        assert done.stderr.endswith(
            "argument --expires: 2020-01-01 is over, so nothing would be accepted; give a later day, or never\n"
        )
    assert list(tmp_path.iterdir()) == []


def test_today_is_no_day_that_is_over():
    assert day(today().isoformat()) == today()


@pytest.mark.parametrize("form", ["text", "json", "markdown", "junit", "sarif", "github"])
def test_a_stage_that_matches_nothing_is_said_in_every_form(form, samples, capsys):
    main(["check-dispatch", str(samples / GOOD), "--stage", "zzz=never", "--format", form])
    assert "the pattern of stage zzz matches no name in the trace" in " ".join(capsys.readouterr().out.split())


def test_text(program, samples, write):
    write(FUSED + '[[forbid]]\nkernel = "*sm75*"\n[[expect]]\nop = "moe"\ntensor_core = true\n')
    done = program("check-dispatch", samples / SLOW, "--expect", "dispatch.toml")
    lines = done.stdout.splitlines()
    at = lines.index("Expectations")
    assert lines[at : at + 8] == [
        "Expectations",
        "  - dispatch.toml:2: fail: attention: fused",
        "  observed  flash-2 3 of 9 calls, 0.2 % of attention device time; math 6 calls (21.839 ms)",
        "  - dispatch.toml:5: pass: forbid kernel *sm75*",
        "  observed  nothing of the kind among 174 kernels",
        "  - dispatch.toml:7: inconclusive: moe: on tensor cores",
        "  observed  nothing to judge: the trace shows no moe (with min_count = 1 this would fail)",
        "",
    ]
    assert lines[-1] == (
        "3 expectations: 1 violated, 1 not to be told; 1 error, 0 warnings, 9 attention calls, exit code 1"
    )


def test_json(program, samples, write, repository):
    write(
        '[context]\ntorch = "2.8"\ngpu = "H100"\n'
        + FUSED
        + '[[accept]]\nrule = "TV102"\nreason = "r"\nexpires = "never"\n'
    )
    done = program("check-dispatch", samples / SLOW, "--expect", "dispatch.toml", "--torch", "2.9", "--format", "json")
    document = json.loads(done.stdout)
    schema = json.loads((repository / "docs" / "schemas" / "check-dispatch.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    assert document["expectations"] == [
        {
            "kind": "expect",
            "line": 5,
            "text": "attention: fused",
            "verdict": "fail",
            "observed": "flash-2 3 of 9 calls, 0.2 % of attention device time; math 6 calls (21.839 ms)",
            "accepted": None,
        }
    ]
    assert document["expectations_file"] == "dispatch.toml"
    assert document["context"] == {"torch": "2.9", "cudnn": None, "cuda": None, "gpu": "H100", "notes": None}
    assert document["findings"][0]["severity"] == "info"
    assert (document["verdict"], document["exit_code"]) == ("fail", 1)


def test_a_baseline_from_start_to_end(program, samples, tmp_path, write):
    write(FUSED)
    arguments = ["check-dispatch", samples / SLOW, "--expect", "dispatch.toml", "--baseline", "known.toml"]
    assert program(*arguments).returncode == 2
    # Writing it does not change the verdict of the run that writes it.
    assert program(*arguments, "--update-baseline", "known since May", "--expires", "never").returncode == 1
    done = program(*arguments)
    assert done.returncode == 0
    assert "accepted without end (known since May)" in done.stdout
    assert 'reason = "known since May"' in (tmp_path / "known.toml").read_text()
    # Nothing is written without being asked to.
    before = (tmp_path / "known.toml").read_bytes()
    program(*arguments)
    assert (tmp_path / "known.toml").read_bytes() == before


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("# ours", True),
        ('reason = "see #12"', False),
        ('reason = "known" # by us', True),
        ("reason = 'it is #1'", False),
    ],
)
def test_comments_that_are_lost_are_said(line, said, tmp_path):
    path = tmp_path / "b.toml"
    own = updated((), (), (), reason="r", expires=None, today=today())
    path.write_text(own + line + "\n", encoding="utf-8")
    assert has_own_comments(str(path)) is said
    assert not has_own_comments(str(tmp_path / "none.toml"))


def test_update_says_that_comments_are_not_kept(samples, tmp_path, capsys):
    path = tmp_path / "b.toml"
    path.write_text("# ours\nschema = 1\n", encoding="utf-8")
    arguments = ["check-dispatch", str(samples / SLOW), "--baseline", str(path), "--update-baseline", "known"]
    main(arguments)
    assert capsys.readouterr().err == f"traceview: note: the comments of {path} are not kept.\n"
    main(arguments)
    assert capsys.readouterr().err == ""


def test_a_baseline_that_has_mistakes_is_not_overwritten(program, samples, tmp_path):
    (tmp_path / "known.toml").write_text("schema = 1\n[[accept]]\nrule = 'TV999'\n")
    done = program("check-dispatch", samples / SLOW, "--baseline", "known.toml", "--update-baseline", "r")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'known.toml:3: there is no rule "TV999".' in done.stderr
    assert "TV999" in (tmp_path / "known.toml").read_text()


def test_a_baseline_that_cannot_be_written(program, samples):
    done = program("check-dispatch", samples / SLOW, "--baseline", "no/such/folder.toml", "--update-baseline", "r")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("traceview: error: no/such/folder.toml: cannot be written (No such file")
