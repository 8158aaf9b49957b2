"""Every rule: one call it refuses, one it allows, one for which a fact is not recorded."""

from __future__ import annotations

import pytest

from sdpa_calls import A100, CPU, H100, MI300, RTX4090, RX7900, SOME_GPU, T4, Q, call
from traceview.eligibility import Device, Status, explain
from traceview.eligibility.predicates import PREDICATES
from traceview.knowledge import sdpa
from traceview.knowledge.sdpa import RuleKind

NO_DIMS = {"without": ("dims", "strides")}
NO_DTYPES = {"without": ("dtypes",)}
NO_STRIDES = {"without": ("strides",)}
NO_VALUES = {"without": ("concrete",)}
NOTHING = {"without": ("dims", "dtypes", "strides", "concrete")}
TRANSPOSED = [[131072, 8192, 1, 128], [131072, 8192, 64, 1], [131072, 8192, 64, 1], [], [], [], [], []]
SHORT = [2, 16, 1, 64]
FEW_HEADS = [2, 4, 128, 64]


def size(head_dim, tokens=128):
    return [2, 16, tokens, head_dim]


# rule, backend, device, torch, cuDNN: refuses, allows, not recorded. Each is (dims, keywords of the call).
CASES = [
    ("F1", "flash", A100, "2.9", None, ((), {"dtype": "float"}), ((), {}), ((), NO_DTYPES)),
    ("F1", "flash", T4, "2.9", None, ((), {}), ((), {"dtype": "c10::Half"}), ((), NO_DTYPES)),
    ("F1", "flash", MI300, "2.9", None, ((), {"dtype": "double"}), ((), {}), ((), NO_DTYPES)),
    ("F1", "flash", H100, "2.11", None, ((), {"dtype": "c10::Float8_e5m2"}), ((), {}), ((), {"dtype": "c10::Float8_e4m3fn"})),
    ("F2", "flash", A100, "2.9", None, ((), {"mask": [128, 128]}), ((), {}), ((), NOTHING)),
    ("F2", "efficient", A100, "2.0", None, ((), {"mask": [128, 128]}), ((), {}), ((), NOTHING)),
    ("F3", "flash", A100, "2.9", None, ((size(264),), {}), ((size(256),), {}), ((), NO_DIMS)),
    ("F3", "flash", A100, "2.1", None, ((size(136),), {}), ((size(128),), {}), ((), NO_DIMS)),
    ("F3", "flash", A100, "2.1", None, ((size(60),), {}), ((size(64),), {}), ((), NO_DIMS)),
    ("F3", "flash", A100, "2.9", None, ((size(192), size(192), size(128)), {}), ((size(60),), {}), ((), NO_DIMS)),
    ("F3", "flash", MI300, "2.9", None, ((size(520),), {}), ((size(256),), {}), ((size(512),), {})),
    ("F5", "flash", T4, "2.9", None, ((), {}), None, None),
    ("F5", "flash", Device("cuda", 9, 0), "2.1", None, None, ((), {}), None),
    ("F5", "flash", Device("cuda", 12, 0), "2.6", None, ((), {}), None, None),
    ("F5", "flash", Device("cuda", 12, 0), "2.7", None, None, ((), {}), None),
    ("F5", "flash", SOME_GPU, "2.9", None, None, None, ((), {})),
    ("F6", "flash", RTX4090, "2.9", None, ((size(224),), {"training": True}), ((size(192),), {}), ((size(224),), {})),
    ("F6", "flash", RTX4090, "2.9", None, ((size(256),), {"training": True, "dropout": "0.1"}), ((size(256),), {"training": True}), ((size(256),), {"dropout": "0.1"})),
    ("F6", "flash", A100, "2.9", None, None, ((size(224),), {"training": True}), None),
    ("F7", "flash", A100, "2.9", None, ((SHORT, Q), {"causal": "True"}), ((SHORT, Q), {}), ((SHORT, Q), NO_VALUES)),
    ("F8", "flash", A100, "2.9", None, (([16, 128, 64],), {}), ((), {}), ((), NO_DIMS)),
    ("F8", "efficient", A100, "2.14", None, (([128, 64],), {}), ((), {}), (([16, 128, 64],), {})),
    ("F8", "cudnn", H100, "2.9", None, (([16, 128, 64],), {}), ((), {}), ((), NO_DIMS)),
    ("F8", "flash", CPU, "2.13", None, (([16, 128, 64],), {}), ((), {}), ((), NO_DIMS)),
    ("F9", "flash", A100, "2.9", None, ((Q, FEW_HEADS), {}), ((Q, FEW_HEADS), {"gqa": "True"}), ((Q, FEW_HEADS), NO_VALUES)),
    ("F9", "flash", A100, "2.9", None, ((Q, [2, 5, 128, 64]), {"gqa": "True"}), ((), {}), ((), NO_DIMS)),
    ("F9", "efficient", A100, "2.4", None, ((Q, FEW_HEADS), {}), ((), {}), ((), NO_DIMS)),
    ("F9", "cudnn", H100, "2.9", None, ((Q, FEW_HEADS, [2, 5, 128, 64]), {"gqa": "True"}), ((Q, FEW_HEADS, [2, 8, 128, 64]), {"gqa": "True"}), ((Q, FEW_HEADS), NO_VALUES)),
    ("F9", "flash", CPU, "2.13", None, ((Q, [2, 1, 128, 64]), {}), ((), {}), ((), NO_DIMS)),
    ("F9", "flash", CPU, "2.14", None, ((Q, [2, 2, 128, 64]), {}), ((), {}), ((Q, [2, 1, 128, 64]), {})),
    ("F10", "efficient", A100, "2.9", None, ((Q, FEW_HEADS), {"gqa": "True"}), ((), {"gqa": "True"}), ((Q, FEW_HEADS), NO_VALUES)),
    ("F10", "flash", MI300, "2.6", None, ((Q, FEW_HEADS), {"gqa": "True"}), ((), {}), ((Q, FEW_HEADS), NO_VALUES)),
    ("F11", "flash", A100, "2.9", None, ((Q, [1, 16, 128, 64]), {}), ((), {}), ((), NO_DIMS)),
    ("F11", "cudnn", H100, "2.9", None, ((Q, [1, 16, 128, 64]), {}), ((), {}), ((), NO_DIMS)),
    ("F12", "flash", A100, "2.9", None, ((), {"strides": TRANSPOSED}), ((), {}), ((), NO_STRIDES)),
    ("F12", "efficient", A100, "2.9", None, ((size(1),), {"strides": TRANSPOSED}), ((), {}), ((), NO_STRIDES)),
    ("F12", "flash", A100, "2.9", None, None, ((size(1),), {"strides": TRANSPOSED}), None),
    ("F12", "efficient", A100, "2.9", None, ((), {"mask": [128, 128], "strides": [*[[131072, 8192, 64, 1]] * 3, [1, 128], [], [], [], []]}), ((), {"mask": [128, 128]}), ((), {"mask": [128, 128], **NO_STRIDES})),
    ("F13", "efficient", A100, "2.9", None, ((size(64, 0),), {}), ((), {}), ((), NO_DIMS)),
    ("E1", "efficient", T4, "2.9", None, ((), {}), ((), {"dtype": "float"}), ((), NO_DTYPES)),
    ("E1", "efficient", A100, "2.9", None, ((), {"dtype": "double"}), ((), {"dtype": "float"}), ((), NO_DTYPES)),
    ("E1", "efficient", MI300, "2.9", None, ((), {"dtype": "double"}), ((), {}), ((), NO_DTYPES)),
    ("E2", "efficient", A100, "2.9", None, ((size(60),), {}), ((size(60),), {"dtype": "float"}), ((), NO_DIMS)),
    ("E2", "efficient", T4, "2.9", None, ((size(60),), {"dtype": "c10::Half"}), ((size(61),), {"dtype": "float"}), ((), NO_DIMS)),
    ("E2", "efficient", A100, "2.9", None, ((size(64), size(72), size(72)), {}), ((size(64), size(64), size(128)), {}), ((size(60),), NO_DTYPES)),
    ("E2", "efficient", MI300, "2.9", None, ((size(64), size(64), size(128)), {}), ((), {}), ((size(512),), {})),
    ("E4", "efficient", MI300, "2.9", None, ((), {"mask": [128, 128], "mask_dtype": "float"}), ((), {"mask": [128, 128]}), ((), {"mask": [128, 128], **NO_DTYPES})),
    ("E5", "efficient", Device("cuda", 10, 0), "2.6", None, ((), {}), None, None),
    ("E5", "efficient", T4, "2.6", None, None, ((), {}), None),
    ("E5", "efficient", SOME_GPU, "2.6", None, None, None, ((), {})),
    ("C1", "cudnn", H100, "2.9", None, ((), {"dtype": "float"}), ((), {}), ((), NO_DTYPES)),
    ("C1-arch", "cudnn", T4, "2.9", None, ((), {}), None, None),
    ("C1-arch", "cudnn", H100, "2.9", None, None, ((), {}), None),
    ("C1-arch", "cudnn", SOME_GPU, "2.9", None, None, None, ((), {})),
    ("C2", "cudnn", A100, "2.9", None, ((size(136),), {}), ((size(128),), {}), ((), NO_DIMS)),
    ("C2", "cudnn", H100, "2.9", "9.9", ((size(136),), {}), ((size(128),), {}), ((), NO_DIMS)),
    ("C2", "cudnn", H100, "2.9", None, ((size(60),), {}), ((size(64),), {}), ((size(256),), {})),
    ("C3", "cudnn", H100, "2.9", None, ((Q, SHORT), {}), ((SHORT, Q), {}), ((SHORT, Q), NO_VALUES)),
    ("C3", "cudnn", H100, "2.6", None, ((SHORT, Q), {}), ((), {}), ((), NO_DIMS)),
    ("C4", "cudnn", H100, "2.12", None, ((), {"dropout": "0.10000000000000001"}), ((), {"dropout": "0.125"}), ((), NO_VALUES)),
    ("C4", "cudnn", H100, "2.11", None, None, ((), {"dropout": "0.125"}), ((), {"dropout": "0.1"})),
    ("C4-version", "cudnn", H100, "2.9", "9.12", ((), {"dropout": "0.125"}), ((), {}), ((), NO_VALUES)),
    ("C4-version", "cudnn", H100, "2.9", "91002", None, ((), {"dropout": "0.125"}), None),
    ("C4-version", "cudnn", H100, "2.9", None, None, ((), {}), ((), {"dropout": "0.125"})),
    ("C6", "cudnn", H100, "2.9", None, ((), {"mask": [16, 128, 128]}), ((), {"mask": [1, 1, 128, 128]}), ((), NOTHING)),
    ("C6", "cudnn", H100, "2.9", None, ((), {"mask": [64, 128]}), ((), {"mask": [1, 128]}), ((), {"mask": [1, 128], **NO_DIMS})),
    ("C9", "cudnn", H100, "2.14", None, (([65536, 1, 128, 64],), {}), (([65535, 1, 128, 64],), {}), ((), NO_DIMS)),
    ("C10", "cudnn", Device("cuda", 10, 0), "2.14", "9.20", None, ((), {}), ((SHORT, Q), {})),
    ("C10", "cudnn", Device("cuda", 10, 0), "2.14", "9.24.1", None, ((SHORT, Q), {}), None),
    ("C11", "cudnn", H100, "2.14", "9.20", None, ((), {"training": True}), ((size(64, 64),), {"training": True})),
    ("P1-dropout", "flash", CPU, "2.13", None, ((), {"dropout": "0.1"}), ((), {}), ((), NO_VALUES)),
    ("P1-head-dim", "flash", CPU, "2.13", None, ((size(32), size(32), size(48)), {}), ((size(999),), {}), ((), NO_DIMS)),
    ("P1-dtype", "flash", CPU, "2.13", None, ((), {"dtype": "c10::Float8_e4m3fn"}), ((), {"dtype": "double"}), ((), NO_DTYPES)),
    ("P1-mask-shape", "flash", CPU, "2.13", None, ((), {"mask": [16, 128, 128]}), ((), {"mask": [128, 128]}), ((), NOTHING)),
    ("F4", "flash", A100, "2.9", None, None, ((), {}), ((), NO_DIMS)),
    ("C7", "cudnn", H100, "2.9", None, None, ((), {}), ((), NO_DIMS)),
    ("P1-nested", "flash", CPU, "2.13", None, None, ((), {}), ((), NO_DIMS)),
    ("R1", "flash", MI300, "2.9", None, None, ((), {}), None),
    ("R1", "efficient", RX7900, "2.9", None, None, None, ((), {})),
]  # fmt: skip
NEVER_PROVEN = {
    "F4": "nested tensors have no recorded dims",
    "C7": "nested tensors have no recorded dims",
    "P1-nested": "nested tensors have no recorded dims",
    "R1": "which GPUs the AOTriton of a build lists is not recorded",
    "C10": "the first release with it is not established",
    "C11": "the first release with it is not established",
}


def status(rule, backend, device, torch, cudnn, case):
    dims, keywords = case
    arguments = {"2.0": 6, "2.1": 7, "2.4": 7}.get(torch, 8)
    answer = explain(call(*dims, arguments=arguments, **keywords), device, torch=torch, cudnn=cudnn).backend(backend)
    return {spoken.rule.id: spoken.status for spoken in answer.rules}.get(rule)


ANSWERS = [
    pytest.param(*row[:5], case, want, id=f"{row[0]}-{row[1]}-{index}-{want.value}")
    for index, row in enumerate(CASES)
    for case, want in zip(row[5:], (Status.REFUSES, Status.ALLOWS, Status.NOT_RECORDED), strict=True)
    if case is not None
]


@pytest.mark.parametrize(("rule", "backend", "device", "torch", "cudnn", "case", "want"), ANSWERS)
def test_rule(rule, backend, device, torch, cudnn, case, want):
    assert status(rule, backend, device, torch, cudnn, case) is want


def test_every_refusal_is_tested_three_ways():
    tested = {
        rule.id: {column for row in CASES if row[0] == rule.id for column in range(3) if row[5 + column] is not None}
        for rule in sdpa.rules()
        if rule.kind is RuleKind.REFUSAL
    }
    assert {rule: ways for rule, ways in tested.items() if ways != {0, 1, 2} and rule not in NEVER_PROVEN} == {}
    assert {rule: ways for rule, ways in tested.items() if rule in NEVER_PROVEN} == {
        rule: {1, 2} for rule in NEVER_PROVEN
    }


def test_hidden_rules_are_listed_and_never_concluded():
    hidden = {rule.id for rule in sdpa.rules() if rule.kind is RuleKind.HIDDEN}
    explanation = explain(call(mask=[128, 128]), H100, torch="2.14")
    seen = {one.rule.id for one in explanation.not_excluded}
    assert hidden == {"F14", "F15", "F16", "F17", "E3", "C5", "C6-grad", "R2"}
    assert seen == hidden - {
        "F16",
        "F17",
        "R2",
    }  # the mask refuses flash for certain; F17 is of a later release, R2 of ROCm
    assert not {answer.rule.id for one in explanation.backends for answer in one.rules} & hidden


def test_every_rule_has_what_a_reader_needs():
    ids = [rule.id for rule in sdpa.rules()]
    assert len(ids) == len(set(ids))
    for rule in sdpa.rules():
        assert rule.predicate in PREDICATES, rule.id
        assert rule.statement.endswith("."), rule.id
        assert rule.fix, rule.id
        assert rule.scopes, rule.id
        for scope in rule.scopes:
            assert scope.evidence in set("BSHTIU"), rule.id
            assert scope.sources, rule.id
            assert scope.settled or scope.evidence != "H", rule.id
            assert set(scope.backends) <= {"flash", "efficient", "cudnn", "math"}, rule.id
            assert set(scope.platforms) <= {"cuda", "rocm", "cpu"}, rule.id
    assert {rule.predicate for rule in sdpa.rules()} == set(PREDICATES)
    assert all(source.checked for source in sdpa.sources().values())


def test_every_source_is_used():
    used = {source.id for rule in sdpa.rules() for scope in rule.scopes for source in scope.sources}
    used |= {source.id for order in sdpa.orders() for source in order.sources}
    assert set(sdpa.sources()) - used == {"docs"}
