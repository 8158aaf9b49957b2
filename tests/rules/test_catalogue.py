"""Every rule keeps the form that the docs and the renderers rely on."""

from __future__ import annotations

import ast
import pkgutil
import re
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import ModuleType

import pytest

import traceview.rules
from traceview.findings import Severity
from traceview.rules import catalogue
from traceview.rules.base import HEADINGS, Rule, rule_of


@pytest.mark.parametrize("rule", catalogue.RULES, ids=lambda rule: rule.code)
def test_documented_under_all_headings_in_order(rule: Rule) -> None:
    positions = [rule.doc.find(f"\n{heading}\n    ") for heading in HEADINGS]
    assert -1 not in positions, f"{rule.code} lacks {[h for h, p in zip(HEADINGS, positions, strict=True) if p < 0]}"
    assert positions == sorted(positions)
    assert rule.summary.endswith(".")


def test_codes_and_names_are_unique_and_well_formed() -> None:
    assert (
        len({rule.code for rule in catalogue.RULES})
        == len({rule.name for rule in catalogue.RULES})
        == len(catalogue.RULES)
    )
    assert all(re.fullmatch(r"TV\d{3}", rule.code) for rule in catalogue.RULES)
    assert all(re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", rule.name) for rule in catalogue.RULES)
    assert [rule.code for rule in catalogue.RULES] == sorted(rule.code for rule in catalogue.RULES)


def test_found_by_code_and_by_name() -> None:
    for rule in catalogue.RULES:
        assert catalogue.find_rule(rule.code.lower()) is rule
        assert catalogue.find_rule(rule.name) is rule
    assert catalogue.find_rule("TV000") is None


CASES = ("positive", "negative", "not_recorded")
SOURCE = re.compile(
    r"``[^`]+\.(cpp|cu|cuh|h|hpp|py|cc)``|\.(com|org|dev)/|(issues?|request) #\d+|arXiv|data sheet|shipped binary"
    r"|it is a statement about the trace"
)
EVIDENCE = re.compile(
    r"read in (shipped headers|source code)|read 20\d\d-\d\d|string found in a shipped binary"
    r"|seen in a recorded trace|[Gg]eneral knowledge|it is a statement about the trace"
)
MODULES = sorted(m.name for m in pkgutil.iter_modules(traceview.rules.__path__) if re.match(r"tv\d{3}_", m.name))


@pytest.mark.parametrize("rule", catalogue.RULES, ids=lambda rule: rule.code)
def test_names_a_source_and_how_it_is_known(rule: Rule) -> None:
    section = " ".join(rule.doc.split(f"\n{HEADINGS[-1]}\n")[1].split())
    assert SOURCE.search(section), f"{rule.code} names no source that can be looked up"
    assert EVIDENCE.search(section), f"{rule.code} does not say how its source was read"


@pytest.mark.parametrize("module", MODULES)
def test_has_its_three_tests(module: str) -> None:
    tests = Path(__file__).with_name(f"test_{module}.py")
    assert tests.exists(), f"{module} has no tests"
    names = [node.name for node in ast.parse(tests.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)]
    missing = [case for case in CASES if not any(name.startswith(f"test_{case}_") for name in names)]
    assert not missing, f"{tests.name} lacks a test_{missing}_… "


def test_every_rule_file_is_in_the_catalogue() -> None:
    files = sorted(file.stem for file in Path(traceview.rules.__file__).parent.glob("tv[0-9]*.py"))
    listed = [f"{rule.code.lower()}_{rule.name.replace('-', '_')}" for rule in catalogue.RULES]
    assert listed == files == MODULES
    assert len(listed) > 40


def test_a_file_that_is_not_named_after_its_rule_is_refused() -> None:
    module = ModuleType("traceview.rules.tv999_other")
    module.__dict__.update(CODE="TV999", NAME="this-one", SEVERITY=Severity.INFO, check=lambda _: ())
    with pytest.raises(TypeError, match=r"must be tv999_this_one\.py"):
        rule_of(module)


@pytest.mark.parametrize("module", MODULES)
def test_states_what_a_rule_states(module: str) -> None:
    loaded = import_module(f"traceview.rules.{module}")
    assert isinstance(loaded.SEVERITY, Severity)
    assert list(signature(loaded.check).parameters) == ["facts"]
