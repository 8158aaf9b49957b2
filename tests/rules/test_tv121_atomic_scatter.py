"""Scatter kernels of backward passes."""

from __future__ import annotations

from authored_timeline import kernel
from rules.rule_case import ADD, found

SCATTER = (
    "void at::native::(anonymous namespace)::indexing_backward_kernel<float, 4>(long const*, long const*, float const*)"
)
FUSED = "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1<c10::Half, float>"


def test_positive_indexing_backward() -> None:
    (finding,) = found("TV121", kernel(SCATTER, 0, 10), kernel(ADD, 10, 90))
    assert finding.cost_ns == 10_000


def test_negative_fused_embedding_update() -> None:
    assert found("TV121", kernel(FUSED, 0, 10), kernel(ADD, 10, 90)) == []


def test_not_recorded_kernel_name() -> None:
    assert found("TV121", kernel("indexing", 0, 10)) == []
