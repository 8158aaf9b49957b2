"""Device work as rules look at it: each piece with its identity, the op that asked for it, and the device it ran on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview import intervals
from traceview.attention import SLOW, find_calls
from traceview.schema import Column, FrameSchema
from traceview.xla import identify_work

if TYPE_CHECKING:
    from traceview.attention import AttentionCalls
    from traceview.timeline import Timeline

DEVICE_WORK: Final = FrameSchema(
    "device_work",
    "One row per piece of device work, sorted by start.",
    (
        Column("id", pl.UInt32, "", "event id"),
        Column("start_ns", pl.Int64, "ns", "start"),
        Column("dur_ns", pl.Int64, "ns", "duration"),
        Column("kind", pl.String, "", "kind of event"),
        Column("name", pl.String, "", "kernel name as recorded"),
        Column("process", pl.UInt32, "", "key into `processes`", nullable=True),
        Column("device", pl.UInt32, "", "key into `devices`"),
        Column("stream", pl.Int64, "", "stream", nullable=True),
        Column("launch_id", pl.UInt32, "", "host call that launched it", nullable=True),
        Column("op_id", pl.UInt32, "", "innermost op around the launch", nullable=True),
        Column("step", pl.Int32, "", "profiler step", nullable=True),
        Column("bytes", pl.Int64, "B", "bytes moved", nullable=True),
        Column("signature", pl.String, "", "id of the kernel signature", nullable=True),
        Column("family", pl.String, "", "kernel family; `unknown` if no signature knows the name"),
        Column("implementation", pl.String, "", "implementation of the family", nullable=True),
        Column("tensor_core", pl.Boolean, "", "matrix units used; null: not known", nullable=True),
        Column("precision", pl.String, "", "precision of the inputs, from the name", nullable=True),
        Column("role", pl.String, "", "`main` or `helper`"),
        Column("op", pl.String, "", "name of the op", nullable=True),
        Column("dims", pl.String, "", "recorded dims of the op, JSON", nullable=True),
        Column("dtypes", pl.String, "", "recorded dtypes of the op, JSON", nullable=True),
        Column("attention", pl.String, "", "implementation of the attention call it belongs to", nullable=True),
        Column(
            "nvidia_cc", pl.Int32, "", "compute capability times ten; null: not NVIDIA or not recorded", nullable=True
        ),
    ),
)

OWN_FAULT: Final = ~pl.col("attention").is_in(SLOW).fill_null(value=False)
"""Work outside unfused attention: what is slow about the parts of that goes away when it is fused (TV101, TV102)."""


def device_work(timeline: Timeline, calls: AttentionCalls | None = None) -> pl.DataFrame:
    """The :data:`DEVICE_WORK` frame of a linked timeline; its attention calls are looked for if they are not given."""
    work = timeline.device_work.with_columns(pl.col("name").cast(pl.String), pl.col("kind").cast(pl.String))
    events = timeline.events
    capability = timeline.devices.select(
        "device",
        nvidia_cc=pl.when(pl.col("vendor") == "nvidia").then(
            pl.col("compute_major") * 10 + pl.col("compute_minor").fill_null(0)
        ),
    )
    joined = (
        identify_work(timeline, work)
        .with_columns(
            op=events["name"].gather(work["op_id"]).cast(pl.String), op_inputs=events["inputs"].gather(work["op_id"])
        )
        .join(
            timeline.inputs.select("dims", "dtypes", op_inputs="inputs"),
            on="op_inputs",
            how="left",
            maintain_order="left",
        )
        .join(capability, on="device", how="left", maintain_order="left")
        .join(_attention(calls or find_calls(timeline)), on="id", how="left", maintain_order="left")
    )
    return joined.select(list(DEVICE_WORK.dtypes))


def _attention(found: AttentionCalls) -> pl.DataFrame:
    """Of each piece of work of an attention call, the implementation of the call."""
    calls = found.calls.select("call", attention="implementation")
    return found.members.join(calls, on="call").select("id", "attention").unique("id", keep="first")


def union_ns(work: pl.DataFrame) -> int:
    """Length of the union of the rows' intervals, device by device, ns."""
    total = 0
    for rows in work.partition_by("device"):
        starts = rows["start_ns"].to_numpy()
        total += intervals.total(*intervals.merge(starts, starts + rows["dur_ns"].to_numpy()))
    return total
