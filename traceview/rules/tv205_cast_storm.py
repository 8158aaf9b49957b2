"""Much time went into converting tensors between types.

What it finds
    Kernels that only convert from one element type to another and take over 5 % of the busy time.

Why it costs
    A cast reads and writes a whole tensor and computes nothing. Under autocast each op that wants another type pays.

Evidence it needs
    Kernel names (casting loads and stores are part of them).

When it is wrong
    Casts inside unfused attention are left to TV101 and TV102.
    Autocast keeps the cast of a weight for the rest of its region; a cast that remains may be needed for accuracy.

Fix
    Keep weights and activations in one type (bf16) instead of autocasting fp32; move casts out of loops;
    ``torch.compile`` folds them into their neighbours.

Scope and sources
    PyTorch, CUDA and ROCm. pytorch ``ATen/native/cuda/MemoryAccess.cuh`` (``LoadWithCast``), read in shipped
    headers of torch 2.13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Finding, Severity
from traceview.rules.device_work import OWN_FAULT
from traceview.rules.kernel_evidence import HINT_SHARE, Advice, kernel_finding, plural, share_of_busy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV205"
NAME: Final = "cast-storm"
SEVERITY: Final = Severity.WARNING

_ADVICE: Final = Advice(
    code=CODE,
    fix="Hold weights and activations in one type, move casts out of loops, or compile the region.",
    false_alarm_if="the casts are needed for accuracy",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all casts."""
    rows = facts.work.filter(OWN_FAULT & (pl.col("family") == "elementwise") & (pl.col("implementation") == "cast"))
    if share_of_busy(facts, rows) < HINT_SHARE:
        return
    yield kernel_finding(
        facts,
        rows,
        f"{plural(rows.height, 'kernel')} only converted types",
        _ADVICE,
        severity=Severity.WARNING,
    )
