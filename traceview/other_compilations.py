"""What else is prepared at first use: captures of device graphs, and execution plans of cuDNN attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from traceview.host_calls import innermost, named
from traceview.launches import graph_launch_ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.timeline import Timeline

_BEGIN: Final = r"^(cuda|cu|hip)StreamBeginCapture\w*$"
_END: Final = r"^(cuda|cu|hip)(StreamEndCapture|GraphInstantiate)\w*$"

SLOW_NS: Final = 20_000_000
"""A call that finds its plan takes well below a millisecond; a plan takes hundreds."""

SLOW_FACTOR: Final = 20
"""On a slow or traced host every call is slow; a plan stands out from the others."""

FEWEST_CALLS: Final = 3
"""With fewer there is no median to stand out from."""

_PLANNED: Final = r"^aten::_scaled_dot_product_cudnn_attention(_backward)?$"


def graph_captures(timeline: Timeline) -> pl.DataFrame:
    """Every begin of a stream capture; ``end_ns`` is the last end or instantiation before the next begin of its thread.

    ``replayed_before`` says that some graph had been replayed by then.
    """
    begins = named(timeline, ("api",), _BEGIN).sort("start_ns")
    closes = named(timeline, ("api",), _END).select("thread", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    owned = closes.sort("start_ns").join_asof(
        begins.select("thread", "start_ns", begin="id"),
        on="start_ns",
        by="thread",
        strategy="backward",
        check_sortedness=False,
    )
    ends = owned.group_by("begin").agg(pl.col("end_ns").max()).rename({"begin": "id"})
    replays = timeline.events.filter(pl.col("id").is_in(graph_launch_ids(timeline.events).implode()))["start_ns"].min()
    after = pl.col("start_ns") > replays if replays is not None else pl.lit(False)
    return begins.join(ends, on="id", how="left", maintain_order="left").with_columns(
        end_ns=pl.col("end_ns").fill_null(pl.col("start_ns") + pl.col("dur_ns")), replayed_before=after
    )


def attention_plans(timeline: Timeline) -> pl.DataFrame:
    """Calls of cuDNN attention that took so much longer than usual that a plan was built, with ``usual_ns``."""
    calls = named(timeline, ("op",), _PLANNED).with_columns(
        usual_ns=pl.col("dur_ns").median().over("name"), calls=pl.len().over("name")
    )
    return calls.filter(
        (pl.col("calls") >= FEWEST_CALLS)
        & (pl.col("dur_ns") >= SLOW_NS)
        & (pl.col("dur_ns") >= SLOW_FACTOR * pl.col("usual_ns"))
    )


def other_compilations(timeline: Timeline) -> Iterator[dict[str, Any]]:
    """Rows of :data:`traceview.recompiles.RECOMPILES` without step and warm-up."""
    captures = graph_captures(timeline)
    compiling = timeline.events.filter((pl.col("kind") == "compile") & pl.col("thread").is_not_null())["id"]
    # A capture inside of a span of torch.compile is in the list as that span.
    apart = captures.filter(innermost(timeline, captures["id"], compiling).is_null()) if captures.height else captures
    for row in apart.iter_rows(named=True):
        yield {
            "what": "graph-capture",
            "function": None,
            "compile_id": None,
            "recompiled": row["replayed_before"] or None,
            "reason": "a graph had been replayed before" if row["replayed_before"] else None,
            "shapes": None,
            "start_ns": row["start_ns"],
            "dur_ns": row["end_ns"] - row["start_ns"],
            "process": row["process"],
            "event_id": row["id"],
        }
    for row in attention_plans(timeline).iter_rows(named=True):
        dims = None if row["inputs"] is None else timeline.inputs["dims"][row["inputs"]]
        yield {
            "what": "cudnn-plan",
            "function": row["name"],
            "compile_id": None,
            "recompiled": None,
            "reason": "the call took far longer than usual, as it does when cuDNN builds a plan",
            "shapes": dims,
            "start_ns": row["start_ns"],
            "dur_ns": round(row["dur_ns"] - row["usual_ns"]),
            "process": row["process"],
            "event_id": row["id"],
        }
