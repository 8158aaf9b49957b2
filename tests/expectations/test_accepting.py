"""What is accepted does not count, until its last day; and what the built-in policy adds to a file."""

from __future__ import annotations

from datetime import date

import pytest

from authored_timeline import kernel, launch, op
from traceview.expectations.baseline import last_day, updated
from traceview.expectations.reading import read_baseline
from traceview.findings import Severity
from traceview.gate import Verdict

FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >"
CALL = [op("aten::scaled_dot_product_attention", 0, 9), launch(1, 1), kernel(FLASH, 100, 200, 1)]
SLOW = [op("aten::scaled_dot_product_attention", 20, 29), op("aten::_scaled_dot_product_attention_math", 21, 28)]
UNTOLD = '[[expect]]\nop = "conv"\ntensor_core = true\n'
"""No convolution occurs, so nothing can be told of any."""
FUSED = '[[expect]]\nop = "attention"\nimplementation = "fused"\n'
ONLY_COUNT = '[[expect]]\nop = "attention"\nmin_count = 1\n'
TODAY = date(2027, 6, 30)


def accept(what, expires="2027-06-30", more=""):
    return f'[[accept]]\n{what}\nreason = "text encoder"\nexpires = {expires}\n{more}'


SPARED = "1 of 2 attention calls did not run fused (1 flash-2, 1 math); it passes only because 1 finding is accepted"
ACCEPTED = accept('rule = "TV102"') + accept('expectation = "attention: fused"')


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (FUSED, Verdict.FAIL),
        ("[context]\n", Verdict.FAIL),
        # The file says nothing on math: the built-in policy fails all the same.
        (ONLY_COUNT, Verdict.FAIL),
        ('policy = "none"\n' + ONLY_COUNT, Verdict.PASS),
        # The file asks for math.
        ('[[expect]]\nop = "attention"\nimplementation = ["fused", "math"]\n', Verdict.PASS),
        # Of some calls only, which says nothing of the others.
        (
            'policy = "builtin"\n[[expect]]\nop = "attention"\ndirection = "forward"\nimplementation = ["fused", "math"]\n',
            Verdict.FAIL,
        ),
        # One of the two is accepted, then both.
        (FUSED + accept('rule = "TV102"'), Verdict.FAIL),
        (FUSED + accept('expectation = "attention: fused"'), Verdict.FAIL),
        (FUSED + ACCEPTED, Verdict.PASS),
        (FUSED + accept('rule = "attention-math"') + accept('expectation = "attention:*"', '"never"'), Verdict.PASS),
        (FUSED + ACCEPTED.replace("2027-06-30", "2027-06-29"), Verdict.FAIL),
        (FUSED + ACCEPTED.replace("TV102", "TV101"), Verdict.FAIL),
        (FUSED + ACCEPTED + 'where = "x"\n', None),
        (ONLY_COUNT + accept('rule = "TV102"\nwhere = "no call stack*"'), Verdict.PASS),
        (ONLY_COUNT + accept('rule = "TV102"\nwhere = "Encoder*"'), Verdict.FAIL),
        ('[[forbid]]\nrule = "TV102"\n' + accept('rule = "TV102"'), Verdict.PASS),
        # What cannot be told can be accepted too.
        ('policy = "none"\n' + UNTOLD, Verdict.INCONCLUSIVE),
        ('policy = "none"\n' + UNTOLD + accept('expectation = "conv*"'), Verdict.PASS),
        # One violation outweighs what cannot be told.
        (FUSED + UNTOLD, Verdict.FAIL),
        # Nothing stated: the built-in policy alone.
        (accept('rule = "TV102"'), Verdict.PASS),
    ],
)
def test_verdict(text, verdict, check_events, errors):
    if verdict is None:
        assert errors(text)
    else:
        assert check_events(text, *CALL, *SLOW, today=TODAY).verdict is verdict


def test_accepted_is_said(check_events):
    result = check_events(FUSED + ACCEPTED, *CALL, *SLOW, today=TODAY)
    (finding,), (expectation,) = result.findings, result.expectations
    assert finding.severity is Severity.INFO
    assert finding.title.startswith("accepted until 2027-06-30 (text encoder): 1 SDPA call fell back to math")
    assert (expectation.verdict, expectation.counts) == (Verdict.FAIL, Verdict.PASS)
    assert expectation.accepted == "accepted until 2027-06-30 (text encoder)"
    assert result.summary == (
        "0 of 1 expectations hold; it passes only because 1 expectation and 1 finding are accepted"
    )
    assert result.notes == ()


def test_expired_is_said(check_events):
    result = check_events(FUSED + ACCEPTED, *CALL, *SLOW, today=date(2027, 7, 1))
    assert result.findings[0].severity is Severity.ERROR
    assert result.findings[0].title.endswith("(no longer accepted: expired 2027-06-30)")
    assert [note.rpartition("/")[2] for note in result.notes] == [
        "dispatch.toml:5: [[accept]] expired on 2027-06-30, so TV102 counts again. Reason then: text encoder",
        "dispatch.toml:9: [[accept]] expired on 2027-06-30, so line 2 counts again. Reason then: text encoder",
    ]


def test_what_accepts_nothing_is_said(check_events):
    result = check_events(FUSED + ACCEPTED, *CALL, today=TODAY)
    assert result.verdict is Verdict.PASS
    assert result.summary == "the expectation holds"
    assert [note.rpartition("/")[2] for note in result.notes] == [
        "dispatch.toml:5: [[accept]] of TV102 covers nothing in this trace. Remove it if this trace is meant to show it.",
        "dispatch.toml:9: [[accept]] of attention: fused covers nothing in this trace. Remove it if this trace is meant to show it.",
    ]  # fmt: skip


def test_what_the_file_expects_is_no_error(check_events):
    text = '[[expect]]\nop = "attention"\nimplementation = ["fused", "math"]\n'
    (finding,) = check_events(text, *CALL, *SLOW).findings
    assert finding.severity is Severity.INFO
    assert "dispatch.toml:2: 1 SDPA call" in finding.title


def test_the_summary_names_the_line_and_the_observation(check_events):
    result = check_events('policy = "none"\n' + FUSED + FUSED, *CALL, *SLOW)
    assert result.summary.startswith("2 of 2 expectations are violated: ")
    assert result.summary.endswith(
        "dispatch.toml:3: attention: fused (flash-2 1 of 2 calls, 50.0 % of attention calls; math 1 call (0.009 ms of host time)); also line 6"
    )


def test_a_baseline_is_updated(check_events, write):
    old = write(accept('rule = "TV101"') + accept('rule = "TV103"', "2027-01-01"), "old.toml")
    result = check_events(FUSED, *CALL, *SLOW, baseline=read_baseline(old), today=TODAY)
    text = updated(
        read_baseline(old), result.findings, result.expectations,
        reason='a "new" one\n[[accept]]', expires=None, today=TODAY,
    )  # fmt: skip
    new = write(text.partition("schema = 1\n")[2], "new.toml")
    assert [(one.rule or one.expectation, one.where, one.reason, one.expires) for one in read_baseline(new)] == [
        ("TV101", None, "text encoder", TODAY),
        ("TV102", "no call stack recorded", 'a "new" one\n[[accept]]', None),
        ("attention: fused", None, 'a "new" one\n[[accept]]', None),
    ]
    again = check_events(FUSED, *CALL, *SLOW, baseline=read_baseline(new), today=TODAY)
    assert again.verdict is Verdict.PASS
    assert (
        updated(read_baseline(new), again.findings, again.expectations, reason="r", expires=None, today=TODAY) == text
    )


def test_last_day():
    assert last_day(None, TODAY) == date(2027, 9, 28)
    assert last_day("never", TODAY) is None
    assert last_day(date(2028, 1, 1), TODAY) == date(2028, 1, 1)


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        # Nothing stated: the built-in policy alone.
        (
            accept('rule = "TV102"'),
            SPARED,
        ),
        (
            ONLY_COUNT + accept('rule = "TV102"'),
            "the expectation holds; it passes only because 1 finding is accepted",
        ),
        # These would pass anyway.
        ('policy = "none"\n' + ONLY_COUNT + accept('rule = "TV102"'), "the expectation holds"),
        (
            '[[expect]]\nop = "attention"\nimplementation = ["fused", "math"]\n' + accept('rule = "TV102"'),
            "the expectation holds",
        ),
        (
            '[context]\ntorch = "2.9"\n' + ONLY_COUNT + '[expect.when]\ntorch = ">=99"\n' + accept('rule = "TV102"'),
            f"{SPARED}; the expectation does not apply",
        ),
    ],
)
def test_a_pass_by_an_accepted_finding_says_so(text, summary, check_events):
    result = check_events(text, *CALL, *SLOW, today=TODAY)
    assert result.verdict is Verdict.PASS
    assert result.summary.partition(" to this trace (")[0] == summary


def test_a_pass_by_an_accepted_finding_says_so_in_every_form(program, samples, tmp_path):
    trace = samples / "flash-requested-math-ran.cuda-authored.json.gz"
    program("check-dispatch", trace, "--baseline", "b.toml", "--update-baseline", "known")
    forms = ("json", "markdown", "junit", "sarif", "github")
    for option in ("--baseline", "--expect"):
        done = program("check-dispatch", trace, option, "b.toml", *(f"--output={form}={form}" for form in forms))
        assert done.returncode == 0
        for text in (done.stdout, *((tmp_path / form).read_text() for form in forms)):
            said = " ".join(text.split())
            assert "every attention call ran fused" not in said
            assert "passes only because 1 finding is accepted" in said
