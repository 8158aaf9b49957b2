"""Products around a softmax in XLA programs."""

from __future__ import annotations

from authored_timeline import Event, kernel
from rules.rule_case import found

CATEGORY = {"qk": '"convolution fusion"', "pv": '"convolution fusion"', "exp": '"loop fusion"', "add": '"loop fusion"'}
PATHS = {"exp": '"jit(step)/jit(main)/attention/jit(softmax)/exp"', "add": '"jit(step)/jit(main)/add"'}
RECORDED = {"hlo_category": CATEGORY, "tf_op": PATHS}


def ops(*names: str) -> list[Event]:
    return [kernel(name, 10 * i, 10 * i + 10, kind="xla_op") for i, name in enumerate(names)]


def test_positive_twice() -> None:
    (finding,) = found("TV108", *ops("qk", "add", "exp", "pv", "add", "qk", "exp", "pv"), text_details=RECORDED)
    assert finding.title.startswith("2 attention calls of XLA seem to have run unfused: 0.070 ms")
    assert finding.severity.value == "warning"
    assert finding.confidence.value == "inferred"


def test_negative_softmax_at_the_end_or_one_fused_op() -> None:
    assert found("TV108", *ops("qk", "exp", "add", "qk", "exp", "add"), text_details=RECORDED) == []
    fused = ops("qk", "splash_mha_fwd_residuals", "pv", "qk", "splash_mha_fwd_residuals", "pv")
    assert found("TV108", *fused, text_details=RECORDED) == []


def test_not_recorded_paths_or_categories() -> None:
    chain = ops("qk", "exp", "pv", "qk", "exp", "pv")
    assert found("TV108", *chain, text_details={"hlo_category": CATEGORY}) == []
    assert found("TV108", *chain, text_details={"tf_op": PATHS}) == []
