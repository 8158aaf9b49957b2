"""A device graph was captured again after the warm-up.

What it finds
    Stream captures (``cudaStreamBeginCapture`` … ``cudaGraphInstantiate``) in a recorded step after the first one, or,
    where no steps are recorded, after a graph had already been replayed.

Why it costs
    Capture runs the whole model on the host without running it on the device, and building the graph takes as long
    again. It is worth it for shapes that come back.

Evidence it needs
    Runtime calls. Without profiler steps it is said that it may be the warm-up of another shape.

When it is wrong
    A new batch size that is captured once and then replayed.

Fix
    Capture all sizes at start, pad to them, and keep inputs at fixed addresses; for ``mode="reduce-overhead"`` look for
    changing shapes and for inputs that PyTorch has to copy.

Scope and sources
    CUDA graphs and HIP graphs. pytorch ``torch/_inductor/cudagraph_trees.py`` (torch 2.13), read in source code
    2026-11; the runtime calls are general knowledge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.findings import Confidence, CostOf, Finding, Severity, Window
from traceview.other_compilations import graph_captures
from traceview.quantities import milliseconds
from traceview.rules.kernel_evidence import located, on_the_host, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV303"
NAME: Final = "graph-capture"
SEVERITY: Final = Severity.WARNING


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all captures."""
    begins = graph_captures(facts.timeline)
    if not begins.height:
        return
    steady = facts.steady
    late = steady.within(begins) if steady else begins.filter("replayed_before")
    if not late.height:
        return
    cost_ns = int((late["end_ns"] - late["start_ns"]).sum())
    remark = (
        f"in steps {', '.join(map(str, late['step'].unique().sort().to_list()[:8]))}"
        if steady
        else "a graph had been replayed before; without profiler steps it may be the warm-up of another shape"
    )
    yield Finding(
        code=CODE,
        severity=Severity.WARNING if steady else Severity.INFO,
        title=f"{plural(late.height, 'graph capture')} after the warm-up: {milliseconds(cost_ns)} {on_the_host(late)}",
        **located(facts, late["id"]),
        evidence=(remark,),
        cost_ns=cost_ns,
        cost_of=CostOf.HOST,
        window=Window.STEPS if steady else Window.TRACE,
        confidence=Confidence.MEASURED if steady else Confidence.INFERRED,
        fix="Capture every size at start and pad to these sizes; keep inputs at fixed addresses.",
        false_alarm_if="a new size is captured once and replayed from then on",
    )
