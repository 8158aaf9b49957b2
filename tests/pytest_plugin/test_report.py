"""``--dispatch-report``: one JSON document of all checks of a session, in one process or several."""

from __future__ import annotations

import json

import jsonschema
import pytest
from referencing import Registry, Resource

CHECKS = """
def test_a_fast(assert_dispatch):
    assert_dispatch(FAST)

def test_b_slow(assert_dispatch):
    assert_dispatch(SLOW)

def test_c_both(assert_dispatch):
    assert_dispatch(FAST)
    assert_dispatch(NO_WORK)

def test_d_cannot_run(assert_dispatch):
    assert_dispatch("nowhere.json")

def test_e_none():
    pass
"""
WANT = [
    ("test_a_fast", "call", "pass"),
    ("test_b_slow", "call", "fail"),
    ("test_c_both", "call", "pass"),
    ("test_c_both", "call", "inconclusive"),
    ("test_d_cannot_run", "call", None),
]


@pytest.fixture
def report(pytester):
    def read():
        return json.loads((pytester.path / "report.json").read_text())

    return read


def rows(document):
    return [(check["test"].split("::")[1], check["phase"], check["verdict"]) for check in document["checks"]]


@pytest.fixture
def validate(repository):
    """Check a document by its published schema, which refers to that of check-dispatch."""
    schemas = {
        name: json.loads((repository / "docs" / "schemas" / name).read_text())
        for name in ("pytest.json", "check-dispatch.json")
    }
    registry = Registry().with_resources((name, Resource.from_contents(schema)) for name, schema in schemas.items())
    return jsonschema.Draft202012Validator(schemas["pytest.json"], registry=registry).validate


def test_all_checks_are_in_the_report(run, report, validate):
    result = run(CHECKS, "--dispatch-report=report.json")
    document = report()

    result.assert_outcomes(passed=2, failed=3)
    validate(document)
    assert rows(document) == WANT
    assert document["counts"] == {"pass": 2, "fail": 1, "inconclusive": 1, "error": 1}
    assert document["pytest_exit_status"] == 1
    assert document["checks"][1]["check"]["summary"].startswith("6 SDPA calls fell back to math")
    assert document["checks"][4]["error"].startswith("traceview: error: nowhere.json: ")
    result.stdout.fnmatch_lines(["traceview: 5 dispatch checks written to *report.json"])


def test_the_ini_file_can_ask_for_it(run, report, pytester):
    pytester.makeini("[pytest]\ndispatch_report = report.json\n")
    run(CHECKS)
    assert rows(report()) == WANT


def test_a_session_without_checks_says_so(run, report, validate):
    run("def test_it():\n    pass\n", "--dispatch-report=report.json").assert_outcomes(passed=1)
    document = report()
    validate(document)
    assert (document["checks"], document["notes"]) == (
        [],
        [{"part": "checks", "text": "No dispatch check ran in this session."}],
    )


def test_checks_of_fixtures_are_in_it_with_their_phase(run, report):
    run(
        """
@pytest.fixture
def checked(assert_dispatch):
    assert_dispatch(FAST)
    yield
    assert_dispatch(FAST)

def test_it(checked):
    pass
""",
        "--dispatch-report=report.json",
    ).assert_outcomes(passed=1)
    assert rows(report()) == [("test_it", "setup", "pass"), ("test_it", "teardown", "pass")]


def test_collecting_alone_writes_no_report(run, pytester):
    run(CHECKS, "--dispatch-report=report.json", "--collect-only")
    assert not (pytester.path / "report.json").exists()


def test_the_processes_of_xdist_write_one_report_together(run, report, validate):
    pytest.importorskip("xdist")
    result = run(CHECKS, "--dispatch-report=report.json", "-n2", subprocess=True)
    document = report()

    result.assert_outcomes(passed=2, failed=3)
    validate(document)
    assert rows(document) == WANT
    assert document["notes"] == []


def test_a_process_of_xdist_that_dies_is_said_and_the_others_are_kept(run, report):
    pytest.importorskip("xdist")
    body = CHECKS + "\ndef test_f_dies(assert_dispatch):\n    assert_dispatch(FAST)\n    import os\n    os._exit(1)\n"
    run(body, "--dispatch-report=report.json", "-n1", subprocess=True)
    document = report()

    assert rows(document) == WANT
    assert [note["text"] for note in document["notes"]] == [
        "gw0 ended before its time: checks of the test that it was running are missing."
    ]
