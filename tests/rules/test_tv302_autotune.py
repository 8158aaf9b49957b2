"""Kernels tried against each other."""

from __future__ import annotations

from authored_timeline import Event, host, kernel, launch, op
from rules.rule_case import found, step
from traceview.findings import Severity

STEPS = [step(0, 0, 100), step(1, 100, 200)]


def convolution(at_us: float, candidates: int) -> list[Event]:
    events = [op("aten::cudnn_convolution", at_us, at_us + 50)]
    for i in range(candidates):
        name = f"ampere_scudnn_128x{32 * (i + 1)}_relu_medium_nn_v1"
        events += [launch(at_us + 2 * i, i), kernel(name, at_us + 4 * i, at_us + 4 * i + 4, i)]
    return events


def test_positive_eight_candidates_in_a_steady_step() -> None:
    (finding,) = found("TV302", *STEPS, *convolution(110, 8))
    assert (finding.severity, finding.cost_ns) == (Severity.WARNING, 32_000)
    assert "ran up to 8 different convolution kernels" in finding.evidence[0]


def test_positive_autotuning_span() -> None:
    span = host("compile", "CachingAutotuner.benchmark_all_configs (dynamo_timed)", 110, 130)
    (finding,) = found("TV302", *STEPS, span)
    assert finding.cost_ns == 20_000


def test_negative_few_kernels_or_in_the_warm_up() -> None:
    assert found("TV302", *STEPS, *convolution(110, 7)) == []
    assert found("TV302", *STEPS, *convolution(10, 8)) == []


def test_not_recorded_steps_leave_a_remark() -> None:
    (finding,) = found("TV302", *convolution(10, 8))
    assert finding.severity is Severity.INFO
    assert "may be the warm-up" in finding.evidence[0]
