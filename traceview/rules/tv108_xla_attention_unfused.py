"""An XLA program runs attention as separate products and a softmax.

What it finds
    Attention that XLA did not fuse: a product, an exponential whose result is summed, and a product that consumes it.
    It is read from the compiled program when the profile holds it, else from the order of the ops on the device's
    line. Fused attention (cuDNN ``fmha``, splash, Pallas) is one custom call and does not match.

Why it costs
    The scores go to device memory and back. ``jax.nn.dot_product_attention`` does this by default on every device:
    ``implementation=None`` means ``"xla"``.

Evidence it needs
    The compiled programs (``/host:metadata`` of the ``xplane.pb``) prove it. Without them the category and the
    framework path of the ops only let it be inferred, and it stays a warning.

When it is wrong
    A softmax-weighted sum that is not attention (a mixture of experts, a classifier between two layers) can look the
    same; short sequences lose nothing. JAX has no fused attention for CPUs: judge a program on the device that it is
    for.

Fix
    ``implementation="cudnn"`` in ``jax.nn.dot_product_attention`` on GPUs (half precision, head size a multiple of 8 up
    to 128, or 256 from Hopper on), splash or flash attention of Pallas on TPUs; in model libraries set the attention
    option, and look for a silent fallback.

Scope and sources
    JAX on TPU, GPU and CPU. jax 0.10.2 ``jax/_src/nn/functions.py`` (``dot_product_attention``) and
    ``jax/_src/cudnn/fused_attention_stablehlo.py``, read in source code 2026-11; a library that falls back silently:
    keras-team/keras issue #21333.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.attention import INFERRED
from traceview.findings import Confidence, Finding, Severity
from traceview.rules.attention_evidence import by_cause, evidence_lines, timing
from traceview.rules.kernel_evidence import HINT_SHARE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV108"
NAME: Final = "xla-attention-unfused"
SEVERITY: Final = Severity.ERROR

FEWEST_INFERRED: Final = 2
"""One such order can be a coincidence at the end of a program."""

_FIXES: Final = {
    "google": "Ask for splash or flash attention of Pallas: XLA's own attention is never fused on a TPU.",
    "nvidia": 'Ask for implementation="cudnn" in jax.nn.dot_product_attention: the default is XLA\'s own, never fused.',
    "amd": "Ask for a fused attention of a library (Transformer Engine, Pallas): XLA's own is never fused.",
    None: "Judge it on the device that the program is for: JAX has no fused attention for CPUs.",
}


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for what programs prove and one for what the order of ops suggests."""
    rows = [row for row in facts.table.attention if row.implementation == "unfused" and row.provider == "xla"]
    vendors = [vendor for vendor in facts.timeline.devices["vendor"] if vendor is not None]
    vendor = vendors[0] if vendors else None
    for proven, group in by_cause(rows, lambda row: row.evidence not in INFERRED):
        count = sum(row.count for row in group)
        cost = timing(facts, group)
        if not proven and (count < FEWEST_INFERRED or sum(row.share or 0 for row in group) < HINT_SHARE):
            continue
        calls = f"{count:,} attention call{'s' if count != 1 else ''} of XLA"
        yield Finding(
            code=CODE,
            severity=Severity.ERROR if proven else Severity.WARNING,
            title=f"{calls} {'ran' if proven else 'seem to have run'} unfused{cost.words}",
            where=cost.where or "no call stack recorded",
            event_ids=cost.event_ids,
            evidence=evidence_lines(group),
            cost_ns=cost.device_ns or None,
            confidence=Confidence.MEASURED if proven else Confidence.INFERRED,
            fix=_FIXES.get(vendor, _FIXES["nvidia"]),
            false_alarm_if="the softmax is no attention (a router, a classifier), or the sequences are short",
        )
