"""Generic convolution kernels."""

from __future__ import annotations

from authored_timeline import kernel
from rules.rule_case import ADD, found

GROUPED = "void cudnn::cnn::conv2d_grouped_direct_kernel<false, true, false, false, 0, 0, int, float, float>(Params)"


def test_positive_grouped_direct() -> None:
    (finding,) = found("TV116", kernel(GROUPED, 0, 10), kernel(ADD, 10, 90))
    assert finding.cost_ns == 10_000


def test_negative_small_depthwise_layer() -> None:
    assert found("TV116", kernel(GROUPED, 0, 4), kernel(ADD, 10, 110)) == []


def test_not_recorded_kernel_identity() -> None:
    assert found("TV116", kernel("user_conv", 0, 10)) == []
