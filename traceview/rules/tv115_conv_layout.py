"""Convolutions spent time on converting the memory layout.

What it finds
    Layout conversion kernels of the convolution library (``nchwToNhwc``, MIOpen's tensor transforms and transposes).

Why it costs
    Tensor-core convolutions want channels last. For tensors stored channels first the library converts input, weight
    and result around each call, and back again for the next layer.

Evidence it needs
    Kernel names.

When it is wrong
    The conversion can still be cheaper than a channels-first kernel. The first layer often needs one conversion.

Fix
    ``model.to(memory_format=torch.channels_last)`` and the same for the input; look for layers that break the format
    (flatten, custom norms).

Scope and sources
    NVIDIA cuDNN and AMD MIOpen. Kernel names of cuDNN 9.10: string found in a shipped binary; MIOpen names: seen in
    a recorded trace. Remedy: PyTorch performance tuning guide, docs.pytorch.org/tutorials, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Finding, Severity
from traceview.rules.kernel_evidence import WORTH_SHARE, Advice, kernel_finding, plural, share_of_busy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV115"
NAME: Final = "conv-layout"
SEVERITY: Final = Severity.WARNING

_ADVICE: Final = Advice(
    code=CODE,
    fix="Use memory_format=torch.channels_last for the model and its input.",
    false_alarm_if="the convolution that needs the conversion is faster than one that does not",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all conversions."""
    rows = facts.work.filter((pl.col("family") == "conv") & (pl.col("implementation") == "layout"))
    if share_of_busy(facts, rows) < WORTH_SHARE:
        return
    yield kernel_finding(
        facts,
        rows,
        f"{plural(rows.height, 'layout conversion')} ran around convolutions",
        _ADVICE,
        severity=Severity.WARNING,
    )
