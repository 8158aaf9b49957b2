"""Convolutions ran the library's generic kernels.

What it finds
    Grouped and depthwise direct kernels (``conv2d_grouped_direct_kernel``, ``conv_depthwise2d``), MIOpen's naive
    kernels and convolutions through im2col.

Why it costs
    These kernels exist for shapes that no tuned kernel takes. They use no tensor cores and little of the memory rate.

Evidence it needs
    Kernel names.

When it is wrong
    Small depthwise layers are bound by memory and fine this way. Naive kernels while MIOpen has not yet tuned a shape
    are gone in the next run.

Fix
    Channels last and half precision open the tuned depthwise kernels; avoid group counts other than 1 and the number
    of channels; on AMD let MIOpen tune (``MIOPEN_FIND_MODE``).

Scope and sources
    NVIDIA cuDNN, PyTorch's own kernels, AMD MIOpen. Names: string found in a shipped binary (cuDNN 9.10, torch
    2.9.1); public cases: pytorch issues #50036 and #34977.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Finding, Severity
from traceview.rules.kernel_evidence import HINT_SHARE, Advice, kernel_finding, plural, share_of_busy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV116"
NAME: Final = "conv-generic-kernel"
SEVERITY: Final = Severity.WARNING

_GENERIC: Final = ("grouped-direct", "depthwise", "naive", "im2col")
_ADVICE: Final = Advice(
    code=CODE,
    fix="Use channels_last and half precision, and on AMD let MIOpen tune; check the group counts.",
    false_alarm_if="the layers are small and bound by memory",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all such kernels."""
    rows = facts.work.filter((pl.col("family") == "conv") & pl.col("implementation").is_in(_GENERIC))
    if share_of_busy(facts, rows) < HINT_SHARE:
        return
    yield kernel_finding(
        facts,
        rows,
        f"{plural(rows.height, 'convolution kernel')} of the generic sort ran",
        _ADVICE,
        severity=Severity.WARNING,
    )
