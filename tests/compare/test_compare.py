"""Two traces compared: the authored pair, damage to it, and real pairs with published figures."""

from __future__ import annotations

import io
import json
from pathlib import Path

import jsonschema
import pytest

import sample_traces
from traceview import load
from traceview.comparability import Comparable
from traceview.compare import compare, compare_sides, side
from traceview.errors import ExitCode, UsageError
from traceview.render.compare_document import compare_document
from traceview.render.compare_tables import stages_remark
from traceview.render.compare_text import headline, print_comparison, write_comparison
from traceview.render.documents import dumps
from traceview.render.page import Page
from traceview.slowdown_limit import SlowdownLimit, judge_limit, read_limit
from traceview.stage_sources.patterns import stage_patterns
from traceview.step_change import Verdict

SAMPLES = Path(sample_traces.__file__).parent
MATH = SAMPLES / "flash-requested-math-ran.cuda-authored.json.gz"
FLASH = SAMPLES / "flash-requested-flash-ran.cuda-authored.json.gz"


@pytest.fixture(scope="module")
def sides():
    return side(load(MATH)), side(load(FLASH))


@pytest.fixture(scope="module")
def found(sides):
    return compare_sides(*sides)


def test_the_change_did_what_it_claims(found):
    assert (found.verdict, found.comparable) == (Verdict.FASTER, Comparable.YES)
    attention = [one for one in found.dispatches if one.family == "attention"]
    assert [(one.stage, one.before[0].implementation, one.after[0].implementation) for one in attention] == [
        ("denoise", "math", "flash-2")
    ]
    assert (attention[0].before[0].verdict, attention[0].after[0].verdict) == ("slow", "ok")
    assert found.step.speedup == pytest.approx(10_224_462 / 3_211_418)
    assert "Attention in denoise ran flash-2 instead of math." in headline(found)


def test_parts_and_stages_add_up_to_the_mean_step(found):
    for side_, sum_of in ((found.step.before, "before_ns"), (found.step.after, "after_ns")):
        assert sum(getattr(one, sum_of) for one in found.parts) == pytest.approx(side_.mean_ns, abs=1)
        outer = [one for one in found.stages if "/" not in one.name]
        total = sum(getattr(one, sum_of) or 0 for one in outer) + getattr(found.unattributed, sum_of)
        assert total == pytest.approx(side_.mean_ns, abs=1)


def test_kernels_are_new_gone_or_changed(found):
    status = {one.name: (one.before_ns is None, one.after_ns is None) for one in found.kernels}
    assert [name for name in status if "SoftMax" in name and status[name] == (False, True)]
    flash = next(one for one in found.kernels if "flash_fwd" in one.name)
    assert (flash.before_count, flash.after_count) == (1, 3)
    assert [abs(one.difference_ns) for one in found.kernels] == sorted(
        (abs(one.difference_ns) for one in found.kernels), reverse=True
    )


def test_turned_round_it_is_slower_and_breaks_the_limit(sides):
    turned = compare_sides(*reversed(sides))
    assert turned.verdict is Verdict.SLOWER
    assert judge_limit(SlowdownLimit(0.05), turned).code is ExitCode.VIOLATED
    assert judge_limit(SlowdownLimit(5.0), turned).code is ExitCode.OK
    assert turned.step.change == pytest.approx(1 / (1 + compare_sides(*sides).step.change) - 1)


def test_a_trace_against_itself_is_the_same(sides):
    same = compare_sides(sides[0], sides[0])
    assert same.verdict is Verdict.SAME
    assert same.dispatches == ()
    assert {one.difference_ns for one in (*same.kernels, *same.stages, *same.parts)} == {0.0}
    assert same.comparable is Comparable.LIMITED  # It is the same file, which is hardly what was meant.
    assert judge_limit(SlowdownLimit(0.0), same).code is ExitCode.OK


def test_other_hardware_and_other_work_prove_nothing(sides):
    other = compare_sides(side(load(SAMPLES / "compiled.cuda-authored.json")), sides[0])
    assert (other.comparable, other.verdict) == (Comparable.NO, Verdict.INCONCLUSIVE)
    assert "not comparable: device" in headline(other)
    assert "as fast" not in headline(other)
    assert judge_limit(SlowdownLimit(0.05), other).code is ExitCode.INCONCLUSIVE


def test_every_kind_of_trace_can_be_a_side(validator):
    """Host-only, two ranks, Nsight Systems, without device work: none of it fails, and JSON keeps its schema."""
    for name in (
        "torch-cpu-attention.json",
        "two-ranks",
        "two-ranks.nsys-authored.sqlite",
        "no-device-work.cuda-authored.json",
        "graph-replay.cuda-authored.json",
    ):
        own = side(load(SAMPLES / name))
        same = compare_sides(own, own)
        assert same.verdict in {Verdict.SAME, Verdict.INCONCLUSIVE}
        document = json.loads(dumps(compare_document(same, 0)))
        validator.validate(document)
        null = {key for key, value in document.items() if value is None} - {"limit"}
        assert null <= {note["part"] for note in document["notes"]}, name
        assert headline(same)


@pytest.fixture(scope="module")
def validator(repository):
    schema = json.loads((repository / "docs" / "schemas" / "compare.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_json_keeps_its_schema(found, validator):
    limit = SlowdownLimit(0.05)
    validator.validate(json.loads(dumps(compare_document(found, 0, (limit, judge_limit(limit, found))))))


def test_every_key_of_the_schema_is_described(validator):
    def undescribed(schema, path):
        for key, part in schema.get("properties", {}).items():
            if not {"description", "$ref", "const"} & set(part):
                yield f"{path}.{key}"
            yield from undescribed(part, f"{path}.{key}")

    defs = validator.schema["$defs"]
    own = ("condition", "side", "spread", "step_change", "delta", "mix", "dispatch_change", "compilations")
    assert list(undescribed(validator.schema, "")) == []
    assert [name for key in own for name in undescribed(defs[key], key)] == []


def test_names_of_a_trace_do_nothing_in_text_and_markdown(tmp_path):
    """A kernel and a stage whose names are escape sequences, HTML and Markdown."""
    hostile = "\\u001b[31m<img src=x onerror=alert(1)>|**b**[x](javascript:1)"
    original = json.loads((SAMPLES / "compiled.cuda-authored.json").read_text())
    kernel = next(e["name"] for e in original["traceEvents"] if e.get("cat") == "kernel")
    text = json.dumps(original).replace(json.dumps(kernel)[1:-1], hostile)
    path = tmp_path / "t.json"
    path.write_text(text)
    result = compare(load(SAMPLES / "compiled.cuda-authored.json"), load(path))
    plain, markdown = io.StringIO(), io.StringIO()
    write_comparison(result, Page(plain, width=100), limit=50)
    print_comparison(result, markdown, limit=50)
    assert "onerror" in markdown.getvalue()
    for out in (plain.getvalue(), markdown.getvalue()):
        assert "\x1b" not in out
    assert "<img" not in markdown.getvalue()
    assert "**b**" not in markdown.getvalue()


def test_what_a_trace_lost_is_said(sides):
    cut = compare_sides(sides[0], side(load(SAMPLES / "bad" / "cut-in-event.json")))
    out = io.StringIO()
    write_comparison(cut, Page(out, width=100), limit=5)
    assert "What is missing in the traces\n  - after: " in out.getvalue()


class TestLimit:
    def test_forms(self):
        assert read_limit("slower=5%").share == 0.05
        assert read_limit(" slower=2.5 % ").share == 0.025
        assert read_limit("slower=5%").text == "slower=5%"

    @pytest.mark.parametrize("text", ["", "slower", "slower=5", "faster=5%", "slower=-1%", "slower=1e9%", "slower=%"])
    def test_anything_else_is_refused(self, text):
        with pytest.raises(UsageError, match="that is no limit"):
            read_limit(text)


class TestRealPairs:
    def test_resnet50_with_loader_workers(self, corpus):
        """Kineto's published sample: data loading goes from 33.37 % to 0.84 % of the mean step."""
        folder = corpus / "pytorch"
        found = compare(
            load(folder / "resnet50-v100-workers0.pt.trace.json.gz"),
            load(folder / "resnet50-v100-workers4.pt.trace.json.gz"),
        )
        assert (found.verdict, found.comparable) == (Verdict.FASTER, Comparable.YES)
        assert round(found.step.before.mean_ns / 1000) == 177_592
        assert round(found.step.after.mean_ns / 1000) == 141_068
        loading = next(one for one in found.stages if one.name == "data_loading")
        assert round(loading.before_ns / 1000) == 59_262
        assert round(loading.after_ns / 1000) == 1_186
        assert "Largest difference: stage data_loading" in headline(found)
        assert judge_limit(SlowdownLimit(0.05), found).code is ExitCode.OK

    def test_vllm_on_tpu_runs_other_products_but_one_step_each_proves_no_time(self, corpus):
        folder = corpus / "xprof"
        found = compare(
            load(folder / "vllm-tpu-qwen3-a.trace.json.gz"), load(folder / "vllm-tpu-qwen3-b.trace.json.gz")
        )
        assert (found.verdict, found.comparable) == (Verdict.INCONCLUSIVE, Comparable.LIMITED)
        assert (found.step.before.median_ns, found.step.after.median_ns) == (66_914_493, 65_558_339)
        products = [one for one in found.dispatches if one.family == "gemm"]
        assert {(one.before[0].implementation, one.after[0].implementation) for one in products} == {
            ("fused", "pallas")
        }
        new = [one.name for one in found.kernels if one.before_ns is None]
        assert any(name.startswith("quantized_matmul_kernel") for name in new)
        assert judge_limit(SlowdownLimit(0.05), found).code is ExitCode.INCONCLUSIVE

    def test_two_models_are_not_compared(self, corpus):
        folder = corpus / "pytorch"
        found = compare(load(folder / "bert-small-h100.json.gz"), load(folder / "qwen15-chat-h100.json.gz"))
        assert found.comparable is Comparable.NO

    def test_a_short_recording_of_two_processes_without_marks(self, corpus):
        own = side(load(corpus / "nsys" / "mfu-2gpu-before.sqlite"))
        found = compare_sides(own, own)
        assert (found.verdict, found.comparable) == (Verdict.INCONCLUSIVE, Comparable.LIMITED)
        assert found.step.why == "nothing marks steps that could be compared: the difference cannot be told from noise"
        # Both sums of the documentation: 25.400 ms of SendRecv over two processes.
        sendrecv = next(one for one in found.kernels if "SendRecv" in one.name)
        assert round(sendrecv.before_ns * 2 / 1e6, 1) == 25.4


def test_a_stage_of_one_trace_alone_may_only_be_unrecorded_where_stages_come_from_elsewhere(sides):
    other = side(load(FLASH), stage_patterns({"attention": "scaled_dot_product"}))
    text = io.StringIO()
    print_comparison(compare_sides(sides[0], other), text, limit=20)
    said = " ".join(text.getvalue().split())
    assert "one that is in one trace alone may only not be recorded in the other" in said
    assert "of the second from pattern" in said


def test_nothing_is_said_of_where_stages_come_from_if_it_is_the_same(found):
    assert stages_remark(found) is None
