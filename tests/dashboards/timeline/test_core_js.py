"""The scripts of the timeline: their arithmetic under Node, and that no word of a trace can become markup."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "dashboards" / "timeline"
SCRIPTS = ("core.js", "paint.js", "navigate.js", "timeline.js")

# Everything that turns text into elements or code.
MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|document\.write|DOMParser|setHTML|srcdoc|"
    r"\beval\(|new Function|\bimport\("
)
REMOTE = re.compile(r"https?:|//[\w.]+\.\w+/|fetch\(|XMLHttpRequest|WebSocket|sendBeacon")


def test_the_arithmetic_holds_under_node():
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed: the arithmetic of the timeline is tested with `node --test`")
    done = subprocess.run(
        [node, "--test", str(Path(__file__).with_name("core.test.mjs"))],
        env={**os.environ, "TRACEVIEW_CORE_JS": str(FOLDER / "core.js")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_word_becomes_markup_and_nothing_is_fetched(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert MARKUP.search(text) is None
    assert REMOTE.search(text) is None


def test_these_are_all_scripts_there_are():
    assert sorted(path.name for path in FOLDER.glob("*.js")) == sorted(SCRIPTS)


def test_the_component_is_one_script_without_imports():
    pytest.importorskip("streamlit", reason="Streamlit is not installed: pip install 'traceview[dashboard]'")
    from traceview.dashboards.timeline.component import script

    text = script()
    assert re.search(r"^\s*import\b", text, re.MULTILINE) is None
    assert re.findall(r"^export \w+", text, re.MULTILINE) == ["export default"]
    assert "function mergeRow(" in text
    assert "class Painter " in text
