"""Backward passes spent time in scatter kernels that serialise on atomics or sort first.

What it finds
    Backward kernels of interpolation (``upsample_*_backward``), indexing with accumulation (``indexing_backward``) and
    embeddings.

Why it costs
    Many threads add to the same addresses. The kernels wait for each other, or sort all indices first to avoid it.

Evidence it needs
    Kernel names.

When it is wrong
    With deterministic algorithms the slow form is chosen on purpose. Few distinct indices make it unavoidable. Fused
    embeddings of FBGEMM are no such kernels and are not counted.

Fix
    Replace index gathers of fixed pattern by slices or matrix products; nearest or integer-factor interpolation has
    cheaper gradients; deduplicate indices before ``index_put_(accumulate=True)``.

Scope and sources
    PyTorch, CUDA and ROCm. Kernel names of the torch 2.9.1 wheel: string found in a shipped binary. Their cost is
    general knowledge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Finding, Severity
from traceview.rules.kernel_evidence import HINT_SHARE, Advice, kernel_finding, plural, share_of_busy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV121"
NAME: Final = "atomic-scatter"
SEVERITY: Final = Severity.INFO

_SCATTER: Final = (
    r"\bat::native::.*(upsample_\w+_backward|indexing_backward|embedding_backward|EmbeddingBag_accGradParameters"
    r"|compute_grad_weight)"
)
_ADVICE: Final = Advice(
    code=CODE,
    fix="Avoid repeated indices in gathers that need a gradient, or use slices and matrix products instead.",
    false_alarm_if="deterministic algorithms were asked for",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all such kernels."""
    rows = facts.work.filter(pl.col("name").str.contains(_SCATTER))
    if share_of_busy(facts, rows) < HINT_SHARE:
        return
    yield kernel_finding(
        facts,
        rows,
        f"{plural(rows.height, 'scatter kernel')} of backward passes ran",
        _ADVICE,
        severity=Severity.INFO,
    )
