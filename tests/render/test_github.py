"""Workflow commands: what the runner makes of them, and that a name cannot be one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from authored_outcomes import EVIL, EXPECTED, FAIL, HOSTILE, MATH, OUTCOMES, UNTOLD
from traceview.render.github import render_github, without_commands
from traceview.render.outcome import Place

KNOWN = {"error", "warning", "notice", "add-mask", "debug", "group", "endgroup", "save-state", "stop-commands", "echo"}


def obeyed(text):
    """The commands that a runner reads from a log: after ActionCommand.cs and ActionCommandManager.cs of actions/runner."""
    token = None
    for line in text.split("\n"):
        line = line.lstrip()
        inside, found, data = line[2:].partition("::") if line.startswith("::") else ("", "", "")
        name, _, properties = inside.partition(" ")
        if token is not None:
            token = None if found and inside == token else token
        elif found and name == "stop-commands":
            token = data
        elif found and name in KNOWN:
            values = dict(one.split("=", 1) for one in properties.split(",") if "=" in one)
            yield name, {key: unescaped(value) for key, value in values.items()}, unescaped(data)
        elif "##[" in line and line.split("##[", 1)[1].split("]")[0].split(" ")[0] in KNOWN:
            yield "legacy", {}, line


def unescaped(text):
    for token, escape in {"\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C", "%": "%25"}.items():
        text = text.replace(escape, token)
    return text


def test_places_and_texts_arrive():
    commands = list(obeyed(render_github(EXPECTED)))
    assert [(name, properties["file"], properties["line"]) for name, properties, _ in commands] == [
        ("error", "ci/dispatch.toml", "7"),
        ("error", "model/attn.py", "338"),
        ("warning", "ci/dispatch.toml", "12"),
        ("notice", "ci/dispatch.toml", "16"),
    ]
    _, properties, text = commands[1]
    assert properties["title"] == f"TV102: {MATH.title}"
    assert text.splitlines()[0] == MATH.title
    assert text.splitlines()[1] == MATH.evidence[0]


def test_without_a_line_only_the_file_is_named():
    (command,) = obeyed(render_github(replace(FAIL, findings=(UNTOLD,))))
    assert set(command[1]) == {"file", "title"}


@pytest.mark.parametrize("name", OUTCOMES)
def test_nothing_but_annotations_is_obeyed(name):
    commands = list(obeyed(render_github(OUTCOMES[name])))
    assert {command for command, _, _ in commands} <= {"error", "warning", "notice"}
    assert all(set(properties) <= {"file", "line", "title"} for _, properties, _ in commands)


def test_a_hostile_path_arrives_whole():
    _, properties, _ = next(iter(obeyed(render_github(EVIL))))
    assert properties["file"] == "dir with space/%41,:é\\x0a.toml"


def test_ten_of_a_level_and_then_a_count():
    many = tuple(
        replace(EXPECTED.expectations[1], place=Place("d.toml", at), text=f"expectation {at}") for at in range(1, 14)
    )
    text = render_github(replace(EXPECTED, expectations=many, findings=(MATH, *(UNTOLD,) * 11)))
    commands = list(obeyed(text))
    assert [name for name, _, _ in commands] == ["error"] * 10 + ["warning"] * 10
    assert [properties["line"] for _, properties, _ in commands[:10]] == [str(at) for at in range(1, 11)]
    assert text.splitlines()[-3] == "4 more errors, 1 more warning in the summary"


def test_a_pass_is_one_plain_line():
    assert (
        render_github(OUTCOMES["pass"])
        == "traceview check-dispatch: pass: every attention call ran fused (6 flash-2)\n"
    )


@pytest.mark.parametrize("text", ["::error::owned", "  \u00a0::add-mask::x\nlast", "x ##[error]owned", HOSTILE])
def test_a_log_obeys_nothing_in_between(text):
    assert list(obeyed(text))
    assert list(obeyed(without_commands(text, "0123abcd"))) == []
    after = without_commands(text, "0123abcd") + "::notice::mine"
    assert list(obeyed(after)) == [("notice", {}, "mine")]


@pytest.mark.parametrize("title", ["x::y", "a, line=9", "50%", "%0A%25%2C", "a=b", "##[error]x"])
def test_any_text_arrives_as_it_is(title):
    (command,) = obeyed(render_github(replace(FAIL, findings=(replace(MATH, title=title),))))
    assert command[1] == {"file": "model/attn.py", "line": "338", "title": f"TV102: {title}"}
    assert command[2].splitlines()[0] == title
