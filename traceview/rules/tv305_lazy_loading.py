"""Kernel code was loaded while the program was already running.

What it finds
    Lazy loading marks of the profiler and module loading calls (``cuModuleLoadData``, ``cuLibraryLoadData``,
    ``hipModuleLoad``) that take 1 % or more of the steps after the first one.

Why it costs
    Kernels are loaded on first use. The load blocks the launch, sometimes the whole context. It distorts a measurement
    and shows up as jitter when rare kernels are loaded late.

Evidence it needs
    Profiler overhead rows or driver calls, and profiler steps to leave the warm-up out; without steps it is said that
    it may be the warm-up.

When it is wrong
    Programs that reach a new phase (evaluation) load its kernels once.

Fix
    Warm up every phase before measuring, or set ``CUDA_MODULE_LOADING=EAGER``.

Scope and sources
    CUDA 11.7 and later (the default on Linux since 12.2), HIP. CUDA programming guide, lazy loading,
    docs.nvidia.com/cuda, read 2026-11; the mark ``Lazy Function Loading``: seen in a recorded trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.findings import Confidence, CostOf, Finding, Severity, Window
from traceview.host_calls import host_union_ns, named
from traceview.quantities import milliseconds
from traceview.rules.kernel_evidence import located, on_the_host, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV305"
NAME: Final = "lazy-loading"
SEVERITY: Final = Severity.INFO

SHARE_OF_TIME: Final = 0.01
"""Less is not seen in a measurement."""

_LOADS: Final = r"^Lazy Function Loading$|^(cu|cuda)(Module|Library)Load\w*$|^hipModuleLoad\w*$"


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all loads."""
    loads = named(facts.timeline, ("overhead", "api"), _LOADS)
    steady = facts.steady
    if steady:
        loads = steady.within(loads)
    of_ns = steady.span_ns if steady else facts.span_ns
    cost_ns = host_union_ns(loads)
    if not cost_ns or cost_ns < SHARE_OF_TIME * of_ns:
        return
    names = loads["name"].value_counts(sort=True, name="n")
    yield Finding(
        code=CODE,
        severity=Severity.INFO,
        title=f"{plural(loads.height, 'load')} of kernel code "
        f"{'after the first recorded step' if steady else 'in the recorded window'}: "
        f"{milliseconds(cost_ns)} {on_the_host(loads)}",
        **located(facts, loads["id"]),
        evidence=(
            *(f"{n:,} × {name}" for name, n in names.head(3).iter_rows()),
            *(() if steady else ("fewer than two profiler steps are recorded, so this may be the warm-up",)),
        ),
        cost_ns=cost_ns,
        cost_of=CostOf.HOST,
        window=Window.STEPS if steady else Window.TRACE,
        confidence=Confidence.MEASURED,
        fix="Warm up every phase before measuring, or set CUDA_MODULE_LOADING=EAGER.",
        false_alarm_if="the program entered a new phase for the first time",
    )
