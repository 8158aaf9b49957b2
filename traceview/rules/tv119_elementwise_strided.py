"""Element-wise work ran kernels that cannot load vectors.

What it finds
    PyTorch's general element-wise kernel (``at::native::elementwise_kernel``) that takes most of the element-wise time
    and a tenth of the busy time.

Why it costs
    For contiguous operands there is a kernel that loads 16 bytes at a time. The general one computes an address per
    element and operand, for strided or broadcast operands.

Evidence it needs
    Kernel names.

When it is wrong
    Kernels inside unfused attention are left to TV101 and TV102.
    A transpose has to touch memory in some order; copies that change the layout are strided by nature.

Fix
    Make operands contiguous once instead of in each use; broadcast from contiguous tensors; let ``torch.compile`` fold
    the copies into their neighbours.

Scope and sources
    PyTorch on CUDA and ROCm. pytorch ``aten/src/ATen/native/cuda/CUDALoops.cuh``, read in source code 2026-11:
    contiguous operands take the vectorised kernel, all others the general one; on ROCm also a contiguous cast does,
    as ``elementwise_kernel<512, 1``, which is not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Finding, Severity
from traceview.rules.device_work import OWN_FAULT, union_ns
from traceview.rules.kernel_evidence import Advice, kernel_finding, plural, share_of_busy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV119"
NAME: Final = "elementwise-strided"
SEVERITY: Final = Severity.INFO

SHARE_OF_BUSY: Final = 0.10
"""Some strided work is in every model; it must be a tenth of the time before it is worth a remark."""

SHARE_OF_ELEMENTWISE: Final = 0.5
"""It must be the rule and not the exception among the element-wise kernels."""

FEWEST_KERNELS: Final = 10
"""A pattern of the program, not an incident."""

_STRIDED: Final = r"\bat::native::elementwise_kernel<"
_CONTIGUOUS_CAST_ON_ROCM: Final = r"\bat::native::elementwise_kernel<(\(int\))?512, ?(\(int\))?1,"
_ADVICE: Final = Advice(
    code=CODE,
    fix="Make operands contiguous once, or compile the region so that copies are folded away.",
    false_alarm_if="the copies change the layout, which is strided by nature",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all strided element-wise kernels."""
    elementwise = facts.work.filter(OWN_FAULT & (pl.col("family") == "elementwise"))
    rows = elementwise.filter(
        pl.col("name").str.contains(_STRIDED) & ~pl.col("name").str.contains(_CONTIGUOUS_CAST_ON_ROCM)
    )
    if rows.height < FEWEST_KERNELS:
        return
    if share_of_busy(facts, rows) < SHARE_OF_BUSY or union_ns(rows) < SHARE_OF_ELEMENTWISE * union_ns(elementwise):
        return
    yield kernel_finding(
        facts,
        rows,
        f"{plural(rows.height, 'element-wise kernel')} ran over strided or broadcast operands",
        _ADVICE,
        severity=Severity.INFO,
    )
