"""Every command, option, exit code and JSON key is documented."""

from __future__ import annotations

import json
import re
from importlib import import_module

import pytest

from traceview.cli.main import COMMANDS, build_parser

MODULES = [import_module(f"traceview.cli.{name}") for name in COMMANDS]
HEADINGS = ["Example", "Input and options", "Exit codes", "JSON", "Limits"]
OWN_HEADINGS = {"Findings", "How it counts", "What counts as idle", "What is found", "In Python"}
"""What some commands have to explain besides."""


def options(name):
    parser = build_parser(MODULES)
    (commands,) = (action for action in parser._actions if action.dest == "command")
    strings = {string for action in commands.choices[name]._actions for string in action.option_strings}
    return {string for string in strings if string.startswith("--")} - {"--help"}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.NAME)
def test_a_command_is_documented(module, repository):
    page = (repository / "docs" / "commands" / f"{module.NAME}.md").read_text()
    assert page.startswith(f"# traceview {module.NAME}\n")
    headings = [heading for heading in re.findall(r"^## (.*)$", page, re.MULTILINE) if heading not in OWN_HEADINGS]
    assert headings == HEADINGS
    assert {option for option in options(module.NAME) if f"`{option}" not in page} == set()
    if "--format" not in options(module.NAME):
        return  # It has no JSON of its own.
    schema = json.loads((repository / "docs" / "schemas" / f"{module.NAME}.json").read_text())
    assert {key for key in schema["properties"] if f"`{key}" not in page} - {"schema", "notes"} == set()
    for summary in (module.SUMMARY, module.DESCRIPTION):
        assert summary


def test_no_page_without_a_command(repository):
    pages = {page.stem for page in (repository / "docs" / "commands").glob("*.md")}
    assert pages == {module.NAME for module in MODULES}
