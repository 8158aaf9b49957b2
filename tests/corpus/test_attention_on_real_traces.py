"""What ran, on real traces whose right answers are known."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from traceview import gate, load
from traceview.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

# File: exit code, and calls per (implementation, provider, attribution).
ANSWERS: dict[str, tuple[int, dict[tuple[str, str | None, str], int]]] = {
    "owlv2-large-h100.json.gz": (1, {("unfused", None, "attributed"): 180}),
    "qwen15-chat-h100.json.gz": (
        0,
        {("flash-2", "pytorch", "attributed"): 24, ("flash-2", "pytorch", "kernel-only"): 10},
    ),
    "bert-small-h100.json.gz": (0, {("flash-2", "pytorch", "attributed"): 4}),
    "falconsai-vit-mi300.json.gz": (0, {("aotriton", "pytorch", "attributed"): 12}),
    "sdpa-long-seq-mi300.json.gz": (0, {("aotriton", "pytorch", "attributed"): 10}),
    "torch-compile-triton-mi300.json.gz": (0, {("aotriton", "pytorch", "attributed"): 1}),
    "vllm-eager-b200.json.gz": (0, {("trtllm", "trtllm", "attributed"): 36}),
    "vllm-decode-full-graph-rocm.json.gz": (0, {("triton", "vllm", "opaque"): 24}),
    "vllm-prefilldecode-piecewise-rocm.json.gz": (0, {("triton", "vllm", "attributed"): 24}),
    # The text encoder of this image model computes its attention by hand.
    "flux1-sage-mi300.json.gz": (
        1,
        {
            ("aiter", "aiter", "opaque"): 228,
            ("aotriton", "pytorch", "attributed"): 13,
            ("unfused", None, "attributed"): 24,
        },
    ),
    "particle-transformer-a100-bs1.json.gz": (1, {("unfused", None, "attributed"): 10}),
    # No attention at all: said as such.
    "resnet50-v100-workers0.pt.trace.json.gz": (0, {}),
    "gemm-few-tiles-mi300.json.gz": (0, {}),
    # Nothing that could be judged.
    "cpu-only-gloo.pt.trace.json.gz": (3, {}),
    "no-rank.json.gz": (3, {}),
    "no-gpu-kernels.json.gz": (3, {}),
    "no-distributed-info.json.gz": (3, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
def test_what_ran(corpus: Path, name: str) -> None:
    exit_code, expected = ANSWERS[name]
    result = gate.check(load(corpus / "pytorch" / name))
    ran: Counter[tuple[str | None, str | None, str]] = Counter()
    for row in result.table.attention:
        ran[row.implementation, row.provider, row.attribution] += row.count
    assert dict(ran) == expected
    assert result.exit_code is ExitCode(exit_code), result.summary


def test_eager_attention_names_its_module_its_time_and_its_share(corpus: Path) -> None:
    result = gate.check(load(corpus / "pytorch" / "owlv2-large-h100.json.gz"))
    (finding,) = [finding for finding in result.findings if finding.code == "TV101"]
    assert finding.title.startswith("180 attention calls ran unfused: 492.")
    assert "86.9 % of busy time" in finding.title
    assert "Owlv2Attention" in finding.where
    assert {row.evidence for row in result.table.attention} == {"shapes"}


def test_a_graph_replay_hides_ops_but_not_kernels(corpus: Path) -> None:
    result = gate.check(load(corpus / "pytorch" / "vllm-decode-full-graph-rocm.json.gz"))
    kernels = Counter()
    for row in result.table.attention:
        for kernel in row.kernels:
            kernels[kernel.name] += kernel.count
    assert kernels == {"kernel_unified_attention_2d": 12, "kernel_unified_attention_3d": 12, "reduce_segments": 12}
    assert "math" not in {row.implementation for row in result.table.attention}
