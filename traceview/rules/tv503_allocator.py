"""Device memory was allocated or freed inside steady steps.

What it finds
    ``cudaMalloc``, ``cudaFree`` and their kin in recorded steps after the first, for 1 % or more of their time.

Why it costs
    PyTorch keeps memory in its own pool. When the pool does not fit (near the memory limit, changing sizes, after
    ``empty_cache``) it goes to the driver, which blocks the host and for a free waits for the device.

Evidence it needs
    Runtime calls and profiler steps.

When it is wrong
    A first batch of a new size may enlarge the pool once.

Fix
    ``PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True``, fixed shapes, no ``empty_cache`` in the loop, a smaller batch.

Scope and sources
    CUDA and HIP. General knowledge of PyTorch's caching allocator (``c10/cuda/CUDACachingAllocator.cpp``); public
    case: pytorch issue #65078.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.allocations import allocator_calls
from traceview.findings import Confidence, CostOf, Finding, Severity, Window
from traceview.host_calls import host_union_ns
from traceview.quantities import milliseconds
from traceview.rules.kernel_evidence import located, on_the_host, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV503"
NAME: Final = "allocator"
SEVERITY: Final = Severity.WARNING

SHARE_OF_STEPS: Final = 0.01
"""Less does not show in the wall time."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all calls of the steady steps."""
    steady = facts.steady
    if steady is None:
        return
    calls = steady.within(allocator_calls(facts.timeline))
    cost_ns = host_union_ns(calls)
    if not cost_ns or cost_ns < SHARE_OF_STEPS * steady.span_ns:
        return
    names = calls.group_by("name").agg(pl.len().alias("count"), pl.col("dur_ns").sum())
    yield Finding(
        code=CODE,
        severity=Severity.WARNING,
        title=f"{plural(calls.height, 'allocator call')} after the first recorded step: "
        f"{milliseconds(cost_ns)} {on_the_host(calls)}",
        **located(facts, calls.sort("dur_ns", descending=True)["id"]),
        evidence=tuple(
            f"{count:,} × {name}: {milliseconds(ns)}"
            for name, count, ns in names.sort(["dur_ns", "name"], descending=[True, False]).head(5).iter_rows()
        ),
        cost_ns=cost_ns,
        cost_of=CostOf.HOST,
        window=Window.STEPS,
        confidence=Confidence.MEASURED,
        fix="Set expandable_segments:True, keep shapes fixed, and do not call empty_cache in the loop.",
        false_alarm_if="a new batch size enlarged the pool once",
    )
