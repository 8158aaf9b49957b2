"""``traceview rule`` and ``traceview rules``."""

from __future__ import annotations

import json

import jsonschema
import pytest

from traceview.findings import Severity
from traceview.render.rules_text import KEYS
from traceview.rules.base import HEADINGS, Rule
from traceview.rules.catalogue import RULES

PARTS = tuple(KEYS.values())


def test_a_rule_word_for_word(monkeypatch, run):
    doc = "Attention ran slow.\n\n" + "\n\n".join(f"{name}\n    Says ``{name}``\n    and more." for name in HEADINGS)
    rule = Rule("TV999", "slow-attention", "Attention ran slow.", Severity.ERROR, lambda facts: (), doc)
    monkeypatch.setattr("traceview.rules.catalogue.RULES", (rule,))
    assert (
        run("rule", "tv999").out
        == """\
TV999 slow-attention: Attention ran slow.

  severity  error at worst

What it finds
  Says `What it finds` and more.

Why it costs
  Says `Why it costs` and more.

Evidence it needs
  Says `Evidence it needs` and more.

When it is wrong
  Says `When it is wrong` and more.

Fix
  Says `Fix` and more.

Scope and sources
  Says `Scope and sources` and more.
"""
    )
    assert (
        run("rules").out
        == """\
  TV999  error    slow-attention  Attention ran slow.

1 rule; traceview rule CODE shows one
"""
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_is_shown_by_code_and_name(rule, run):
    shown = run("rule", rule.code)
    assert shown.code == 0
    assert shown.out.startswith(f"{rule.code} {rule.name}: ")
    assert [line for line in shown.out.splitlines() if line in HEADINGS] == list(HEADINGS)
    assert "``" not in shown.out
    assert all(len(line) <= 100 for line in shown.out.splitlines())
    assert run("rule", rule.code.lower()) == run("rule", rule.name) == shown


def test_all_rules_are_listed(run):
    lines = run("rules").out
    for rule in RULES:
        assert f"  {rule.code}  {rule.severity.value}" in lines


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("TV12", "Did you mean "),
        ("attention-mth", "Did you mean attention-math"),
        ("xyz", "traceview rules lists them all."),
        ("\x1b[31mx", "traceview rules lists them all."),
    ],
)
def test_a_rule_that_does_not_exist(asked, hint, run):
    done = run("rule", asked)
    assert (done.code, done.out) == (2, "")
    assert "no rule has that code or name. " in done.err
    assert hint in done.err
    assert "\x1b" not in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("arguments", [("rules",), ("rule", "TV102")])
def test_json(arguments, run, repository):
    schema = json.loads((repository / "docs" / "schemas" / f"{arguments[0]}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    document = run(*arguments, "--format", "json").json
    jsonschema.Draft202012Validator(schema).validate(document)
    listed = document.get("rules") or [document["rule"]]
    assert [one["code"] for one in listed] == ([rule.code for rule in RULES] if "rules" in document else ["TV102"])
    for one in listed:
        assert all(one[part] and "``" not in one[part] for part in PARTS)


def test_json_does_not_load_rich(run):
    import subprocess
    import sys

    code = "import sys; from traceview.cli.main import main; main(['rules', '--format', 'json']); print(sorted({'rich'} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "[]\n"
