"""JUnit XML holds to a schema, and is red exactly when the check is.

The schema is ``junit-10.xsd`` of Jenkins' xUnit plugin (MIT licence, in the file), as the sources of pytest ship it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from lxml import etree

from authored_outcomes import EXPECTED, FAIL, INCONCLUSIVE, NOTHING, OUTCOMES, PASS, UNTOLD_EXPECTATION, dispatch, table
from traceview.render.junit import render_junit


@pytest.fixture(scope="module")
def schema():
    return etree.XMLSchema(file=str(Path(__file__).parent / "schemas" / "junit-10.xsd"))


def parsed(found):
    return etree.fromstring(render_junit(found).encode())


def cases(found):
    """Name of each case and what became of it."""
    return [
        (case.get("name"), next((child.tag for child in case if child.tag != "system-out"), "passed"))
        for case in parsed(found).iter("testcase")
    ]


@pytest.mark.parametrize("name", OUTCOMES)
def test_it_validates(name, schema):
    schema.assertValid(parsed(OUTCOMES[name]))


def test_the_schema_can_fail(schema):
    assert not schema.validate(etree.fromstring("<testsuites><testcase/></testsuites>"))


@pytest.mark.parametrize("name", OUTCOMES)
def test_it_is_red_exactly_when_the_check_is(name):
    states = {state for _, state in cases(OUTCOMES[name])}
    assert bool(states & {"failure", "error"}) == (OUTCOMES[name].exit_code != 0)
    assert states, "a report without a case is an error to most systems"


@pytest.mark.parametrize("name", OUTCOMES)
def test_the_totals_are_those_of_the_cases(name):
    states = [state for _, state in cases(OUTCOMES[name])]
    suite = parsed(OUTCOMES[name])[0]
    for attribute, state in {"failures": "failure", "errors": "error", "skipped": "skipped"}.items():
        assert int(suite.get(attribute)) == states.count(state)
    assert int(suite.get("tests")) == len(states)


@pytest.mark.parametrize("name", OUTCOMES)
def test_names_are_keys(name):
    keys = [(case.get("classname"), case.get("name")) for case in parsed(OUTCOMES[name]).iter("testcase")]
    assert len(set(keys)) == len(keys)


def test_one_case_for_each_attention_call_and_finding():
    shapes = "[1,16,4096,64] [1,4,4096,64] fp32"
    assert cases(FAIL) == [
        (f"aten::scaled_dot_product_attention math {shapes}", "failure"),
        (f"aten::scaled_dot_product_attention unknown {shapes}", "skipped"),
        # From the order of kernels alone: a hint, which never fails a check.
        (f"aten::scaled_dot_product_attention unfused {shapes}", "passed"),
        ("TV102 error, Attention, model/attn.py(338): forward; model/other.py(12): run", "failure"),
        ("TV103 warning, no call stack recorded", "passed"),
        ("TV101 info, no call stack recorded", "passed"),
    ]


def test_one_case_for_each_expectation():
    assert cases(EXPECTED) == [
        ("gemm: on tensor cores", "passed"),
        ("attention: flash or cudnn", "failure"),
        ("attention in decode*: flash", "skipped"),
        ("forbid kernel *sgemm*", "passed"),
        ("TV102 error, Attention, model/attn.py(338): forward; model/other.py(12): run", "failure"),
    ]


def test_what_cannot_be_told_is_skipped_unless_it_fails_the_run():
    name = "attention in decode*: flash"
    assert cases(UNTOLD_EXPECTATION) == [(name, "error")]
    assert cases(replace(UNTOLD_EXPECTATION, exit_code=0)) == [(name, "skipped")]
    assert cases(NOTHING) == [("check-dispatch", "error")]
    assert cases(INCONCLUSIVE)[0][1] == "error"


def test_nothing_to_show_is_one_passing_case():
    assert cases(replace(PASS, table=table())) == [("check-dispatch", "passed")]


def test_names_that_are_equal_are_numbered():
    found = replace(PASS, table=table(dispatch(op="x", inputs=None), dispatch(op="x", inputs=None, count=2)))
    assert cases(found) == [("x flash-2", "passed"), ("x flash-2 (2)", "passed")]


def test_any_character_can_be_in_a_name():
    everything = "".join(map(chr, [*range(0x300), *range(0xD7F0, 0xE010), *range(0xFFF0, 0x10010)]))
    found = replace(EXPECTED, expectations=(replace(EXPECTED.expectations[0], text=everything, observed=everything),))
    parsed(found)
