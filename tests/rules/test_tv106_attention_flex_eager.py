"""FlexAttention without compilation."""

from __future__ import annotations

from authored_timeline import host
from rules.rule_case import GEMM, found, ran

FRAME = host("python", "torch/_higher_order_ops/flex_attention.py(382): sdpa_dense", 0, 9)
CALL = ran("aten::matmul", GEMM, 1, 10, 1)


def test_positive_the_frame_of_the_dense_form() -> None:
    (finding,) = found("TV106", FRAME, *CALL)
    assert finding.cost_ns == 10_000
    assert finding.title.startswith("1 FlexAttention call ran without torch.compile: 0.010 ms")


def test_negative_compiled() -> None:
    assert found("TV106", *ran("flex", "triton_tem_fused_flex_attention_0", 1, 10, 1)) == []


def test_not_recorded_frames() -> None:
    assert found("TV106", *CALL) == []
