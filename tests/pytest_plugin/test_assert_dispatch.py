"""``assert_dispatch`` in a test: what holds, what does not, what cannot be told, and what cannot run."""

from __future__ import annotations

import pytest


def errors(result):
    """Lines of pytest's ``E``, without the mark."""
    return [line[1:].strip() for line in result.outlines if line.startswith("E ")]


def test_what_holds_passes_and_returns_the_result(run):
    result = run("""
def test_it(assert_dispatch):
    result = assert_dispatch(FAST, expect={"expect": [{"op": "attention", "implementation": "flash"}]})
    assert result.verdict.value == "pass"
    assert [one.text for one in result.expectations] == ["attention: flash"]
""")
    result.assert_outcomes(passed=1)


def test_without_expectations_the_built_in_policy_judges(run):
    result = run("""
def test_fast(assert_dispatch):
    assert_dispatch(FAST)

def test_slow(assert_dispatch):
    with pytest.raises(AssertionError, match="^FAIL: 6 SDPA calls fell back to math"):
        assert_dispatch(SLOW)
""")
    result.assert_outcomes(passed=2)


def test_a_timeline_and_several_paths_are_traces_too(run):
    result = run("""
import pathlib, traceview

def test_timeline(assert_dispatch):
    assert_dispatch(traceview.load(FAST))

def test_paths(assert_dispatch):
    assert_dispatch([pathlib.Path(FAST)])
""")
    result.assert_outcomes(passed=2)


def test_the_message_is_what_the_program_prints(run, program, pytester):
    pytester.makefile(".toml", dispatch='schema = 1\n[[expect]]\nop = "attention"\nimplementation = "flash"\n')
    run(
        """
import pathlib

def test_it(assert_dispatch):
    with pytest.raises(AssertionError) as caught:
        assert_dispatch(SLOW, expect="dispatch.toml")
    pathlib.Path("message").write_text(str(caught.value) + "\\n")
"""
    ).assert_outcomes(passed=1)
    message = (pytester.path / "message").read_text()

    assert message == program("check-dispatch", "--expect", "dispatch.toml", *traces(message)) + "\n"
    assert "dispatch.toml:2: fail: attention: flash" in message


def traces(message):
    """The trace that a message names."""
    return [line.split()[1] for line in message.splitlines() if line.startswith("  trace ")]


def test_no_colour_even_if_the_environment_asks_for_it(run, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = run("""
def test_it(assert_dispatch, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with pytest.raises(AssertionError) as caught:
        assert_dispatch(SLOW)
    assert "\\x1b" not in str(caught.value)
""")
    result.assert_outcomes(passed=1)


def test_a_violation_shows_the_line_of_the_test_and_no_line_of_the_plugin(run):
    result = run("def test_it(assert_dispatch):\n    assert_dispatch(SLOW)\n")
    result.assert_outcomes(failed=1)
    assert errors(result)[0].startswith("AssertionError: FAIL: 6 SDPA calls fell back to math")
    assert "TV102 error:" in result.stdout.str()
    assert ">       assert_dispatch(SLOW)" in result.outlines
    assert "asserting.py" not in result.stdout.str()


def test_a_dict_is_placed_on_the_line_of_the_call(run):
    result = run("""
def test_it(assert_dispatch):
    expect = {"expect": [{"op": "attention", "implementation": "math"}, {"op": "attention", "provider": "xla"}]}
    assert_dispatch(FAST, expect=expect)
""")
    result.stdout.fnmatch_lines(
        [
            "E*AssertionError: FAIL: 2 of 2 expectations are violated: test_a_dict_is_*call.py:8:",
            "E*attention: math (none of 9 calls; flash-2 9 calls (1.063 ms)).",
            "E*- test_a_dict_is_placed_on_the_line_of_the_call.py:8: fail: attention: math",
            "E*- test_a_dict_is_placed_on_the_line_of_the_call.py:8: fail: attention: by xla",
        ]
    )


def test_a_trace_that_cannot_tell_fails_the_test(run):
    result = run("def test_it(assert_dispatch):\n    assert_dispatch(NO_WORK)\n")
    result.assert_outcomes(failed=1)
    assert errors(result)[0].startswith("Failed: INCONCLUSIVE: no device kernel is recorded")


def test_a_trace_that_cannot_tell_warns_if_asked_to(run):
    result = run("""
def test_it(assert_dispatch):
    assert assert_dispatch(NO_WORK, inconclusive="warn").verdict.value == "inconclusive"
""")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(
        ["*test_a_trace_that_cannot_tell_warns_if_asked_to.py:7: DispatchInconclusiveWarning: INCONCLUSIVE: no device*"]
    )


def test_a_warning_never_softens_a_violation(run):
    result = run('def test_it(assert_dispatch):\n    assert_dispatch(SLOW, inconclusive="warn")\n')
    result.assert_outcomes(failed=1)


CANNOT_RUN = {
    "no trace": ('"nowhere.json"', "traceview: error: nowhere.json: *"),
    "a number": ("7", "traceview: error: trace must be a path, several paths, or what traceview.load returns, not int."),
    "no path": ("[]", "traceview: error: no trace was given. Give the path of a trace."),
    "no file": ('FAST, expect="no.toml"', "traceview: error: no.toml: no such file. Check the path*"),
    "a list": ("FAST, expect=[1]", "*test_*.py:6: expect must be the path of a dispatch.toml or a dict of the same shape, *"),
    "key": ('FAST, expect={"expects": []}', '*test_*.py:6: unknown key "expects" at the top of the file. Did you mean "expect"?'),
    "word": (
        'FAST, expect={"expect": [{"op": "attention", "implementation": "flush"}]}',
        '*test_*.py:6: implementation cannot be "flush". Did you mean "flash"?',
    ),
    "no TOML": ('FAST, expect={"limits": {"idle_share": None}}', "*limits.idle_share is of type NoneType, which TOML cannot hold."),
    "key type": ("FAST, expect={1: 2}", "*a key must be a text, not int."),
    "depth": ('FAST, expect={"limits": ' + "[" * 30 + "]" * 30 + "}", "*: nested too deeply."),
    "schema": ('FAST, expect={"schema": 9}', "*schema 9 is not known: this version reads 1. Update traceview."),
    "version": ('FAST, torch="new"', "traceview: error: torch must be a version such as \"2.9\" or \"2.9.1\", not 'new'."),
    "word for it": ('FAST, inconclusive="skip"', 'traceview: error: inconclusive must be "fail" or "warn", not \'skip\'.'),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "line"), CANNOT_RUN.values(), ids=CANNOT_RUN)
def test_what_cannot_run_fails_in_one_line(run, arguments, line):
    result = run(f"def test_it(assert_dispatch):\n    assert_dispatch({arguments})\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([line])
    assert "Traceback" not in result.stdout.str()
    assert "asserting.py" not in result.stdout.str()


def test_every_problem_of_a_file_is_said_with_its_line(run, pytester):
    pytester.makefile(".toml", dispatch='schema = 1\n[[expect]]\nop = "attentoin"\nimplementation = "flush"\n')
    result = run('def test_it(assert_dispatch):\n    assert_dispatch(FAST, expect="dispatch.toml")\n')
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            'traceview: error: dispatch.toml:3: op cannot be "attentoin". Did you mean "attention"?*',
            'traceview: error: dispatch.toml:4: implementation cannot be "flush". Did you mean "flash"?',
        ]
    )


def test_a_version_that_the_trace_does_not_hold_can_be_given(run):
    result = run("""
def test_it(assert_dispatch):
    context = assert_dispatch(FAST, {"context": {"torch": "2.8", "gpu": "H100"}}, torch="2.9", cudnn="9.10").context
    assert (context.torch, context.cudnn, context.gpu) == ("2.9", "9.10", "H100")
""")
    result.assert_outcomes(passed=1)


def test_without_torch_one_line_names_what_to_install(run, without_torch):
    result = run("def test_it(profile_dispatch):\n    with profile_dispatch():\n        pass\n", subprocess=True)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "traceview: error: profile_dispatch needs PyTorch, which is not installed here. Install it (pip install torch)*"
        ]
    )
    assert "Traceback" not in result.stdout.str()
