"""Layer norm ran its two-kernel fallback, or group norm broke the memory layout.

What it finds
    ``RowwiseMomentsCUDAKernel`` followed by ``LayerNormForwardCUDAKernel`` instead of one vectorised kernel; and group
    norms that a layout copy follows on the stream.

Why it costs
    The fallback reads the tensor twice. A group norm on channels-last input writes channels first, and the next
    convolution pays for a conversion.

Evidence it needs
    Kernel names; for group norm also the op ``aten::native_group_norm``.

When it is wrong
    Sizes not divisible by four, unaligned slices or mixed parameter types cannot use the fast kernel.

Fix
    Keep the normalised size a multiple of four and weights in the type of the input; for group norm a newer PyTorch
    (channels-last kernels) or ``torch.compile``.

Scope and sources
    PyTorch 1.12 and later, CUDA and ROCm. pytorch ``aten/src/ATen/native/cuda/layer_norm_kernel.cu``, read in source
    code 2026-11; group norm: pytorch pull request #191945.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Confidence, Finding, Severity
from traceview.rules.kernel_evidence import WORTH_SHARE, Advice, kernel_finding, plural, share_of_busy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV117"
NAME: Final = "norm-two-pass"
SEVERITY: Final = Severity.WARNING

SAVED_SHARE: Final = 0.5
"""Two passes over the tensor become one."""

_LAYER_FALLBACK: Final = "LayerNormForwardCUDAKernel"
_MOMENTS: Final = r"\bRowwiseMomentsCUDAKernel"
_GROUP_OP: Final = "aten::native_group_norm"
_LAYOUT_COPY: Final = r"at::native::elementwise_kernel<.*copy_kernel"
_ADVICE: Final = Advice(
    code=CODE,
    fix="Keep the normalised size a multiple of 4 and all tensors in one type; for group norm use a newer PyTorch.",
    false_alarm_if="the size or the alignment does not allow the fast kernel",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for layer norm and one for group norm."""
    before = pl.col("name").shift(1).over("device", "stream")
    after = pl.col("name").shift(-1).over("device", "stream")
    ordered = facts.work.filter(pl.col("kind") == "kernel").with_columns(before=before, after=after)
    writes = pl.col("name").str.contains(_LAYER_FALLBACK, literal=True)
    feeds = pl.col("name").str.contains(_MOMENTS) & pl.col("after").str.contains(_LAYER_FALLBACK, literal=True)
    layer = ordered.filter(writes | feeds)
    if share_of_busy(facts, layer) >= WORTH_SHARE:
        calls = layer.filter(writes).height
        yield kernel_finding(
            facts,
            layer,
            f"{plural(calls, 'layer norm')} ran as two kernels instead of one",
            _ADVICE,
            severity=Severity.WARNING,
            saved_share=SAVED_SHARE,
        )
    group_before = pl.col("op").shift(1).over("device", "stream") == _GROUP_OP
    is_layout_copy = pl.col("name").str.contains(_LAYOUT_COPY) | (
        (pl.col("family") == "conv") & (pl.col("implementation") == "layout")
    )
    copies = ordered.filter(group_before & (pl.col("op") != _GROUP_OP) & is_layout_copy)
    if share_of_busy(facts, copies) >= WORTH_SHARE:
        yield kernel_finding(
            facts,
            copies,
            f"{plural(copies.height, 'group norm')} made a layout copy follow",
            _ADVICE,
            severity=Severity.INFO,
            confidence=Confidence.INFERRED,
        )
