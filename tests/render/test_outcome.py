"""What the CI renderers share: remarks, their order, and the places they point at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from authored_outcomes import EXPECTED, FAIL, IMPORTED, INCONCLUSIVE, NOTHING, PASS, TRACE, UNTOLD_EXPECTATION, WARNED
from traceview.errors import ExitCode
from traceview.expectations.model import ExpectationResult, ResultKind
from traceview.gate import CheckResult, Verdict
from traceview.render.outcome import Expectation, Place, call_sites, outcome, relative, remarks, shortened


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("Attention, model/attn.py(338): forward", [("model/attn.py", 338)]),
        ("a.py(3): f; Block, b c/d.py(12): g", [("a.py", 3), ("b c/d.py", 12)]),
        ("a.py(3): f; a.py(3): f", [("a.py", 3)]),
        ("/src/repo/a.py(3): f", [("a.py", 3)]),
        ("C:\\repo\\a.py(3): f", [("C:/repo/a.py", 3)]),
        ("/elsewhere/a.py(0): f", [("/elsewhere/a.py", None)]),
        ("no call stack recorded", []),
        ("kernel<(anonymous)>(3): x", []),
        ("<built-in method bmm>", []),
    ],
)
def test_call_sites(where, expected):
    assert [(place.path, place.line) for place in call_sites(where, "/src/repo")] == expected


def test_paths_are_relative_to_where_the_check_ran():
    assert relative("/src/repo/ci/dispatch.toml", "/src/repo/") == "ci/dispatch.toml"
    assert relative("/src/repository/x", "/src/repo") == "/src/repository/x"
    assert relative("./dispatch.toml", "/src/repo") == "dispatch.toml"
    assert relative("/x", "") == "/x"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (PASS, []),
        (FAIL, [("TV102", "error"), ("TV103", "warning"), ("TV101", "note")]),
        # What the trace cannot tell is an error exactly when it is what fails the run.
        (INCONCLUSIVE, [("inconclusive", "error"), ("TV103", "warning")]),
        (WARNED, [("inconclusive", "warning"), ("TV103", "warning")]),
        (NOTHING, [("inconclusive", "error")]),
        (
            EXPECTED,
            [("expectation", "error"), ("TV102", "error"), ("inconclusive", "warning"), ("expectation", "note")],
        ),
        (UNTOLD_EXPECTATION, [("inconclusive", "error")]),
    ],
    ids=["pass", "fail", "inconclusive", "warned", "nothing", "expected", "untold"],
)
def test_remarks_are_worst_first(found, expected):
    assert [(one.rule, one.level.value) for one in remarks(found)] == expected


def test_each_remark_has_a_place():
    places = [one.places[0] for one in remarks(EXPECTED)]
    assert places == [
        Place("ci/dispatch.toml", 7), Place("model/attn.py", 338), Place("ci/dispatch.toml", 12), Place("ci/dispatch.toml", 16)
    ]  # fmt: skip
    assert remarks(NOTHING)[0].places == (Place("runs/rank0.json.gz", None),)


def test_names_are_shortened_and_can_be_written():
    assert shortened("a\x1b[31m\n\udc80") == "a\\x1b[31m\\x0a\\udc80"
    assert len(shortened("k" * 10_000)) == 1000


def result(**more):
    return CheckResult(Verdict.PASS, "said", FAIL.table, (), **more)


def test_a_check_without_expectations():
    found = outcome(result(), TRACE, IMPORTED, ExitCode.OK)
    assert (found.expectations, found.notes, found.verdict, found.exit_code) == (None, (), "pass", 0)


def test_a_check_with_expectations():
    judged = ExpectationResult(ResultKind.EXPECT, "/src/ci/dispatch.toml", 4, "attention: flash", Verdict.FAIL, "math")
    found = outcome(
        result(expectations=(judged,), expectations_path="/src/ci/dispatch.toml", notes=("unused",)),
        TRACE, IMPORTED, ExitCode.VIOLATED, root="/src",
    )  # fmt: skip
    assert found.expectations == (Expectation(Place("ci/dispatch.toml", 4), "attention: flash", "fail", "math", None),)
    assert found.notes == ("unused",)


def test_an_absolute_trace_is_placed_relative_too():
    found = replace(NOTHING, trace=replace(TRACE, files=("/src/run.json",)), root="/src")
    assert remarks(found)[0].places[0].path == "run.json"
