"""An XLA program multiplied at the highest precision.

What it finds
    Matrix products and convolutions whose HLO text carries ``operand_precision={highest…}`` or ``{high…}``, and fusions
    around such a product as the compiled program has them.

Why it costs
    A TPU multiplies bf16. For the highest precision XLA runs six bf16 passes, for high three; a GPU leaves TF32 for
    fp32 units.

Evidence it needs
    The compiled programs (``/host:metadata`` of the ``xplane.pb``), or the text of the instruction (``long_name``),
    which does not show the inside of a fusion.

When it is wrong
    The precision was asked for, because the result needs it. A CPU multiplies f32 as f32 whatever is asked for, so it
    is left out.

Fix
    Leave ``jax_default_matmul_precision`` at its default, or ask for precision only in the products that need it.

Scope and sources
    XLA on TPU and GPU. docs.jax.dev/en/latest/201/precision.html and jax-ml/jax issue #18934, read 2026-11; the
    number of passes (``HIGHEST`` six, ``HIGH`` three) is general knowledge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Finding, Severity
from traceview.rules.hlo import TEXT_KEYS, with_detail, xla_rows
from traceview.rules.kernel_evidence import HINT_SHARE, Advice, kernel_finding, plural, share_of_busy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV207"
NAME: Final = "xla-highest-precision"
SEVERITY: Final = Severity.INFO

SAVED_SHARE: Final = 5 / 6
"""Six passes become one."""

_PRECISE: Final = r"operand_precision=\{high(est)?"
_ADVICE: Final = Advice(
    code=CODE,
    fix="Leave jax_default_matmul_precision at its default except where the result needs more.",
    false_alarm_if="the precision was asked for",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all such ops."""
    cpus = facts.timeline.devices.filter(pl.col("name") == "CPU (XLA)")["device"]
    ops = xla_rows(facts).filter(~pl.col("device").is_in(cpus.implode()))
    ops = with_detail(facts.timeline, ops, TEXT_KEYS, "text")
    ops = with_detail(facts.timeline, ops, ("dot_precision",), "precision_asked")
    rows = ops.filter(
        pl.col("text").str.contains(_PRECISE).fill_null(value=False)
        | pl.col("precision_asked").is_in(["high", "highest"]).fill_null(value=False)
    )
    if not rows.height or share_of_busy(facts, rows) < HINT_SHARE:
        return
    yield kernel_finding(
        facts,
        rows,
        f"{plural(rows.height, 'XLA product')} ran at more than the default precision",
        _ADVICE,
        severity=Severity.INFO,
        saved_share=SAVED_SHARE,
    )
