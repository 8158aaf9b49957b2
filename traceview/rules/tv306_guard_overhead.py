"""Checking the guards of compiled code took a noticeable part of the host's time.

What it finds
    ``TorchDynamo Cache Lookup`` ranges that add up to 5 % or more of the recorded steps.

Why it costs
    Before each call of compiled code PyTorch checks that its assumptions still hold. Many graph breaks, many parameters
    or many cached versions of a frame make the check slow, and it is repeated in every call.

Evidence it needs
    The ranges, which PyTorch records since 2.0, and at least two profiler steps.

When it is wrong
    If the device is busy all the time, the host's time does not matter.

Fix
    Fewer and larger compiled regions (remove graph breaks: ``TORCH_LOGS=graph_breaks``), and newer versions, which
    check guards in C++.

Scope and sources
    PyTorch 2.0 and later. The name of the range: string found in a shipped binary (``libtorch_python.so`` of torch
    2.13).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.findings import Confidence, CostOf, Finding, Severity, Window
from traceview.host_calls import host_union_ns, named
from traceview.quantities import milliseconds, percent
from traceview.rules.kernel_evidence import located, on_the_host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV306"
NAME: Final = "guard-overhead"
SEVERITY: Final = Severity.INFO

SHARE_OF_STEPS: Final = 0.05
"""A few lookups per step are the normal price of compiled code."""

_LOOKUP: Final = r"^TorchDynamo Cache Lookup$"


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for the steady steps."""
    steady = facts.steady
    if steady is None:
        return
    lookups = steady.within(named(facts.timeline, ("op", "annotation"), _LOOKUP))
    cost_ns = host_union_ns(lookups)
    if not cost_ns or cost_ns < SHARE_OF_STEPS * steady.span_ns:
        return
    yield Finding(
        code=CODE,
        severity=Severity.INFO,
        title=f"Checking guards took {milliseconds(cost_ns)} {on_the_host(lookups)}, "
        f"{percent(cost_ns / steady.span_ns)} of the steps",
        **located(facts, lookups["id"]),
        evidence=(f"{lookups.height:,} lookups in {steady.steps.height:,} steps",),
        cost_ns=cost_ns,
        cost_of=CostOf.HOST,
        window=Window.STEPS,
        confidence=Confidence.MEASURED,
        fix="Remove graph breaks (TORCH_LOGS=graph_breaks), and compile fewer and larger regions.",
        false_alarm_if="the device is busy all the time, so that the host's time does not matter",
    )
