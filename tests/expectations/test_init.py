"""A file written from a trace holds on that trace, is readable, and is refused where the trace is no good example."""

from __future__ import annotations

import json
import stat

import jsonschema
import pytest

from authored_timeline import kernel, launch, op, timeline
from traceview import load
from traceview.dispatch import dispatch_table
from traceview.expectations.proposing import Acceptance, propose
from traceview.expectations.reading import read_expectations
from traceview.expectations.writing import comment, quoted
from traceview.gate import Verdict, check

FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >"
GOOD = "flash-requested-flash-ran.cuda-authored.json.gz"
SLOW = "flash-requested-math-ran.cuda-authored.json.gz"


def proposal_of(trace, acceptance=None):
    return propose(trace, dispatch_table(trace), check(trace).findings, acceptance)


def sample_files(folder):
    names = ("*.cuda-authored.json", "*.hip-authored.json", "*authored.json.gz", "torch-*.json", "torch-*.json.gz")
    return sorted({path for name in names for path in folder.glob(name) if ".truth." not in path.name})


def round_trip(trace, path):
    """The verdict of a trace on its own file; if there is none, why, and then it must be a good reason."""
    before = check(trace)
    proposal = proposal_of(trace)
    if proposal.slow:
        assert before.verdict is Verdict.FAIL
        proposal = proposal_of(trace, Acceptance("known", None))
        assert proposal.accepted
    if proposal.why_not:
        assert not before.table.device_events
        return None
    path.write_text(proposal.text, encoding="utf-8")
    expectations = read_expectations(str(path))
    texts = [one.text for one in (*expectations.expects, *expectations.forbids)]
    assert sorted(texts) == sorted(proposal.stated)
    result = check(trace, expectations)
    assert result.notes == ()
    return result.verdict


def test_round_trip_of_samples(samples, tmp_path):
    files = sample_files(samples)
    assert len(files) > 10
    verdicts = {path.name: round_trip(load(path), tmp_path / "dispatch.toml") for path in files}
    refused = {name for name, verdict in verdicts.items() if verdict is None}
    assert set(verdicts.values()) <= {Verdict.PASS, None}, verdicts
    assert refused == {"torch-cpu-gaps.json", "torch-cpu-recompiles.json.gz"}


@pytest.mark.slow
def test_round_trip_of_real_traces(corpus, tmp_path):
    verdicts = {
        path.name: round_trip(load(path), tmp_path / "dispatch.toml") for path in sorted((corpus / "pytorch").iterdir())
    }
    assert set(verdicts.values()) <= {Verdict.PASS, None}, verdicts
    refused = {name for name, verdict in verdicts.items() if verdict is None}
    assert {"qwen15-chat-h100.json.gz", "resnet50-v100-workers0.pt.trace.json.gz"}.isdisjoint(refused)


def test_what_is_written(program, samples, tmp_path):
    done = program("init-expectations", samples / GOOD)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "wrote dispatch.toml: it states 5 expectations.\n"
        "  attention: flash-2, at least 1 call\n"
        "  forbid attention: math\n"
        "  forbid attention: unfused\n"
        "  gemm: on tensor cores\n"
        "  conv: on tensor cores\n"
    )
    text = (tmp_path / "dispatch.toml").read_text()
    assert "# Observed: flash-2 9 of 9 calls" in text
    assert '[[expect]]\nop = "attention"\nimplementation = "flash-2"\nmin_count = 1\n' in text
    assert program("check-dispatch", samples / GOOD, "--expect", "dispatch.toml").returncode == 0
    assert program("check-dispatch", samples / SLOW, "--expect", "dispatch.toml").returncode == 1


def test_a_file_is_not_overwritten_unasked(program, samples, tmp_path):
    path = tmp_path / "dispatch.toml"
    path.write_text("mine")
    path.chmod(0o640)
    done = program("init-expectations", samples / GOOD)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "traceview: error: dispatch.toml: there is such a file already. Choose another name, or add --force.\n"
    )
    assert path.read_text() == "mine"
    assert program("init-expectations", samples / GOOD, "--force").returncode == 0
    assert path.read_text() != "mine"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["dispatch.toml"]


@pytest.mark.parametrize("forced", [[], ["--force"]])
def test_the_trace_is_never_overwritten(forced, program, samples, tmp_path):
    (tmp_path / "runs").mkdir()
    trace = tmp_path / "runs" / "v.json.gz"
    whole = (samples / GOOD).read_bytes()
    trace.write_bytes(whole)
    (tmp_path / "soft").symlink_to(trace)
    (tmp_path / "hard").hardlink_to(trace)
    cases = [(trace, trace), ("soft", trace), (trace, "hard"), (trace, "soft"), ("runs/../runs/v.json.gz", trace)]
    if forced:
        # Which files a folder or a pattern means is known once they are read.
        cases += [("runs", trace), (tmp_path / "runs" / "*.gz", "hard")]
    for given, output in cases:
        done = program("init-expectations", given, "-o", output, *forced)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            f"traceview: error: --output {output}: that file was read as input and would be overwritten. "
            "Choose another name.\n"
        )
        assert trace.read_bytes() == whole
    assert program("init-expectations", "runs", "-o", "runs/dispatch.toml", *forced).returncode == 0


def test_standard_output(program, samples, tmp_path):
    done = program("init-expectations", samples / GOOD, "-o", "-")
    assert done.stdout.startswith("# What must dispatch.")
    assert list(tmp_path.iterdir()) == []


def test_json(program, samples, repository):
    schema = json.loads((repository / "docs" / "schemas" / "init-expectations.json").read_text())
    done = program("init-expectations", samples / GOOD, "--format", "json")
    document = json.loads(done.stdout)
    jsonschema.Draft202012Validator(schema).validate(document)
    assert (document["path"], document["accepted"], len(document["expectations"])) == ("dispatch.toml", 0, 5)
    printed = json.loads(program("init-expectations", samples / GOOD, "-o", "-", "--format", "json").stdout)
    assert printed == document | {"path": None}


def test_a_slow_trace_is_refused(program, samples, tmp_path):
    done = program("init-expectations", samples / SLOW)
    assert (done.returncode, done.stdout) == (1, "")
    assert "this trace is no good example: 6 SDPA calls fell back to math" in done.stderr
    assert '--accept-slow "REASON"' in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_slow_trace_is_taken_with_a_reason(program, samples, tmp_path):
    done = program("init-expectations", samples / SLOW, "--accept-slow", "issue 12", "--expires", "2099-01-31")
    assert done.returncode == 0
    read = read_expectations(str(tmp_path / "dispatch.toml"))
    assert read.expects[0].text == "attention: flash-2, at least 1 call"
    assert [(one.rule or one.expectation, one.reason, str(one.expires)) for one in read.accepts] == [
        ("TV102", "issue 12", "2099-01-31"),
        ("attention: flash-2, at least 1 call", "issue 12", "2099-01-31"),
    ]
    assert program("check-dispatch", samples / SLOW, "--expect", "dispatch.toml").returncode == 0


@pytest.mark.parametrize(
    "options", [["--accept-slow", ""], ["--expires", "never"], ["--accept-slow", "r", "--expires", "x"]]
)
def test_bad_usage(options, program, samples):
    assert program("init-expectations", samples / SLOW, *options).returncode == 2


def test_a_trace_that_shows_nothing_is_refused(program, samples):
    done = program("init-expectations", samples / "torch-cpu-gaps.json")
    assert (done.returncode, done.stdout) == (3, "")
    assert "nothing in it can be told well enough" in done.stderr


def test_a_trace_that_is_cut_off_is_refused(program, samples):
    done = program("init-expectations", samples / "bad" / "cut-between-events.json")
    assert (done.returncode, done.stdout) == (3, "")
    assert "the file is cut off" in done.stderr


def test_what_cannot_be_told_is_no_expectation():
    trace = timeline(
        *[op("aten::scaled_dot_product_attention", 0, 9), launch(1, 1), kernel(FLASH, 100, 170, 1)],
        *[op("aten::scaled_dot_product_attention", 20, 29), launch(21, 2), kernel("brand_new", 200, 230, 2)],
    )
    proposal = proposal_of(trace)
    # 70 % are proven, a little less is asked; that no math ran cannot be told.
    assert proposal.stated == ("attention: flash-2, for at least 0.68 of its time, at least 1 call",)


def test_names_in_a_trace_cannot_break_out_of_a_comment():
    assert comment('a\n[[accept]]\r\x85"\u2028b') == ['# a?[[accept]]??"?b']


@pytest.mark.parametrize("text", ['"', "\\", "\n\t\x00\x7f\x85", "é\u2028😀", "a'b"])
def test_quoted_texts_read_back(text):
    import tomllib

    assert tomllib.loads(f"k = {quoted(text)}")["k"] == text


def test_a_lone_surrogate_is_replaced():
    assert quoted("a\ud800") == '"a?"'
