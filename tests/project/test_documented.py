"""Nothing that a user can call is undocumented. What exists is found in the code, not listed here."""

from __future__ import annotations

import argparse
import re
from importlib import import_module

import pytest

from traceview.cli import main as program
from traceview.rules.base import HEADINGS
from traceview.rules.catalogue import RULES

COMMANDS = [import_module(f"traceview.cli.{module}") for module in program.COMMANDS]


def subcommands(parser):
    (action,) = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return action.choices


PARSERS = subcommands(program.build_parser(COMMANDS))


@pytest.mark.parametrize("name", PARSERS)
def test_every_option_has_help(name):
    assert [action.dest for action in PARSERS[name]._actions if not action.help] == []


def test_every_command_module_is_a_command(repository):
    modules = {
        path.stem
        for path in (repository / "traceview" / "cli").glob("*.py")
        if re.search(r"^def add_options\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert modules == set(program.COMMANDS)


def test_every_rule_file_is_in_the_catalogue(repository):
    files = {path.stem for path in (repository / "traceview" / "rules").glob("tv[0-9]*.py")}
    assert files == {f"{rule.code.lower()}_{rule.name.replace('-', '_')}" for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_says_what_a_reader_must_know(rule):
    lines = rule.doc.splitlines()
    assert tuple(line for line in lines if line in HEADINGS) == HEADINGS
    assert rule.summary.endswith(".")
    for heading in HEADINGS:
        assert lines[lines.index(heading) + 1].strip(), f"{rule.code}: nothing under {heading!r}"


def test_the_start_page_names_every_command(repository):
    readme = (repository / "README.md").read_text(encoding="utf-8")
    assert [name for name in PARSERS if f"traceview {name}" not in readme] == []
