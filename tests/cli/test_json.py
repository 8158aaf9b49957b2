"""JSON results keep their published schemas, on every sample trace and every real trace."""

from __future__ import annotations

import json

import jsonschema
import pytest

from traceview import load, report
from traceview.explaining import explain_trace
from traceview.gap_report import gap_report
from traceview.gate import check
from traceview.recompile_report import recompile_report
from traceview.render import documents
from traceview.render.explain_document import explain_document
from traceview.render.idle_documents import gaps_document, recompiles_document, transfers_document
from traceview.render.report_document import report_document
from traceview.render.time_documents import stages_document, steps_document
from traceview.time_report import stage_report, step_report
from traceview.transfer_report import transfer_report

COMMANDS = ("check-dispatch", "explain", "report", "stages", "steps", "kernels", "gaps", "recompiles", "transfers")


@pytest.fixture(scope="session")
def validators(repository):
    """Command name to a validator of its published schema."""
    found = {}
    for name in COMMANDS:
        schema = json.loads((repository / "docs" / "schemas" / f"{name}.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        found[name] = jsonschema.Draft202012Validator(schema)
    return found


def sample_inputs(samples):
    single = sorted(
        path for path in samples.iterdir() if ".cuda-authored.json" in path.name or ".hip-authored.json" in path.name
    )
    return [*(path for path in single if "truth" not in path.name), samples / "two-ranks"]


@pytest.mark.parametrize("name", COMMANDS)
def test_samples(name, samples, run, validators):
    inputs = sample_inputs(samples)
    assert len(inputs) > 5
    for path in inputs:
        done = run(name, path, "--format", "json")
        assert (done.err, done.code in {0, 1, 3}) == ("", True), path.name
        validators[name].validate(done.json)


@pytest.mark.slow
def test_real_traces(corpus, validators):
    for path in sorted((corpus / "pytorch").iterdir()):
        timeline = load(path)
        trace, summary = report.describe(timeline), report.summarise_import(timeline)
        result = check(timeline)
        kernels = report.kernel_report(timeline)
        written = {
            "check-dispatch": documents.check_document(result, trace, summary, result.exit_code),
            "explain": explain_document(explain_trace(timeline), trace, summary),
            "gaps": gaps_document(gap_report(timeline), limit=100, places=[]),
            "recompiles": recompiles_document(recompile_report(timeline), limit=None),
            "transfers": transfers_document(transfer_report(timeline), limit=None),
            "report": report_document(report.report(timeline)),
            "stages": stages_document(stage_report(timeline)),
            "steps": steps_document(step_report(timeline), report.steps_of(step_report(timeline).steps)),
            "kernels": documents.kernels_document(kernels, kernels.kernels),
        }
        for name, document in written.items():
            validators[name].validate(json.loads(documents.dumps(document)))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_key_of_the_schema_is_described(name, validators):
    """A key without a description is a key that nobody can use."""

    def undescribed(schema, path):
        for key, part in schema.get("properties", {}).items():
            says_enough = {"description", "$ref", "enum", "const", "properties", "items"} & set(part)
            if not says_enough and (path, key) not in QUIET:
                yield f"{path}.{key}"
            yield from undescribed(part, f"{path}.{key}")
        for part in (schema.get("items"), *schema.get("$defs", {}).values()):
            if isinstance(part, dict):
                yield from undescribed(part, path)

    assert list(undescribed(validators[name].schema, name)) == []


QUIET = {
    (f"check-dispatch.{part}", key)
    for part, keys in {"reasons": ("text", "evidence", "source"), "kernels": ("name", "count")}.items()
    for key in keys
}  # fmt: skip
"""Keys that say it all by their name."""


def test_what_is_not_known_is_null_and_said(samples, run):
    document = run("report", samples / "no-device-work.cuda-authored.json", "--format", "json").json
    assert document["devices"] is None
    assert document["kernels"] is None
    said = {note["part"] for note in document["notes"]}
    null = {key for key, value in document.items() if value is None}
    assert null - {"families"} <= said


def test_shares_of_the_families_add_up_to_one(samples, run):
    for path in sample_inputs(samples):
        families = run("kernels", path, "--format", "json").json["families"]
        assert families is None or sum(one["share"] for one in families) == pytest.approx(1)
