"""What holds for every rule on every timeline, however odd."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from authored_timeline import Event, timeline
from rules.rule_case import ADD, FLASH, GEMM, on_device
from traceview.dispatch import dispatch_table
from traceview.findings import Severity
from traceview.rules.base import Facts
from traceview.rules.catalogue import RULES
from traceview.rules.recorded_shapes import first_shape

HOST = {
    "op": ["aten::mm", "aten::pow", "aten::scaled_dot_product_attention", "aten::_scaled_dot_product_cudnn_attention"],
    "api": ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaMalloc", "cudaGraphLaunch", "cudaStreamBeginCapture"],
    "sync": ["cudaStreamSynchronize"],
    "annotation": ["ProfilerStep#1", "ProfilerStep#2", "Optimizer.step#SGD.step"],
    "compile": ["_compile.compile_inner (dynamo_timed)", "CachingAutotuner.benchmark_all_configs (dynamo_timed)"],
    "overhead": ["Lazy Function Loading"],
    "python": ["torch/_higher_order_ops/flex_attention.py(1): sdpa_dense"],
}
DEVICE = {
    "kernel": [GEMM, FLASH, ADD, "ampere_sgemm_128x64_nn", "unheard_of"],
    "memcpy": ["Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pageable)"],
    "collective": ["ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"],
    "xla_op": ["fusion.1", "infeed.2"],
    "xla_module": ["jit_step(1)"],
    "graph": ["graph"],
}
SHAPES = st.sampled_from([None, [], [[]], [[2, 3]], [[1, 2, 2048, 64]], [[[1], [2]]]])


@st.composite
def events(draw: st.DrawFn) -> Event:
    on_host = draw(st.booleans())
    kind = draw(st.sampled_from(sorted(HOST if on_host else DEVICE)))
    start = draw(st.integers(0, 200))
    return Event(
        kind,
        draw(st.sampled_from((HOST if on_host else DEVICE)[kind])),
        start,
        start + draw(st.integers(0, 100)),
        thread=draw(st.integers(0, 1)) if on_host else None,
        device=None if on_host else draw(st.integers(0, 1)),
        stream=None if on_host else draw(st.sampled_from([None, 7])),
        correlation=draw(st.sampled_from([None, 1, 2, 3])),
        dims=draw(SHAPES),
    )


@settings(max_examples=40)
@given(st.lists(events(), max_size=30))
def test_findings_are_well_formed_and_never_worse_than_the_rule_says(some: list[Event]) -> None:
    trace = on_device(*some)
    facts = Facts(trace, dispatch_table(trace))
    order = list(Severity)
    for rule in RULES:
        for finding in rule.check(facts):
            assert finding.code == rule.code
            assert order.index(finding.severity) >= order.index(rule.severity)
            assert finding.cost_ns is None or finding.cost_ns >= 0
            assert finding.title.strip() == finding.title
            assert "\n" not in finding.title
            assert finding.fix
            assert finding.false_alarm_if
            assert finding.where


def test_an_empty_timeline_gives_no_finding() -> None:
    trace = timeline()
    facts = Facts(trace, dispatch_table(trace))
    assert [finding for rule in RULES for finding in rule.check(facts)] == []


def test_only_proven_slow_attention_is_an_error() -> None:
    assert [rule.code for rule in RULES if rule.severity is Severity.ERROR] == ["TV101", "TV102", "TV108"]


def test_the_first_shape_of_recorded_dims() -> None:
    assert first_shape("[[2,3],[4]]") == (2, 3)
    for text in (None, "", "3", "{}", "[]", "[[]]", "[[[1],[2]]]", '[["a"]]', "[[true]]"):
        assert first_shape(text) is None
