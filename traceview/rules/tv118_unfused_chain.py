"""Norm, rotary embedding or gated activation ran as a chain of small kernels.

What it finds
    Repeated runs of element-wise ops that are one known function: RMS norm (``pow mean add rsqrt mul``), rotary
    embedding (``mul neg cat mul add``), gated activation (``silu mul``).

Why it costs
    Each kernel of the chain reads and writes the whole tensor, and each is a launch. One fused kernel reads and writes
    it once.

Evidence it needs
    The op of each kernel and their order on the stream. Kernels of a replayed graph have no op and are not judged.

When it is wrong
    Where the device waits for the host anyway, fusing saves launches, not device time. The cost is the time of the
    chain without its longest kernel: one pass over the data remains.

Fix
    ``torch.compile`` the block, use ``torch.nn.RMSNorm`` (fused since PyTorch 2.8), or fused kernels such as Liger's.

Scope and sources
    PyTorch, CUDA and ROCm. The chains of huggingface/transformers models: seen in a recorded trace
    (``modeling_qwen2.py``); fused norm ``aten::_fused_rms_norm``: read in shipped headers of torch 2.13,
    ``ATen/ops/_fused_rms_norm.h``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Confidence, Finding, Severity
from traceview.quantities import milliseconds
from traceview.rules.kernel_evidence import WORTH_SHARE, kernel_lines, located, plural, together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV118"
NAME: Final = "unfused-chain"
SEVERITY: Final = Severity.WARNING

FEWEST_CHAINS: Final = 4
"""A model repeats its layers; a chain that occurs less often is something else."""

_LETTERS: Final = {
    "pow": "p", "square": "p", "mean": "m", "add": "a", "rsqrt": "r", "mul": "x", "neg": "n", "cat": "c", "silu": "s",
}  # fmt: skip
_CASTS: Final = ("aten::copy_", "aten::_to_copy", "aten::to", "aten::clone")
_CHAINS: Final = (
    ("RMS norm", re.compile("pmarxx?")),
    ("rotary embedding", re.compile("xncxa")),
    ("gated activation", re.compile("sx")),
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for each function that ran as a chain."""
    kernels = (
        facts.work.filter(pl.col("kind") == "kernel")
        .filter(~pl.col("op").is_in(_CASTS).fill_null(value=False))
        .with_columns(
            letter=pl.col("op")
            .str.strip_prefix("aten::")
            .str.strip_suffix("_")
            .replace_strict(_LETTERS, default=".", return_dtype=pl.String)
            .fill_null(".")
        )
    )
    for what, pattern in _CHAINS:
        rows, count, saved_ns = _find(kernels, pattern)
        if count < FEWEST_CHAINS or saved_ns < WORTH_SHARE * facts.table.busy_ns:
            continue
        chain_ns = int(rows["dur_ns"].sum())
        yield Finding(
            code=CODE,
            severity=Severity.WARNING,
            title=f"{plural(count, what)} ran as {rows.height / count:.0f} kernels each: "
            f"{milliseconds(chain_ns)} of kernels{together(facts)}, "
            f"{milliseconds(saved_ns)} without the longest of each",
            **located(facts, rows["id"]),
            evidence=kernel_lines(rows),
            cost_ns=saved_ns,
            confidence=Confidence.INFERRED,
            fix="Compile the block with torch.compile, or use a fused implementation.",
            false_alarm_if="the device waits for the host anyway, or the ops only look like this function",
        )


def _find(kernels: pl.DataFrame, pattern: re.Pattern[str]) -> tuple[pl.DataFrame, int, int]:
    """Kernels of all chains, number of chains, and the time of each chain without its longest kernel, summed, ns."""
    parts, count, saved_ns = [kernels.clear()], 0, 0
    for rows in kernels.partition_by("device", "stream"):
        spans = [match.span() for match in pattern.finditer("".join(rows["letter"]))]
        durations = rows["dur_ns"].to_numpy()
        saved_ns += sum(int(durations[a:b].sum() - durations[a:b].max()) for a, b in spans)
        count += len(spans)
        parts.append(rows[[i for a, b in spans for i in range(a, b)]])
    return pl.concat(parts), count, saved_ns
