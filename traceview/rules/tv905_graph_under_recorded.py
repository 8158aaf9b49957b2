"""Replayed graphs left no kernels in the file, so idle time is not reliable.

What it finds
    Graph launches without any recorded device work, while the device looks idle.

Why it costs
    Nothing by itself: the device ran the graph, but the profiler recorded nothing or one opaque block of it. Its time
    looks like idle time, and no rule can see what ran.

Evidence it needs
    Graph launch calls and the device work linked to them.

When it is wrong
    An empty graph leaves no work. A launch at the very end of the window may run after it.

Fix
    Record with a profiler version that traces graph nodes (``nsys profile --cuda-graph-trace=node``), or run once with
    graphs off to see the kernels.

Scope and sources
    CUDA and HIP graphs: it is a statement about the trace. The option: docs.nvidia.com/dl-cuda-graph, performance
    issues, read 2026-11; openxla/xprof issue #3070.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.findings import Confidence, Finding, Severity
from traceview.launches import graph_replays
from traceview.rules.kernel_evidence import located, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV905"
NAME: Final = "graph-under-recorded"
SEVERITY: Final = Severity.WARNING


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for silent graph launches, one for graphs recorded as opaque blocks."""
    replays = graph_replays(facts.timeline.events)
    if replays.under_recorded:
        yield _finding(facts, f"{replays.words}: their time looks idle", replays.silent)
    blocks = facts.work.filter(pl.col("kind") == "graph")
    if blocks.height:
        yield _finding(
            facts,
            f"{plural(blocks.height, 'graph')} recorded as one opaque block: what ran inside is unknown",
            blocks["id"],
        )


def _finding(facts: Facts, title: str, event_ids: pl.Series) -> Finding:
    return Finding(
        code=CODE,
        severity=Severity.WARNING,
        title=title,
        **located(facts, event_ids),
        evidence=("graph launches and the device work linked to them",),
        cost_ns=None,
        confidence=Confidence.MEASURED,
        fix="Trace graph nodes (nsys profile --cuda-graph-trace=node), or run once with graphs off.",
        false_alarm_if="the graphs are empty, or ran after the recording stopped",
    )
