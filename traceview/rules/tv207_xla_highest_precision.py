"""An XLA program multiplied at the highest precision.

What it finds
    Matrix products and convolutions whose HLO text carries ``operand_precision={highest…}`` or ``{high…}``.

Why it costs
    A TPU multiplies bf16. For the highest precision XLA runs six bf16 passes, for high three; a GPU leaves TF32 for
    fp32 units.

Evidence it needs
    The text of the instruction (``long_name`` in XProf). Inside fusions the text may not show the precision.

When it is wrong
    The precision was asked for, because the result needs it.

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
    ops = with_detail(facts.timeline, xla_rows(facts), TEXT_KEYS, "text")
    rows = ops.filter(pl.col("text").str.contains(_PRECISE))
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
