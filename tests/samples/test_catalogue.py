"""The catalogue names every sample, and what it says of each is true."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import sample_traces
from sample_traces import index
from traceview import samples
from traceview.cli.main import COMMANDS, main
from traceview.errors import UsageError
from traceview.loading import load

FOLDER = Path(sample_traces.__file__).parent
CATALOGUE = samples.catalogue()
MOST_BYTES = 300_000


def test_every_file_is_in_it_once():
    listed = [path for sample in CATALOGUE for path in sample.paths]
    truths = set(FOLDER.rglob("*.truth.json"))
    assert len(listed) == len(set(listed))
    assert {path for sample in CATALOGUE for path in sample.truths} == truths
    assert {json.loads(path.read_text())["trace"] for path in truths} == {path.name for path in listed}


@pytest.mark.parametrize("sample", CATALOGUE, ids=lambda sample: sample.name)
def test_an_entry_is_true(sample):
    assert sample.shows
    assert set(sample.shows) <= set(samples.SHOWS)
    assert sample.story.endswith(".")
    assert all(path.stat().st_size < MOST_BYTES for path in sample.paths)
    truths = [json.loads(path.read_text()) for path in sample.truths]
    assert {truth["authored"] for truth in truths} == {sample.authored}
    timeline = load(sample.paths)
    assert {run.format for run in timeline.runs} == {sample.format}
    assert len(timeline.runs) == len(sample.paths)
    for note in sample.notes:
        text = note.read_text()
        assert ("**Authored, not" if sample.authored else "**Recorded, not authored.**") in text
        assert note.name.removesuffix(".md") + ".truth.json" in text
    names = timeline.devices["name"].cast(str).to_list() if timeline.devices.height else []
    product = sample.device.rpartition("x ")[2].replace("TPU v6e", "TPU v6 Lite")
    assert all(product in name for name in names)


def test_what_samples_show_are_commands():
    commands = {name.replace("_", "-") for name in COMMANDS}
    assert set(samples.SHOWS) - {"ranks"} <= commands
    # Every question about a trace has a sample to try it on.
    assert set(samples.SHOWS) == {one for sample in CATALOGUE for one in sample.shows}


def test_pairs_are_two_samples_of_one_format():
    for pair in samples.pairs():
        before, after = samples.find(pair.before), samples.find(pair.after)
        assert (before.after, after.before) == (pair.after, pair.before)
        assert before.format == after.format
        told = [json.loads(sample.truths[0].read_text()).get("pair") for sample in (before, after)]
        stems = [sample.notes[0].name.removesuffix(".md") for sample in (after, before)]
        assert told in (stems, [None, None])


def test_the_table_in_the_readme_is_up_to_date():
    assert index.page() == index.README.read_text(encoding="utf-8"), "run python sample_traces/make.py"


def test_names_that_do_not_exist():
    with pytest.raises(UsageError, match=r"^two-rank: no sample has that name. Is two-ranks meant\?"):
        samples.paths("two-rank")


def test_without_samples(monkeypatch, tmp_path):
    samples._read.cache_clear()
    monkeypatch.setattr(samples, "_FOLDERS", (tmp_path,))
    with pytest.raises(UsageError, match=r"^the sample traces are not installed with this traceview\. Install"):
        samples.catalogue()
    samples._read.cache_clear()


class TestCommand:
    def test_a_name_prints_paths(self, capsys):
        assert main(["samples", "two-ranks"]) == 0
        assert capsys.readouterr().out.splitlines() == [str(path) for path in samples.paths("two-ranks")]

    def test_the_list(self, capsys):
        assert main(["samples"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == f"{len(CATALOGUE)} samples; traceview samples NAME prints where its files are."
        named = [line.split()[0] for line in lines if line.startswith("  ")]
        assert {sample.name for sample in CATALOGUE} <= set(named)
        assert not [line for line in lines if len(line) > 100]

    def test_nobody_of_that_name(self, capsys):
        assert main(["samples", "nothing-like-it"]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err == (
            "traceview: error: nothing-like-it: no sample has that name. traceview samples lists them all.\n"
        )

    @pytest.mark.parametrize("arguments", [[], ["llm-decode-eager"]])
    def test_json(self, arguments, capsys, repository):
        assert main(["samples", *arguments, "--format", "json"]) == 0
        document = json.loads(capsys.readouterr().out)
        schema = json.loads((repository / "docs" / "schemas" / "samples.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft202012Validator(schema).validate(document)
        wanted = arguments or [sample.name for sample in CATALOGUE]
        assert [one["name"] for one in document["samples"]] == wanted
        assert len(document["pairs"]) == (1 if arguments else len(samples.pairs()))
