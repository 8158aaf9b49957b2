"""fp32 convolutions without tensor cores."""

from __future__ import annotations

from rules.rule_case import found, ran

SIMT = "ampere_scudnn_128x64_relu_xregs_large_nn_v1"
CONVERSION = "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>(Params)"


def test_positive_also_for_a_product_inside_a_convolution() -> None:
    (finding,) = found("TV204", *ran("aten::cudnn_convolution", SIMT, 0, 10, 1), capability=(8, 0))
    assert finding.cost_ns == 10_000
    assert len(found("TV204", *ran("aten::cudnn_convolution", "ampere_sgemm_128x64_nn", 0, 10, 1))) == 1


def test_negative_layout_conversion_or_no_tf32_unit() -> None:
    assert found("TV204", *ran("aten::cudnn_convolution", CONVERSION, 0, 10, 1)) == []
    assert found("TV204", *ran("aten::cudnn_convolution", SIMT, 0, 10, 1), capability=(7, 0)) == []


def test_not_recorded_capability() -> None:
    unnamed = SIMT.replace("ampere_", "maxwell_")
    assert found("TV204", *ran("aten::cudnn_convolution", unnamed, 0, 10, 1), capability=None) == []
    assert len(found("TV204", *ran("aten::cudnn_convolution", SIMT, 0, 10, 1), capability=None)) == 1
