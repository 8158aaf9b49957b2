"""What a check holds a test to: the call, else the marker, else the command line, else the ini file."""

from __future__ import annotations

import pytest

WANTS_FLASH = 'schema = 1\n[[expect]]\nop = "attention"\nimplementation = "flash"\n'
WANTS_MATH = 'schema = 1\n[[expect]]\nop = "attention"\nimplementation = "math"\n'
CALL = "def test_it(assert_dispatch):\n    assert_dispatch(FAST)\n"


@pytest.fixture
def files(pytester):
    pytester.makefile(".toml", flash=WANTS_FLASH, math=WANTS_MATH)


def test_the_marker_states_the_expectations_of_a_test(run, files):
    result = run("""
@pytest.mark.dispatch(expect="flash.toml")
def test_file(assert_dispatch):
    assert assert_dispatch(FAST).expectations_path == "flash.toml"

@pytest.mark.dispatch(expect={"expect": [{"op": "attention", "implementation": "math"}]})
def test_dict(assert_dispatch):
    with pytest.raises(AssertionError, match=r"test_the_marker_states_the_expectations_of_a_test.py:10: fail: attention: math"):
        assert_dispatch(FAST)

@pytest.mark.dispatch(inconclusive="warn", torch="2.9")
def test_others(assert_dispatch):
    with pytest.warns(pytest.PytestWarning, match="INCONCLUSIVE"):
        assert assert_dispatch(NO_WORK).context.torch == "2.9"
""")
    result.assert_outcomes(passed=3)


def test_the_closest_marker_counts_and_the_call_counts_more(run, files):
    result = run("""
@pytest.mark.dispatch(expect="math.toml", torch="2.7")
class TestIt:
    @pytest.mark.dispatch(expect="flash.toml")
    def test_marker(self, assert_dispatch):
        result = assert_dispatch(FAST)
        assert (result.expectations_path, result.context.torch) == ("flash.toml", "2.7")

    def test_call(self, assert_dispatch):
        assert assert_dispatch(FAST, expect="flash.toml").expectations_path == "flash.toml"

    def test_built_in_policy(self, assert_dispatch):
        assert assert_dispatch(FAST, expect={}).verdict.value == "pass"

    def test_class(self, assert_dispatch):
        with pytest.raises(AssertionError, match="math.toml:2: fail"):
            assert_dispatch(FAST)
""")
    result.assert_outcomes(passed=4)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ('"flash.toml"', "a value without a name"),
        ('expected="flash.toml"', "expected"),
    ],
)
def test_a_marker_that_makes_no_sense_is_said(run, files, arguments, complaint):
    result = run(f"@pytest.mark.dispatch({arguments})\n{CALL}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            f"traceview: error: test_*.py:5: the marker dispatch takes expect=, inconclusive=, torch=, cudnn=, not {complaint}."
        ]
    )


def test_the_command_line_states_the_expectations_of_all_tests(run, files):
    run(CALL, "--dispatch-expect=flash.toml").assert_outcomes(passed=1)
    run(CALL, "--dispatch-expect=math.toml").assert_outcomes(failed=1)


def test_the_ini_file_does_so_too_and_the_command_line_counts_more(run, files, pytester):
    pytester.makeini("[pytest]\ndispatch_expect = math.toml\ndispatch_inconclusive = warn\n")
    run(CALL).assert_outcomes(failed=1)
    run(CALL, "--dispatch-expect=flash.toml").assert_outcomes(passed=1)
    no_work = "def test_it(assert_dispatch):\n    assert_dispatch(NO_WORK, expect={})\n"
    run(no_work).assert_outcomes(passed=1, warnings=1)
    run(no_work, "--dispatch-inconclusive=fail").assert_outcomes(failed=1)


def test_paths_in_tests_start_at_the_root_folder_wherever_pytest_starts(run, files, pytester, monkeypatch):
    pytester.makeini("[pytest]\n")
    folder = pytester.mkdir("below")
    monkeypatch.chdir(folder)
    call = 'def test_it(assert_dispatch):\n    assert_dispatch(FAST, expect="flash.toml")\n'
    run(call, pytester.path).assert_outcomes(passed=1)
    run(CALL, "--dispatch-expect=../math.toml", pytester.path).assert_outcomes(failed=1)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--dispatch-expect=nowhere.toml"], "*no such file: *nowhere.toml. Check --dispatch-expect or the ini file."),
        (["--dispatch-report=."], "*this is a folder: *. Name a file in it."),
        (["--dispatch-report=no/report.json"], "*no such folder: *no. Create it first."),
        (["-o", "dispatch_inconclusive=skip"], '*dispatch_inconclusive must be "fail" or "warn", not "skip".'),
        (["--dispatch-inconclusive=skip"], "*--dispatch-inconclusive: invalid choice: 'skip'*"),
    ],
    ids=["no file", "folder", "no folder", "ini word", "word"],
)
def test_options_that_cannot_be_used_end_the_session_at_once(run, arguments, complaint):
    result = run(CALL, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([complaint])


def test_the_marker_and_the_options_are_documented_by_pytest(pytester):
    pytester.runpytest_inprocess("--markers").stdout.fnmatch_lines(["@pytest.mark.dispatch(*"])
    pytester.runpytest_inprocess("--help").stdout.fnmatch_lines(
        ["kernel dispatch (traceview):", "*--dispatch-expect=PATH*"]
    )
    pytester.runpytest_inprocess("--fixtures").stdout.fnmatch_lines(["assert_dispatch -- *", "profile_dispatch -- *"])
