"""Which backends of PyTorch's scaled dot-product attention a recorded call could have run, and why not the others.

    call = read_call("aten::scaled_dot_product_attention", {"dims": …, "dtypes": …, "strides": …, "concrete": …})
    explain(call, Device("cuda", 9, 0), observed="math", torch="2.9").cause_ids

Rules are data (:mod:`traceview.knowledge.sdpa`). Each is a condition with three values: it holds, it does not, or a
fact it needs is not recorded. Only a rule that holds on recorded facts is named as a cause.
"""

from __future__ import annotations

from traceview.eligibility.calls import SdpaCall, Tensor, read_call
from traceview.eligibility.evaluate import BackendAnswer, RuleAnswer, State, Status
from traceview.eligibility.explain import Comparison, Explanation, NotExcluded, explain
from traceview.eligibility.facts import Device

__all__ = [
    "BackendAnswer",
    "Comparison",
    "Device",
    "Explanation",
    "NotExcluded",
    "RuleAnswer",
    "SdpaCall",
    "State",
    "Status",
    "Tensor",
    "explain",
    "read_call",
]
