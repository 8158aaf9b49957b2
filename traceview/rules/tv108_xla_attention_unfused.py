"""An XLA program seems to run attention as separate products and a softmax.

What it finds
    XLA ops in the order matrix product, softmax, matrix product on one line of the device, where the softmax is
    named in the op's framework path. Fused attention (cuDNN ``fmha``, splash, Pallas) is one op and does not match.

Why it costs
    The scores go to device memory and back. ``jax.nn.dot_product_attention`` does this by default on every device:
    ``implementation=None`` means ``"xla"``.

Evidence it needs
    The framework path of the ops (``tf_op`` in XProf) and their category. Without both nothing is said.

When it is wrong
    A classifier between two layers, or a mixture of experts, can have the same order; short sequences lose nothing. The
    ops of a loop body may be listed out of order.

Fix
    ``implementation="cudnn"`` in ``jax.nn.dot_product_attention`` on GPUs, splash or flash attention of Pallas on TPUs;
    in model libraries set the attention option, and look for a silent fallback.

Scope and sources
    JAX on TPU and GPU. jax 0.10.2 ``jax/_src/nn/functions.py`` (``dot_product_attention``), read in source code
    2026-11; a library that falls back silently: keras-team/keras issue #21333.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Confidence, Finding, Severity
from traceview.rules.hlo import CATEGORY_KEYS, PATH_KEYS, with_detail, xla_rows
from traceview.rules.kernel_evidence import HINT_SHARE, Advice, kernel_finding, share_of_busy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV108"
NAME: Final = "xla-attention-unfused"
SEVERITY: Final = Severity.WARNING

FEWEST_CHAINS: Final = 2
"""One such order can be a coincidence at the end of a program."""

_MOST_BETWEEN: Final = 6
"""Ops allowed on each side of the softmax: scale, mask, cast, sum, division, layout."""

_CHAIN: Final = re.compile(rf"D\.{{0,{_MOST_BETWEEN}}}S[S.]{{0,{_MOST_BETWEEN}}}D")
_PRODUCT: Final = r"^(convolution|convolution fusion|dot|gemm fusion|output fusion)$"
_SOFTMAX: Final = r"softmax"
_ADVICE: Final = Advice(
    code=CODE,
    fix='Ask for a fused implementation: implementation="cudnn" on GPUs, splash or flash attention of Pallas on TPUs.',
    false_alarm_if="the softmax is no attention (a router, a classifier), or the sequences are short",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all chains."""
    ops = facts.work.filter((pl.col("kind") == "xla_op") & pl.col("attention").is_null())
    if not ops.height:
        return
    ops = with_detail(facts.timeline, ops, CATEGORY_KEYS, "category")
    ops = with_detail(facts.timeline, ops, PATH_KEYS, "path").with_columns(
        letter=pl.when(pl.col("category").str.contains(_PRODUCT))
        .then(pl.lit("D"))
        .when(pl.col("path").str.contains(_SOFTMAX))
        .then(pl.lit("S"))
        .otherwise(pl.lit("."))
    )
    parts, count = [ops.clear()], 0
    for rows in ops.partition_by("device", "stream"):
        spans = [match.span() for match in _CHAIN.finditer("".join(rows["letter"]))]
        count += len(spans)
        parts.append(rows[[i for a, b in spans for i in range(a, b)]])
    found = pl.concat(parts)
    if count < FEWEST_CHAINS or share_of_busy(facts, found) < HINT_SHARE:
        return
    yield kernel_finding(
        facts,
        found,
        f"{count:,} times a softmax between two products looks like unfused attention",
        _ADVICE,
        severity=Severity.WARNING,
        confidence=Confidence.INFERRED,
    )
