"""The recorded samples hold what their programs planted, and nothing about the machine they were made on."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "sample_traces"
FILES = sorted(
    p for p in FOLDER.glob("torch-cpu-*") if p.name.endswith((".json", ".json.gz")) and ".truth." not in p.name
)


def text(path):
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def events(name):
    path = next(p for p in FILES if p.name.startswith(name))
    return [e for e in json.loads(text(path))["traceEvents"] if e["ph"] == "X"]


def test_there_are_four():
    assert [p.name for p in FILES] == [
        "torch-cpu-attention.json",
        "torch-cpu-gaps.json",
        "torch-cpu-recompiles.json.gz",
        "torch-cpu-stages.json.gz",
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_small_scrubbed_and_honest(path):
    content = text(path)
    assert path.stat().st_size < 300_000
    assert not re.search(r'"(host_name|username|trace_id|traceview_authored)"', content)
    assert not re.search(r'"/[a-z]+/|site-packages|/(home|root|Users|tmp|opt|usr)/', content)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_truth_table_counts_what_is_in_the_file(path):
    truth = json.loads((FOLDER / (path.name.removesuffix(".gz").removesuffix(".json") + ".truth.json")).read_text())
    rows = [e for e in json.loads(text(path))["traceEvents"] if e["ph"] == "X" and e["cat"] != "Trace"]
    assert dict(Counter(e["cat"] for e in rows)) == truth["events"]
    assert truth["authored"] is False


def test_attention_three_ways():
    names = Counter(e["name"] for e in events("torch-cpu-attention"))
    assert names["aten::_scaled_dot_product_flash_attention_for_cpu"] == 6
    assert names["aten::_scaled_dot_product_attention_math"] == 3
    assert names["by_hand"] == 3
    assert names["aten::_softmax"] == 6  # three inside math, three by hand


def test_recompiles_for_a_new_size_in_both_halves_of_a_broken_graph():
    names = Counter(e["name"] for e in events("torch-cpu-recompiles"))
    assert {n: c for n, c in names.items() if n.startswith("Torch-Compiled Region")} == {
        f"Torch-Compiled Region: {frame}/{version}": 2 for frame in (0, 1) for version in (0, 1)
    }
    truth = json.loads((FOLDER / "torch-cpu-recompiles.truth.json").read_text())
    assert truth["compiles_per_step"] == {
        "ProfilerStep#0": 2,
        "ProfilerStep#1": 0,
        "ProfilerStep#2": 2,
        "ProfilerStep#3": 0,
    }


def test_a_sleep_and_an_item_in_each_step():
    rows = events("torch-cpu-gaps")
    sleeps = [e["dur"] for e in rows if e["name"] == "load_batch"]
    assert len(sleeps) == 3
    assert min(sleeps) >= 50_000
    assert sum(e["name"] == "aten::item" for e in rows) == 3
    assert any(e["cat"] == "python_function" for e in rows)


def test_stages_are_marked_and_weights_converted_in_each_step():
    rows = events("torch-cpu-stages")
    names = Counter(e["name"] for e in rows)
    assert {n: c for n, c in names.items() if n.startswith("traceview.stage:")} == {
        "traceview.stage:text_encoder": 4, "traceview.stage:denoise": 4, "traceview.stage:vae_decode": 4,
    }  # fmt: skip
    assert names["aten::_scaled_dot_product_flash_attention_for_cpu"] == 4
    assert names["aten::_scaled_dot_product_attention_math"] == 12
    converted = [e for e in rows if e["name"] == "aten::_to_copy" and e["args"]["Input type"][0] == "c10::BFloat16"]
    assert len(converted) == 4 * 9


def test_the_index_lists_every_sample():
    index = (FOLDER / "README.md").read_text()
    for note in FOLDER.rglob("*.md"):
        assert note.name == "README.md" or f"({note.relative_to(FOLDER).as_posix()})" in index
