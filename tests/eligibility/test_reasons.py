"""Explanations as reasons of dispatch rows, from traces."""

from __future__ import annotations

import json

import pytest

from sdpa_calls import A100, H100, Q, call, recorded
from traceview import load
from traceview.dispatch import dispatch_table
from traceview.eligibility import explain
from traceview.reasons import Reason, Role, eligibility_reasons

FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t> >"
EFFICIENT = "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)"
BACKEND_OP = {
    FLASH: "aten::_scaled_dot_product_flash_attention",
    EFFICIENT: "aten::_scaled_dot_product_efficient_attention",
}


def brief(reasons):
    return [(reason.rule, reason.status) for reason in reasons]


def test_a_cause_says_what_was_recorded_and_where_the_rule_comes_from():
    cause, order, _, *_ = eligibility_reasons(explain(call(dtype="float"), A100, observed="efficient", torch="2.6"))
    assert cause == Reason(
        rule="F1",
        status="refuses",
        text="flash is refused: query, key and value are float32. "
        "Flash attention takes half-precision inputs only, all three of one dtype.",
        evidence="recorded inputs: query, key and value are float32",
        source=cause.source,
        role=Role.CAUSE,
        detail=cause.detail,
    )
    assert (cause.detail.backends, cause.detail.facts) == (("flash",), "query, key and value are float32")
    assert (cause.detail.evidence_class, cause.detail.statement in cause.text) == ("S", True)
    assert cause.source.startswith("evidence S: ")
    assert "21c3369eded41cbad40b61858013c3312afc6dbb" in cause.source
    assert (
        order.text
        == "memory-efficient is what is left: every backend that is tried before it is refused by a rule that holds"
    )


@pytest.mark.parametrize(
    ("explanation", "want"),
    [
        (explain(call(), A100, observed="flash", torch="2.9"), [("order", "allows"), ("eligible", "allows")]),
        (explain(call(), H100, observed="cudnn", torch="2.9", cudnn="9.10.2"), [("order", "allows"), ("eligible", "allows"), ("C8", "observed")]),
        (
            explain(call(), A100, observed="math", torch="2.9"),
            [("order", "not recorded"), ("eligible", "allows"), ("eligible", "allows"), ("F14", "not recorded"), ("F15", "not recorded"), ("M1", "observed"), ("M2", "observed")],
        ),
        (explain(call(mask=[128, 128]), A100, observed="flash", torch="2.9"), [("order", "observed")]),
        (
            explain(call(dtype="float", without=("strides",)), A100, observed="math", torch="2.9"),
            [("F1", "refuses"), ("order", "not recorded"), ("F12", "not recorded"), ("F14", "not recorded"), ("F15", "not recorded"), ("M2", "observed")],
        ),
    ],
    ids=["expected", "cudnn", "unexplained", "contradicted", "open"],
)  # fmt: skip
def test_reasons(explanation, want):
    assert brief(eligibility_reasons(explanation)) == want


def trace(tmp_path, inputs, kernel, *, device=(9, 0), extra=None, backend_op=None, backend_inputs=None):
    """A Kineto file with one call of scaled dot-product attention and its kernel."""
    args = {
        "Input Dims": json.loads(inputs["dims"]),
        "Input type": json.loads(inputs["dtypes"]),
        "Input Strides": json.loads(inputs["strides"]),
        "Concrete Inputs": json.loads(inputs["concrete"]),
    }

    def op(name, ts, dur, ph="X", cat="cpu_op", tid=7, pid=7, **more):
        return {"ph": ph, "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": more}

    events = [
        op("aten::scaled_dot_product_attention", 10, 80, **args),
        op(backend_op or BACKEND_OP[kernel], 20, 60, **(backend_inputs or {})),
        op("cudaLaunchKernel", 40, 5, cat="cuda_runtime", correlation=1),
        op(kernel, 60, 30, cat="kernel", pid=0, tid=7, correlation=1, device=0, stream=7),
    ]
    properties = [{"id": 0, "name": "NVIDIA GPU", "computeMajor": device[0], "computeMinor": device[1]}]
    file = tmp_path / "trace.json"
    head = {"schemaVersion": 1, "cuda_runtime_version": 12080, "deviceProperties": properties, **(extra or {})}
    file.write_text(json.dumps({**head, "traceEvents": events}))
    return load(file)


def reasons(timeline, **versions):
    (row,) = dispatch_table(timeline, **versions).attention
    return brief(row.reasons)


def test_a_row_of_the_dispatch_table_has_them(tmp_path):
    timeline = trace(tmp_path, recorded(dtype="float"), EFFICIENT, device=(8, 0))
    assert reasons(timeline) == [
        ("observed", "observed"),
        ("F1", "refuses"),
        ("C1", "refuses"),
        ("order", "allows"),
        ("eligible", "allows"),
    ]
    (row,) = dispatch_table(timeline).attention
    roles = {reason.rule: reason.role for reason in row.reasons}
    # Whether cuDNN comes before the memory-efficient backend depends on the release, so it is no certain cause.
    assert (roles["F1"], roles["C1"]) == (Role.CAUSE, Role.ALSO)


def test_the_version_that_the_trace_states_is_used_and_the_users_wins(tmp_path):
    timeline = trace(tmp_path, recorded(), FLASH, extra={"torch_version": "2.8.0"})
    assert reasons(timeline) == [("observed", "observed"), ("order", "allows"), ("eligible", "allows")]
    assert reasons(timeline, torch="2.9") == [
        ("observed", "observed"),
        ("order", "not recorded"),
        ("eligible", "allows"),
    ]
    assert reasons(timeline, torch="2.9", cudnn="9.8") == [
        ("observed", "observed"),
        ("order", "allows"),
        ("eligible", "allows"),
    ]


def test_what_ran_against_the_order_is_not_explained_by_the_inputs(tmp_path):
    timeline = trace(tmp_path, recorded(Q), EFFICIENT, device=(8, 0), extra={"torch_version": "2.8.0"})
    assert reasons(timeline) == [
        ("observed", "observed"), ("order", "not recorded"), ("eligible", "allows"), ("eligible", "allows"),
        ("F14", "not recorded"), ("F15", "not recorded"),
    ]  # fmt: skip


def test_hardware_that_the_rulebook_does_not_know_gets_no_reasons(tmp_path):
    apple = trace(tmp_path, recorded(), FLASH, backend_op="aten::_scaled_dot_product_attention_math_for_mps")
    assert {rule for rule, _ in reasons(apple)} == {"observed"}


def test_whether_a_gradient_was_asked_for_is_read_from_the_op_of_the_backend(tmp_path):
    timeline = trace(
        tmp_path,
        recorded([2, 16, 128, 224], dtype="c10::Half"),
        EFFICIENT,
        device=(8, 6),
        extra={"torch_version": "2.8.0"},
    )
    assert ("F6", "not recorded") in reasons(timeline)
    timeline = trace(
        tmp_path, recorded([2, 16, 128, 224], dtype="c10::Half"), EFFICIENT, device=(8, 6), extra={"torch_version": "2.8.0"},
        backend_inputs={"Concrete Inputs": ["", "", "", "", "True", "0.", "False", ""]},
    )  # fmt: skip
    assert ("F6", "refuses") in reasons(timeline)
