"""f32 products of an XLA program were multiplied with fewer bits than f32 has.

What it finds
    Matrix products and convolutions of f32 operands at the default precision, on a device whose default is not f32: a
    TPU rounds the operands to bf16, an NVIDIA GPU from Ampere on to TF32.

Why it costs
    It costs no time: this is the fast path. It costs digits, silently, and differently on each device. The same
    program is exact on a CPU and on a V100, which is how results drift apart between machines.

Evidence it needs
    The compiled programs (``/host:metadata`` of the ``xplane.pb``) with the types and the precision of each product.

When it is wrong
    Where bf16 or TF32 is good enough, which is the usual case in deep learning.

Fix
    Nothing, if the results are good. Else ``jax.default_matmul_precision("highest")`` around the products that need it
    (see TV207 for what that costs), or ``preferred_element_type`` and bf16 operands to say what is meant.

Scope and sources
    XLA on TPU and NVIDIA GPU; AMD's default is not known here and nothing is said of it. docs.jax.dev
    ``jax.default_matmul_precision`` and jax-ml/jax issue #18934, read 2026-11.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Finding, Severity
from traceview.rules.hlo import with_detail, xla_rows
from traceview.rules.kernel_evidence import HINT_SHARE, Advice, kernel_finding, plural, share_of_busy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV208"
NAME: Final = "xla-f32-reduced"
SEVERITY: Final = Severity.INFO

_F32_OPERANDS: Final = "f32,f32->"
_FIRST_WITH_TF32: Final = 80
_ADVICE: Final = Advice(
    code=CODE,
    fix='If the result needs more digits: jax.default_matmul_precision("highest") around these products.',
    false_alarm_if="that many digits are enough, as is usual in deep learning",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for each type that the operands were rounded to."""
    ops = with_detail(facts.timeline, xla_rows(facts), ("dot_types",), "types")
    ops = with_detail(facts.timeline, ops, ("dot_precision",), "asked")
    rows = ops.filter(pl.col("types").str.starts_with(_F32_OPERANDS) & (pl.col("asked") == "default"))
    if not rows.height:
        return
    tpus = facts.timeline.devices.filter(pl.col("vendor") == "google")["device"]
    for rounded, where in (
        ("bf16", pl.col("device").is_in(tpus.implode())),
        ("TF32", pl.col("nvidia_cc") >= _FIRST_WITH_TF32),
    ):
        some = rows.filter(where)
        if not some.height or share_of_busy(facts, some) < HINT_SHARE:
            continue
        title = f"{plural(some.height, 'f32 product')} had the operands rounded to {rounded}, the default of the device"
        # It costs digits, not time.
        yield replace(kernel_finding(facts, some, title, _ADVICE, severity=Severity.INFO), cost_ns=None)
