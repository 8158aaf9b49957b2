"""What XLA compiled: spans of the compiler on the host, and programs that appear under a name that another one had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from traceview import intervals
from traceview.host_calls import named, outermost

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.timeline import Timeline

XLA_FRAME: Final = r"^backend_compile(_and_load)?$"
"""JAX's call of the XLA compiler, on the thread that asked."""

_TORCH: Final = r"\(dynamo_timed\)$|compile_inner|entire_frame_compile"
_FUNCTION: Final = r"^PjitFunction\((.+)\)$"
_MODULE: Final = r"(?:module|hlo_module)=([\w.\-]+)"
_PROGRAM: Final = r"program_id=(\d+)"
_NUMBERED: Final = r"\(\d+\)$"
_LOADING: Final = r"^(LoadProgram|ActualLoad|CopyProgramsToSharedMemory|MapDmaBuffer)"
"""Spans of libtpu in a recorded profile of a TPU v6e, around the loading of programs."""
_DETAIL: Final = "program_id"


def xla_compilations(timeline: Timeline) -> Iterator[dict[str, Any]]:
    """Rows of :data:`traceview.recompiles.RECOMPILES` without step and warm-up.

    The spans of one call of a jitted function (tracing, lowering, compiling) are one compilation. Where no span of a
    compiler is recorded, a program that runs for the first time under a name that another program had stands for one,
    with the cost unknown.
    """
    spans = named(timeline, ("compile",), ".").filter(~pl.col("name").str.contains(_TORCH))
    if spans.height:
        yield from _from_spans(timeline, spans)
    else:
        yield from _from_programs(timeline)


def _from_spans(timeline: Timeline, spans: pl.DataFrame) -> Iterator[dict[str, Any]]:
    # A program that is brought to a device is compiled already, and each device does so on a thread of its own.
    tops = outermost(timeline, spans).filter(~pl.col("name").str.contains(_LOADING))
    if not tops.height:
        return
    events = timeline.events
    ops = events.select(op_id="id", op=pl.col("name").cast(pl.String))
    rows = tops.join(ops, on="op_id", how="left", maintain_order="left").with_columns(
        end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    # Pool threads compile for the thread that asked: what another span of the process covers is part of it.
    rows = rows.sort("start_ns", "dur_ns", descending=[False, True])
    asked = pl.col("op").str.contains(_FUNCTION).fill_null(value=False) | pl.col("name").str.contains(XLA_FRAME)
    rows = rows.with_columns(asked=asked)
    reach = pl.col("end_ns").cum_max().shift(1).over("process")
    # A pool thread may close its span a moment after the thread that asked went on.
    in_a_call = pl.when("asked").then("end_ns").cum_max().forward_fill().over("process") > pl.col("start_ns")
    longer = (pl.col("end_ns") > reach).fill_null(value=True)
    apart = pl.col("asked") | ~in_a_call.fill_null(value=False)
    rows = rows.filter((longer & apart) | pl.col("op").str.contains(_FUNCTION))
    # Where calls are recorded, passes outside of any are those of a compilation that began before the recording, or
    # for a thread unknown: what follows each other on a thread, with no call in between, is one.
    rows = rows.with_columns(before=pl.col("asked").cum_sum().over("process"))
    loose = pl.col("id").first().over("process", "thread", "before")
    called = pl.col("asked").any().over("process")
    group = pl.when("asked").then(pl.coalesce("op_id", "id")).when(called).then(loose).otherwise("id")
    seen: dict[tuple[int | None, str], int] = {}
    for _, own in sorted(
        rows.group_by(group.alias("call"), maintain_order=True), key=lambda one: one[1]["start_ns"][0]
    ):
        names = own["name"].to_list()
        op = own["op"][0]
        function = pl.Series([op], dtype=pl.String).str.extract(_FUNCTION)[0] or next(
            (module for module in own["name"].str.extract(_MODULE).to_list() if module), None
        )
        inside = named_inside(spans, own)
        program = next((value for value in inside.str.extract(_PROGRAM).to_list() if value), None)
        starts = own["start_ns"].to_numpy()
        key = (own["process"][0], function or names[0])
        seen[key] = seen.get(key, 0) + 1
        yield {
            "what": "xla",
            "function": function,
            "compile_id": program,
            "recompiled": seen[key] > 1 if function else None,
            "reason": "another program was compiled for this function before" if function and seen[key] > 1 else None,
            "shapes": None,
            "start_ns": int(starts.min()),
            "dur_ns": intervals.total(starts, own["end_ns"].to_numpy()),
            "process": own["process"][0],
            "event_id": own["id"][0],
        }


def named_inside(spans: pl.DataFrame, own: pl.DataFrame) -> pl.Series:
    """Names of all spans that begin within some of them, on any thread of their process."""
    start, end = own["start_ns"].min(), own["end_ns"].max()
    return spans.filter(
        (pl.col("start_ns") >= start) & (pl.col("start_ns") <= end) & pl.col("process").eq_missing(own["process"][0])
    )["name"]


def _from_programs(timeline: Timeline) -> Iterator[dict[str, Any]]:
    """Programs that appear under a name that another program had."""
    runs = timeline.events.filter((pl.col("kind") == "xla_module") & pl.col("device").is_not_null()).select(
        "id", "device", "process", "start_ns", name=pl.col("name").cast(pl.String).str.replace(_NUMBERED, "")
    )
    if not runs.height or _DETAIL not in timeline.details:
        return
    programs = timeline.details[_DETAIL].with_columns(pl.col("value").cast(pl.String))
    first = (
        runs.join(programs, on="id", how="inner")
        .sort("start_ns")
        .unique(["device", "name", "value"], keep="first", maintain_order=True)
        .with_columns(before=pl.int_range(pl.len()).over("device", "name"))
        .filter(pl.col("before") > 0)
        .unique(["name", "value"], keep="first", maintain_order=True)
    )
    for row in first.iter_rows(named=True):
        yield {
            "what": "xla",
            "function": row["name"],
            "compile_id": row["value"],
            "recompiled": True,
            "reason": "another program ran under this name before; its compilation is not recorded",
            "shapes": None,
            "start_ns": row["start_ns"],
            "dur_ns": None,
            "process": row["process"],
            "event_id": row["id"],
        }
