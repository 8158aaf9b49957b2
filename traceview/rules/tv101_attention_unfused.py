"""Attention ran as separate matrix products and a softmax, with no fused kernel.

What it finds
    A matrix product, a softmax over its result, and a second product that consumes it, with nothing but
    element-wise work in between, outside any attention op. This is how attention written by hand looks, and how
    ``flash_attn=True`` looks when the model code takes its eager branch.

Why it costs
    The score matrix (queries × keys for every head) is written to device memory and read back by each step. Fused
    attention never stores it, so the memory it moves grows with the sequence length instead of its square.

Evidence it needs
    Proven when the recorded shapes feed each other, or when both products are batched products as ops. If only the
    order of kernels on a stream shows it (a captured graph, no shapes), or if the products are of single matrices
    (``aten::mm``: one head, or a soft lookup in a table), it is inferred and stays a warning. A softmax before or after
    a linear layer (a bias vector is added, ``aten::linear`` is recorded around it) is never taken for attention.

When it is wrong
    Softmax-weighted sums that are not attention (soft clustering, slot attention, dense expert mixtures) have the same
    shape. Very short sequences can be as fast unfused.

Fix
    Call ``torch.nn.functional.scaled_dot_product_attention`` (or the model's ``attn_implementation="sdpa"`` or
    ``"flash_attention_2"``), check that the model class supports it, and look at this trace again: the flag is a
    request. Where an op of PyTorch itself writes attention out (``aten::_native_multi_head_attention``, the fast path
    of ``nn.MultiheadAttention``; ``flex_attention`` without ``torch.compile``), the finding names what makes it stop.

Scope and sources
    Any device and the CPU, any version; for what XLA compiled see TV108. Chain of ops: pytorch
    ``aten/src/ATen/native/transformers/attention.cpp`` (the unfused reference), read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.attention import INFERRED
from traceview.findings import Confidence, Finding, Severity
from traceview.knowledge.attention_wrappers import WRAPPERS
from traceview.rules.attention_evidence import by_cause, evidence_lines, timing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.dispatch import Dispatch
    from traceview.rules.base import Facts

CODE: Final = "TV101"
NAME: Final = "attention-unfused"
SEVERITY: Final = Severity.ERROR

_FIX: Final = (
    "Use scaled_dot_product_attention (or the model's sdpa or flash_attention_2 implementation) instead of separate "
    "products and softmax, and check the trace again."
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for what is proven and one for what is inferred, of each cause that has a fix of its own."""
    rows = [row for row in facts.table.attention if row.implementation == "unfused" and row.provider != "xla"]
    for fix in dict.fromkeys(_fix(row) for row in rows):
        yield from _findings(facts, [row for row in rows if _fix(row) == fix], fix)


def _fix(row: Dispatch) -> str:
    wrapper = WRAPPERS.get(row.op or "")
    return wrapper.fix if wrapper else _FIX


def _findings(facts: Facts, rows: list[Dispatch], fix: str) -> Iterator[Finding]:
    for proven, group in by_cause(rows, lambda row: row.evidence not in INFERRED):
        count = sum(row.count for row in group)
        cost = timing(facts, group)
        calls = f"{count:,} attention call{'s' if count != 1 else ''}"
        yield Finding(
            code=CODE,
            severity=Severity.ERROR if proven else Severity.WARNING,
            title=f"{calls} {'ran' if proven else 'seem to have run'} unfused{cost.words}",
            where=cost.where or "no call stack recorded",
            event_ids=cost.event_ids,
            evidence=evidence_lines(group),
            cost_ns=cost.device_ns or None,
            confidence=Confidence.MEASURED if proven else Confidence.INFERRED,
            fix=fix,
            false_alarm_if="the chain is a softmax-weighted sum that is not attention, or the sequences are very short",
        )
