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

import polars as pl

from traceview import launches
from traceview.findings import Confidence, CostOf, Finding, Severity
from traceview.host_calls import named
from traceview.rules.kernel_evidence import milliseconds, places, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV303"
NAME: Final = "graph-capture"
SEVERITY: Final = Severity.WARNING

_BEGIN: Final = r"^(cuda|cu|hip)StreamBeginCapture\w*$"
_END: Final = r"^(cuda|cu|hip)(StreamEndCapture|GraphInstantiate)\w*$"


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all captures."""
    begins = named(facts.timeline, ("api",), _BEGIN).sort("start_ns")
    if not begins.height:
        return
    steady = facts.steady
    if steady:
        late = steady.within(begins)
    else:
        replays = facts.timeline.events.filter(
            pl.col("id").is_in(launches.graph_launch_ids(facts.timeline.events).implode())
        )
        late = begins.filter(pl.col("start_ns") > replays["start_ns"].min()) if replays.height else begins.clear()
    if not late.height:
        return
    cost_ns = _capture_ns(facts, begins, late)
    remark = (
        f"in steps {', '.join(map(str, late['step'].unique().sort().to_list()[:8]))}"
        if steady
        else "a graph had been replayed before; without profiler steps it may be the warm-up of another shape"
    )
    yield Finding(
        code=CODE,
        severity=Severity.WARNING if steady else Severity.INFO,
        title=f"{plural(late.height, 'graph capture')} after the warm-up: {milliseconds(cost_ns)} on the host",
        where=places(facts, late["id"]),
        evidence=(remark,),
        cost_ns=cost_ns,
        cost_of=CostOf.HOST,
        confidence=Confidence.MEASURED if steady else Confidence.INFERRED,
        fix="Capture every size at start and pad to these sizes; keep inputs at fixed addresses.",
        false_alarm_if="a new size is captured once and replayed from then on",
    )


def _capture_ns(facts: Facts, begins: pl.DataFrame, late: pl.DataFrame) -> int:
    """Host time from each late begin to the last end or instantiation before the next begin of its thread, ns."""
    closes = named(facts.timeline, ("api",), _END).select(
        "thread", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    owned = closes.sort("start_ns").join_asof(
        begins.select("thread", "start_ns", begin="id", begin_ns="start_ns"),
        on="start_ns",
        by="thread",
        strategy="backward",
        check_sortedness=False,
    )
    spans = (
        owned.filter(pl.col("begin").is_in(late["id"].implode()))
        .group_by("begin", "begin_ns")
        .agg(pl.col("end_ns").max())
    )
    return int((spans["end_ns"] - spans["begin_ns"]).sum())
