"""FlexAttention was called without ``torch.compile`` and ran unfused.

What it finds
    The Python frame of FlexAttention's dense implementation (``sdpa_dense``, ``math_attention``) around device or
    host work.

Why it costs
    Without compilation FlexAttention computes the whole score matrix with ordinary operators, under ``vmap``, with the
    mask and score functions element by element. Only the compiled form is one fused kernel that skips masked blocks.

Evidence it needs
    Python frames (``with_stack=True``). Without them the calls still show up as unfused attention (TV101)
    of ``FlexAttentionAutogradOp``.

When it is wrong
    A debugging run, or a unit test that calls it eagerly on purpose.

Fix
    ``flex_attention = torch.compile(flex_attention)`` once, at module level, and build the block mask once per shape.

Scope and sources
    PyTorch 2.5 and later. pytorch ``torch/_higher_order_ops/flex_attention.py`` (``sdpa_dense``, ``math_attention``)
    and the warning in ``torch/nn/attention/flex_attention.py`` of 2.9 and later, read in source code 2026-11;
    pytorch issue #182611 measures it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.findings import Confidence, Finding, Severity
from traceview.host_calls import innermost, named
from traceview.rules.attention_evidence import host_words
from traceview.rules.device_work import union_ns
from traceview.rules.kernel_evidence import cost_words, kernel_lines, located, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV106"
NAME: Final = "attention-flex-eager"
SEVERITY: Final = Severity.WARNING

_DENSE_FRAME: Final = r"_higher_order_ops[/.]flex_attention\.py\(\d+\): (sdpa_dense|sdpa_dense_backward)$"


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all eager calls."""
    calls = named(facts.timeline, ("python",), _DENSE_FRAME)
    if not calls.height:
        return
    rows = facts.work.filter(innermost(facts.timeline, facts.work["launch_id"], calls["id"]).is_not_null())
    device_ns = union_ns(rows)
    words = cost_words(facts, device_ns) if device_ns else host_words(facts, int(calls["dur_ns"].sum()))
    yield Finding(
        code=CODE,
        severity=Severity.WARNING,
        title=f"{plural(calls.height, 'FlexAttention call')} ran without torch.compile: {words}",
        **located(facts, calls["id"]),
        evidence=(f"{calls.height:,} × Python frame {calls['name'][0]}", *kernel_lines(rows)),
        cost_ns=device_ns or None,
        confidence=Confidence.MEASURED,
        fix="Call torch.compile(flex_attention) once and use the result.",
        false_alarm_if="it was called eagerly on purpose, to debug a mask or score function",
    )
