"""What expectations say of real traces whose right answers are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from traceview import load
from traceview.expectations.reading import read_expectations
from traceview.gate import check

if TYPE_CHECKING:
    from pathlib import Path


def expect(op: str, more: str) -> str:
    return f'schema = 1\n[[expect]]\nop = "{op}"\n{more}\n'


FUSED = expect("attention", 'implementation = "fused"')
FLASH = expect("attention", 'implementation = "flash"')
TENSOR_CORES = expect("gemm", "tensor_core = true")

# File, what is expected of it, verdict, exit code, and words of the observation.
ANSWERS = [
    ("owlv2-large-h100.json.gz", FUSED, "fail", 1, "none of 180 calls; unfused 180 calls (492.5 ms)"),
    ("owlv2-large-h100.json.gz", TENSOR_CORES, "fail", 1, "gemm gemv not on tensor cores 30 kernels (0.143 ms)"),
    ("qwen15-chat-h100.json.gz", FLASH, "pass", 0, "flash-2 34 of 34 calls, 100.0 % of attention device time"),
    ("qwen15-chat-h100.json.gz", FLASH.replace("flash", "cudnn"), "fail", 1, "none of 34 calls; flash-2 34 calls"),
    ("vllm-decode-full-graph-rocm.json.gz", FLASH.replace("flash", "triton"), "pass", 0, "24 calls told by the kernel alone: a graph replay hides the op (opaque)"),
    ("flux1-sage-mi300.json.gz", FUSED, "fail", 1, "unfused 24 calls"),
    ("bert-small-h100.json.gz", TENSOR_CORES, "pass", 0, "26 kernels, 100.0 % of gemm device time"),
    ("resnet50-v100-workers0.pt.trace.json.gz", FUSED, "inconclusive", 3, "nothing to judge: the trace shows no attention"),
    ("resnet50-v100-workers0.pt.trace.json.gz", FUSED + "min_count = 1\n", "fail", 1, "no attention ran, at least 1 asked"),
    ("resnet50-v100-workers0.pt.trace.json.gz", TENSOR_CORES, "fail", 1, "gemm legacy not on tensor cores 216 kernels"),
    ("no-rank.json.gz", FUSED + "min_count = 1\n", "inconclusive", 3, "no device kernel is recorded"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text", "verdict", "code", "words"), ANSWERS)
def test_one_expectation(
    corpus: Path, tmp_path: Path, name: str, text: str, verdict: str, code: int, words: str
) -> None:
    path = tmp_path / "dispatch.toml"
    path.write_text(text, encoding="utf-8")
    result = check(load(corpus / "pytorch" / name), read_expectations(str(path)))
    assert result.expectations is not None
    (one,) = result.expectations
    assert (one.verdict.value, one.line) == (verdict, 2)
    assert words in one.observed
    assert int(result.exit_code) == code
