"""What the CI renderers write, word for word: ``snapshots/CASE.FORM`` for each authored outcome.

``TRACEVIEW_WRITE_SNAPSHOTS=1`` writes the files anew; that run still fails where they differed, so that a change is
looked at.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from authored_outcomes import OUTCOMES
from traceview import __version__
from traceview.render.github import render_github
from traceview.render.junit import render_junit
from traceview.render.markdown import render_markdown
from traceview.render.sarif import sarif_document

SNAPSHOTS = Path(__file__).parent / "snapshots"


def sarif(found):
    """Without the catalogue, which grows with every rule and is tested on its own."""
    (run,) = sarif_document(found)["runs"]
    del run["tool"]
    for result in run["results"]:
        del result["ruleIndex"]
    return json.dumps(run, indent=2) + "\n"


RENDERERS = {"md": render_markdown, "txt": render_github, "xml": render_junit, "json": sarif}


@pytest.mark.parametrize("form", RENDERERS)
@pytest.mark.parametrize("name", OUTCOMES)
def test_snapshot(name, form):
    got = RENDERERS[form](OUTCOMES[name]).replace(f'value="{__version__}"', 'value="VERSION"')
    file = SNAPSHOTS / f"{name}.{form}"
    # Bytes: a line end, or a stand-in for what is no text, would be lost in translation.
    want = file.read_bytes().decode() if file.exists() else ""
    if os.environ.get("TRACEVIEW_WRITE_SNAPSHOTS") == "1":
        file.write_bytes(got.encode())
    assert got == want


def test_no_snapshot_without_a_case():
    assert {file.name for file in SNAPSHOTS.iterdir()} == {f"{name}.{form}" for name in OUTCOMES for form in RENDERERS}


@pytest.mark.parametrize("form", RENDERERS)
def test_rendering_twice_gives_the_same(form):
    assert RENDERERS[form](OUTCOMES["fail"]) == RENDERERS[form](OUTCOMES["fail"])
