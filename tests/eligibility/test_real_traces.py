"""The rulebook against what ran in real traces: it never refuses what ran, and names nothing where nothing was lost."""

from __future__ import annotations

import pytest

from traceview import load
from traceview.dispatch import dispatch_table

FILES = [
    "bert-small-h100.json.gz",
    "qwen15-chat-h100.json.gz",
    "falconsai-vit-mi300.json.gz",
    "sdpa-long-seq-mi300.json.gz",
    "flux1-sage-mi300.json.gz",
    "torch-compile-triton-mi300.json.gz",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_the_fused_call_of_a_real_trace_is_not_refused(corpus, name):
    rows = [
        row
        for row in dispatch_table(load(corpus / "pytorch" / name)).attention
        if (row.op or "").startswith("aten::") and "scaled_dot_product" in (row.op or "") and row.verdict == "ok"
    ]
    assert rows
    for row in rows:
        assert {reason.status for reason in row.reasons} <= {"observed", "allows", "not recorded"}
        (order,) = [reason for reason in row.reasons if reason.rule == "order"]
        assert order.status in {"allows", "not recorded"}
        assert "rulebook is wrong" not in order.text
