"""An optimizer that updates one tensor at a time."""

from __future__ import annotations

from authored_timeline import Event, host, kernel, launch
from rules.rule_case import ADD, found

FOREACH = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>>"


def optimizer_step(name: str, kernels: int, range_name: str = "Optimizer.step#SGD.step") -> list[Event]:
    events = [host("annotation", range_name, 0, 10 * kernels + 5)]
    for i in range(kernels):
        events += [launch(10 * i + 1, i), kernel(name, 10 * i + 5, 10 * i + 10, i)]
    return events


def test_positive_from_the_first_to_the_last_kernel() -> None:
    (finding,) = found("TV120", *optimizer_step(ADD, 100))
    assert finding.title.startswith("1 optimizer step launched 100 kernels each")
    assert finding.cost_ns == 995_000


def test_negative_few_kernels_or_many_tensors_at_once() -> None:
    assert found("TV120", *optimizer_step(ADD, 99)) == []
    assert found("TV120", *optimizer_step(FOREACH, 100)) == []


def test_not_recorded_range() -> None:
    assert found("TV120", *optimizer_step(ADD, 100, "update")) == []
