"""Every remark that a parser or the loader can make reaches the user as a finding when it limits the trace."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import traceview
from authored_timeline import kernel, launch
from rules.rule_case import ADD, on_device, ran
from traceview.dispatch import dispatch_table
from traceview.rules.base import Facts
from traceview.rules.catalogue import RULES, find_rule
from traceview.rules.import_evidence import RULE_OF_NOTE, rule_of_note
from traceview.timeline import Count, ImportReport, Note, Trust

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.timeline import Timeline

PACKAGE = Path(traceview.__file__).parent
READS_BACK = "timeline_facts.py"
"""Takes the remarks of a written timeline as they are; each of them was made by one of the others."""

SOURCES = [
    one for one in (*PACKAGE.rglob("*.py"), *(PACKAGE.parent / "parsers").rglob("*.py")) if one.name != READS_BACK
]


def notes_in(source: Path) -> Iterator[tuple[str, int, list[str]]]:
    """Place and possible kinds of each note that a file makes; no kinds where they cannot be read off."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if name == "Note":
                kind = node.args[0] if node.args else next(one.value for one in node.keywords if one.arg == "kind")
                yield source.name, node.lineno, list(constants(kind))


def constants(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.IfExp):
        yield from constants(node.body)
        yield from constants(node.orelse)
    elif isinstance(node, ast.JoinedStr):
        # What is filled in is not known; whatever it is, it belongs to a rule.
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "anything" for part in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


MADE = [one for source in SOURCES for one in notes_in(source)]
KINDS = sorted({kind for _, _, kinds in MADE for kind in kinds})


def test_the_kinds_can_be_read_off_the_source() -> None:
    assert [one[:2] for one in MADE if not one[2]] == []
    assert {"profiler-dropped-records", "graph-without-work", "launch-without-work", "clocks-aligned"} <= set(KINDS)


def traces() -> dict[str, Timeline]:
    """A trace that has what the remark is about, for the rules that look at that instead of the remark."""
    plain = on_device(*ran("aten::add", ADD, 0, 10, 1))
    lost = ImportReport({"lost-event": Count(1)}, truncated=True)
    replayed = on_device(launch(0, 1, name="cudaGraphLaunch"), kernel(ADD, 5, 9))
    return {"TV903": replace(plain, report=lost), "TV905": replayed}


@pytest.mark.parametrize("kind", KINDS)
def test_what_limits_the_trace_is_a_finding_of_exactly_one_rule(kind: str) -> None:
    """A parser may make any remark limit the trace tomorrow: the kind alone decides which rule speaks."""
    trace = traces().get(rule_of_note(kind), on_device(*ran("aten::add", ADD, 0, 10, 1)))
    report = ImportReport(trace.report.counts, (Note(kind, "This is said.", Trust.LIMITED),), trace.report.truncated)
    facts = Facts(replace(trace, report=report), dispatch_table(trace))
    speaking = [rule.code for rule in RULES if rule.code.startswith("TV9") and list(rule.check(facts))]
    assert speaking == [rule_of_note(kind)]


def test_the_rules_named_exist_and_the_kinds_too() -> None:
    assert all(find_rule(rule_of_note(kind)) for kind in KINDS)
    assert rule_of_note("profiler-dropped-records") == rule_of_note("profiler-anything") == "TV904"
    assert rule_of_note("said-by-a-parser-of-another-package") == "TV907"
    assert set(RULE_OF_NOTE) <= set(KINDS), "a kind that nothing makes any more"
