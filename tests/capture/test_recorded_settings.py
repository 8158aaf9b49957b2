"""Settings that a capture recorded decide what was only not excluded before."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import sample_traces
from traceview import load
from traceview.capture_info import CaptureInfo
from traceview.eligibility import Comparison, Device, explain, read_call
from traceview.expectations.model import Context
from traceview.explaining import explain_trace
from traceview.gate import check
from traceview.reasons import Role, eligibility_reasons
from traceview.sdpa import version_conflicts, version_of

SDPA = "aten::scaled_dot_product_attention"
H100 = Device("cuda", 9, 0)
ORDER = ("flash", "efficient", "math", "cudnn", "overrideable")
ON = {
    "sdpa.flash": True, "sdpa.efficient": True, "sdpa.cudnn": True, "sdpa.math": True, "sdpa.flash_built": True,
    "sdpa.flash_impl": "default", "sdpa.priority": ORDER, "deterministic": False,
}  # fmt: skip


def inputs(dtype="c10::BFloat16"):
    dims = [2, 16, 128, 64]
    return {
        "dims": json.dumps([dims, dims, dims, [], [], [], [], []]),
        "dtypes": json.dumps([dtype, dtype, dtype, "", "Scalar", "Scalar", "", "Scalar"]),
        "strides": json.dumps([[131072, 8192, 64, 1]] * 3 + [[]] * 5),
        "concrete": json.dumps(["", "", "", "", "0.", "False", "", "False"]),
    }


def explained(settings, observed, *, op=SDPA, device=H100, changed=(), **options):
    capture = CaptureInfo(settings=settings, changed=changed)
    call = read_call(op, inputs(**options))
    return explain(call, device, observed=observed, torch="2.9", cudnn="9.10.2", capture=capture)


def not_excluded(explanation):
    return {one.rule.id: one.backends for one in explanation.not_excluded}


def test_a_backend_that_is_switched_off_is_refused_for_that():
    off = explained({**ON, "sdpa.flash": False, "sdpa.efficient": False, "sdpa.cudnn": False}, "math")
    assert off.comparison is Comparison.EXPLAINED
    assert off.cause_ids == ("F14",)
    causes = [one for one in eligibility_reasons(off) if one.role is Role.CAUSE]
    assert {one.detail.backends[0] for one in causes} == {"flash", "memory-efficient", "cuDNN"}
    assert {one.status for one in causes} == {"refuses"}
    assert causes[0].text == (
        "flash is refused by F14: the switch of flash attention is off, recorded by traceview.capture"
    )
    assert "recorded by traceview.capture" in causes[0].evidence


def test_a_backend_that_is_on_is_allowed_for_that_and_no_longer_open():
    without = explain(read_call(SDPA, inputs()), H100, observed="math", torch="2.9", cudnn="9.10.2")
    assert "F14" in not_excluded(without)
    on = explained(ON, "math")
    assert "F14" not in {rule for rule, backends in not_excluded(on).items() if "flash" in backends}
    told = [one for one in eligibility_reasons(on) if one.role is Role.ALLOWED and one.rule == "F14"]
    assert "flash is not refused by F14: the switch of flash attention is on, recorded by traceview.capture" in {
        one.text for one in told
    }
    assert {one.status for one in told} == {"allows"}


def test_a_switch_that_changed_stays_open_and_says_so():
    found = explained(ON, "math", changed=("sdpa.flash",))
    assert "flash" in not_excluded(found)["F14"]
    (reason,) = [one for one in eligibility_reasons(found) if one.role is Role.NOT_EXCLUDED and one.rule == "F14"]
    assert "The switch of flash attention was changed while the trace was recorded" in reason.text


def test_compiled_code_chose_its_backend_when_it_was_compiled():
    op = "aten::_scaled_dot_product_flash_attention"
    call = read_call(op, inputs())
    capture = CaptureInfo(settings={**ON, "sdpa.flash": False})
    found = explain(call, H100, observed="flash", torch="2.9", cudnn="9.10.2", capture=capture)
    assert found.comparison is not Comparison.CONTRADICTED
    assert found.cause_ids == ()


def test_what_ran_although_it_was_off_contradicts():
    assert explained({**ON, "sdpa.flash": False}, "flash").comparison is Comparison.CONTRADICTED


@pytest.mark.parametrize(("deterministic", "cause"), [(True, True), (False, False)])
def test_deterministic_algorithms_refuse_cudnn(deterministic, cause):
    found = explained({**ON, "deterministic": deterministic}, "flash")
    ids = {answer.rule.id for answer in found.causes + found.also_refused if answer.backend == "cudnn"}
    assert ("C5" in ids) is cause
    assert "C5" not in not_excluded(found)


def test_another_order_stays_open():
    found = explained({**ON, "sdpa.priority": ("math", "efficient", "flash", "cudnn", "overrideable")}, "math")
    assert "flash" in not_excluded(found)["F14"]


def test_a_build_without_flash_attention_refuses_it():
    assert "F15" in explained({**ON, "sdpa.flash_built": False}, "math").cause_ids


# ---- versions


@pytest.fixture(scope="module")
def captured():
    """A trace on the CPU as if it had been captured."""
    timeline = load(Path(sample_traces.__file__).parent / "torch-cpu-attention.json")
    info = CaptureInfo(versions={"torch": "2.13.0+cpu"}, settings={**ON, "sdpa.flash_built": False})
    run = replace(timeline.runs[0], metadata={**timeline.runs[0].metadata, "capture": info.document()})
    return replace(timeline, runs=(run,))


def test_what_was_captured_outweighs_what_is_given(captured):
    assert version_of(captured, "torch", "2.5") == "2.13.0+cpu"
    assert version_conflicts(captured, {"torch": "2.5", "cudnn": None}) == (
        "torch 2.5 was given, but traceview.capture recorded 2.13.0+cpu in the program itself: judged by 2.13.0+cpu.",
    )
    assert version_conflicts(captured, {"torch": "2.13"}) == ()
    assert version_of(captured, "cudnn", "9.1") == "9.1"


def test_the_conflict_is_said_where_the_verdict_is(captured):
    assert any("torch 2.5 was given" in note for note in check(captured, context=Context(torch="2.5")).notes)
    assert any("torch 2.5 was given" in note for note in explain_trace(captured, torch="2.5").notes)
    assert not any("was given" in note for note in check(captured).notes)
