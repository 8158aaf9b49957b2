"""Matrix products ran kernels written for an older GPU generation.

What it finds
    Tensor-core matrix kernels whose name says Volta or Turing (``cutlass_75_*_s1688gemm``, ``turing_*``) on compute
    capability 8.0 or later; and, as a remark, large half-precision kernels of Ampere's generation on 9.x to 11.x.

Why it costs
    The older instructions multiply smaller blocks and load operands element by element. A library picks such a kernel
    when the newer ones refuse the operands, most often for their alignment: one odd dimension or stride.

Evidence it needs
    The kernel name and the recorded compute capability. The names also say the alignment (``align1``), and recorded
    dims show the odd size.

When it is wrong
    An old library may have nothing newer. Some small products are fastest on Ampere's tiles, so those are only
    mentioned when they are long (mean of 50 µs) and make up a tenth of the busy time. The cost is the kernels' whole
    time; a newer kernel still needs a part of it.

Fix
    Make the innermost dimensions multiples of 8 (16 for 8-bit types): pad the vocabulary, the sequence or the head
    dimension. For unfused attention the fix is fused attention.

Scope and sources
    NVIDIA, cuBLAS and CUTLASS. Kernel names of cuBLASLt 12.8: string found in a shipped binary. That low alignment
    selects the older instruction is general knowledge, borne out by their names (every ``cutlass_75_*_s1688gemm``
    seen on an H100 says ``align1``: seen in a recorded trace).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.attention import SLOW
from traceview.findings import Confidence, Finding, Severity
from traceview.rules.kernel_evidence import WORTH_SHARE, Advice, kernel_finding, plural, share_of_busy
from traceview.rules.matrix_kernels import HALF, MAIN_GEMM, NEW_MATRIX_UNITS, kernel_generation, low_alignment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV110"
NAME: Final = "gemm-older-tile"
SEVERITY: Final = Severity.WARNING

AMPERE_SHARE: Final = 0.10
"""Ampere tiles on newer parts are often right, so they must matter before they are worth a remark."""

AMPERE_MEAN_NS: Final = 50_000
"""Products shorter than this do not fill a Hopper GPU with its larger tiles either."""

_TURING: Final = 75
_AMPERE: Final = 80
_ADVICE: Final = Advice(
    code=CODE,
    fix="Make the inner dimensions and strides multiples of 8 (pad), or replace unfused attention by a fused call.",
    false_alarm_if="the library has no newer kernel for the shape; the cost is the kernels' whole time",
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for kernels two generations old, one for long Ampere kernels on newer parts."""
    products = facts.work.filter(MAIN_GEMM & pl.col("tensor_core")).with_columns(generation=kernel_generation())
    old = products.filter((pl.col("generation") <= _TURING) & (pl.col("nvidia_cc") >= _AMPERE))
    if share_of_busy(facts, old) >= WORTH_SHARE:
        yield kernel_finding(
            facts,
            old,
            f"{plural(old.height, 'matrix product')} ran kernels of the Volta or Turing generation on a newer GPU",
            _ADVICE,
            severity=Severity.WARNING,
            remarks=_causes(old),
        )
    ampere = products.filter(
        (pl.col("generation") == _AMPERE) & NEW_MATRIX_UNITS & pl.col("precision").is_in(HALF)
    ).filter(pl.col("dur_ns").mean().over("name") >= AMPERE_MEAN_NS)
    if share_of_busy(facts, ampere) >= AMPERE_SHARE:
        yield kernel_finding(
            facts,
            ampere,
            f"{plural(ampere.height, 'long matrix product')} ran Ampere kernels on a newer GPU",
            _ADVICE,
            severity=Severity.INFO,
            confidence=Confidence.INFERRED,
            remarks=_causes(ampere),
        )


def _causes(rows: pl.DataFrame) -> tuple[str, ...]:
    remarks = []
    unaligned = rows.filter(low_alignment()).height
    if unaligned:
        remarks.append(f"{unaligned:,} of them say that operands are aligned to one or two elements only")
    in_attention = rows.filter(pl.col("attention").is_in(SLOW)).height
    if in_attention:
        remarks.append(f"{in_attention:,} of them are part of unfused attention: a fused call does without them")
    return tuple(remarks)
