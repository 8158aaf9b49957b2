"""Which bytes were copied: direction, kind of memory, cost, and what is copied again in every step.

Copies are the device's own records. A profile of JAX on a CPU has no such records; there the host's events of a
transfer stand for them. A trace of PyTorch without devices shows the copies that ops make in the host's memory.
"""

from __future__ import annotations

import json
from math import prod
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview import intervals
from traceview.busy import COPY_KINDS
from traceview.host_calls import innermost, named
from traceview.host_copies import only_on_host
from traceview.schema import Column, FrameSchema

if TYPE_CHECKING:
    from traceview.steady_state import SteadyState
    from traceview.timeline import Timeline

DIRECTION: Final = pl.Enum(["HtoD", "DtoH", "DtoD", "HtoH", "unknown"])

TRANSFERS: Final = FrameSchema(
    "transfers",
    "One row per device, direction, name and size of a copy, longest in total first.",
    (
        Column("kind", DIRECTION, "", "direction: host to device, device to host, within or between devices, host"),
        Column("name", pl.String, "", "copy as recorded, or the op that made it"),
        Column("device", pl.UInt32, "", "key into `devices`; null: recorded on the host", nullable=True),
        Column("process", pl.UInt32, "", "key into `processes`", nullable=True),
        Column("bytes", pl.Int64, "B", "bytes of each copy, when recorded", nullable=True),
        Column("count", pl.UInt32, "", "number of copies"),
        Column("total_bytes", pl.Int64, "B", "bytes of all of them", nullable=True),
        Column("total_ns", pl.Int64, "ns", "sum of their durations"),
        Column(
            "exposed_ns",
            pl.Int64,
            "ns",
            "time in which one ran and the device did nothing but copy; recorded on the host: no device worked",
            nullable=True,
        ),
        Column("pageable", pl.Boolean, "", "one side is pageable memory; null: not recorded", nullable=True),
        Column("blocking", pl.UInt32, "", "copies whose call returned only when they were done", nullable=True),
        Column("blocked_ns", pl.Int64, "ns", "time that these calls held the host", nullable=True),
        Column(
            "repeated_each_step",
            pl.Boolean,
            "",
            "as many in every step past the warm-up; null: fewer than two such steps are recorded",
            nullable=True,
        ),
        Column("per_step", pl.Float64, "", "copies per step past the warm-up", nullable=True),
        Column("op", pl.String, "", "op that asked for most of them", nullable=True),
        Column("event_id", pl.UInt32, "", "the longest of them"),
    ),
)

COPIES: Final = FrameSchema(
    "copies",
    "One row per copy, in the order of time.",
    (
        Column("id", pl.UInt32, "", "event id"),
        Column("start_ns", pl.Int64, "ns", "start"),
        Column("dur_ns", pl.Int64, "ns", "duration"),
        Column("kind", DIRECTION, "", "direction"),
        Column("name", pl.String, "", "copy as recorded, or the op that made it"),
        Column("device", pl.UInt32, "", "key into `devices`; null: recorded on the host", nullable=True),
        Column("process", pl.UInt32, "", "key into `processes`", nullable=True),
        Column("step", pl.Int32, "", "step", nullable=True),
        Column("bytes", pl.Int64, "B", "bytes", nullable=True),
        Column("pageable", pl.Boolean, "", "one side is pageable memory", nullable=True),
        Column("blocks", pl.Boolean, "", "its call returned only when it was done", nullable=True),
        Column("call_ns", pl.Int64, "ns", "duration of its call", nullable=True),
        Column("op_id", pl.UInt32, "", "op that asked for it", nullable=True),
    ),
)

# What names both sides comes before what names the target alone: "DeviceToDevice" is also something "ToDevice".
# CUDA's arrays ("HtoA") lie on the device.
_DIRECTIONS: Final = (
    ("DtoD", r"(?i)DtoD|D2D|PtoP|P2P|Device-to-Device|DeviceToDevice|Device -> Device|Peer|\b(AtoA|AtoD|DtoA)\b"),
    ("HtoH", r"(?i)HtoH|H2H|Host-to-Host|HostToHost|Host -> Host"),
    ("DtoH", r"(?i)DtoH|D2H|Device-to-Host|DeviceToHost|Device -> Host|FromDevice|FromOutfeed|\bAtoH\b"),
    ("HtoD", r"(?i)HtoD|H2D|Host-to-Device|HostToDevice|Host -> Device|DevicePut|ToDevice|ToInfeed|\bHtoA\b"),
)
_PAGEABLE: Final = r"(?i)pageable"
_PINNED: Final = r"(?i)pinned|managed"
_DONE_SLACK_NS: Final = 5_000
"""Clocks of host and device differ by a few microseconds."""

COPY_OP: Final = r"^aten::copy_$"
EXPLICIT_COPY: Final = r"^aten::(to|_to_copy|clone)$"
"""Ops that copy because the program says so; others (``contiguous``, ``index_put_``) copy as part of their work."""

_SIZES: Final = {
    "double": 8, "float": 4, "half": 2, "long": 8, "long int": 8, "int": 4, "short": 2, "char": 1, "signed char": 1,
    "unsigned char": 1, "byte": 1, "bool": 1, "c10::half": 2, "c10::bfloat16": 2, "bfloat16": 2,
    "c10::complex<float>": 8, "c10::complex<double>": 16, "c10::float8_e4m3fn": 1, "c10::float8_e5m2": 1,
}  # fmt: skip


def copies(timeline: Timeline) -> pl.DataFrame:
    """Every copy in a trace: the :data:`COPIES`."""
    found = _recorded(timeline)
    if not found.height and not timeline.device_work.height:
        found = _by_ops(timeline)
    return found.select(list(COPIES.dtypes)).sort("start_ns", "id")


def _recorded(timeline: Timeline) -> pl.DataFrame:
    """Copies that are events: of devices, and of a host that is its own device."""
    events = timeline.events
    rows = events.filter(pl.col("kind").is_in(list(COPY_KINDS)))
    # Where a device records its copies the events of the host are the same copies once more.
    if rows["device"].null_count() < rows.height:
        rows = rows.filter(pl.col("device").is_not_null())
    names = rows["name"].unique()
    known = pl.DataFrame({"name": names, "text": names.cast(pl.String)})
    known = known.with_columns(
        direction=_direction(),
        pageable=pl.when(pl.col("text").str.contains(_PAGEABLE))
        .then(pl.lit(True))
        .when(pl.col("text").str.contains(_PINNED))
        .then(pl.lit(False)),
    )
    call = rows["launch_id"]
    calls = events["name"].gather(call)
    by_call = pl.DataFrame({"name": calls.unique()}).with_columns(text=pl.col("name").cast(pl.String))
    by_call = by_call.select(call="name", asked=_direction())
    call_ns = events["dur_ns"].gather(call)
    returned = events["start_ns"].gather(call) + call_ns
    done = rows["start_ns"] + rows["dur_ns"]
    return (
        rows.with_columns(blocks=returned + _DONE_SLACK_NS >= done, call_ns=call_ns, call=calls)
        .drop("kind")
        .join(known, on="name", how="left", maintain_order="left")
        .join(by_call, on="call", how="left", maintain_order="left")
        # A blit kernel does not say where it copies to; the call that asked for it does (hipMemcpyDtoDAsync).
        .with_columns(kind=pl.coalesce("direction", "asked").fill_null(_UNKNOWN).cast(DIRECTION), name="text")
    )


_UNKNOWN: Final = "unknown"


def _direction() -> pl.Expr:
    """The direction that ``text`` names, null for none."""
    direction = pl.lit(None, pl.String)
    for kind, pattern in reversed(_DIRECTIONS):
        direction = pl.when(pl.col("text").str.contains(pattern)).then(pl.lit(kind)).otherwise(direction)
    return direction


def _by_ops(timeline: Timeline) -> pl.DataFrame:
    """Copies in the memory of the host, as ops make them."""
    rows = named(timeline, ("op",), COPY_OP)
    explicit = named(timeline, ("op",), EXPLICIT_COPY)
    around = innermost(timeline, rows["parent_id"], explicit["id"]) if rows.height else rows["id"]
    keys = rows["inputs"].drop_nulls().unique()
    sizes = {key: _first_bytes(timeline.inputs["dims"][key], timeline.inputs["dtypes"][key]) for key in keys}
    return rows.with_columns(
        bytes=rows["inputs"].replace_strict(sizes, default=None, return_dtype=pl.Int64)
        if sizes
        else pl.lit(None, pl.Int64),
        kind=pl.lit("HtoH").cast(DIRECTION),
        pageable=pl.lit(None, pl.Boolean),
        blocks=pl.lit(None, pl.Boolean),
        call_ns=pl.lit(None, pl.Int64),
        op_id=pl.Series(around).fill_null(rows["id"]),
    )


def _first_bytes(dims: str | None, dtypes: str | None) -> int | None:
    """Bytes of the first argument, the one that a copy writes to."""
    if dims is None or dtypes is None:
        return None
    try:
        shape, dtype = json.loads(dims)[0], json.loads(dtypes)[0]
        size = _SIZES.get(str(dtype).lower())
        # Numbers of a file are of any size: the product of a few may fit no column.
        whole = None if size is None else size * prod(int(one) for one in shape)
        return whole if whole is not None and 0 <= whole < 1 << 63 else None
    except (ValueError, IndexError, TypeError, OverflowError, RecursionError):
        return None


def transfers(timeline: Timeline, steady: SteadyState | None, rows: pl.DataFrame | None = None) -> pl.DataFrame:
    """Copies summed up: the :data:`TRANSFERS`.

    Args:
        timeline: With launches linked and steps marked.
        steady: The steps past the warm-up; ``None``: fewer than two are recorded.
        rows: The :func:`copies`, if they are at hand.
    """
    if rows is None:
        rows = copies(timeline)
    if not rows.height:
        return TRANSFERS.empty()
    by = ["kind", "name", "device", "process", "bytes"]
    rows = rows.with_columns(op=timeline.events["name"].gather(rows["op_id"]).cast(pl.String))
    numbers = rows.select(by).unique(maintain_order=True).with_row_index("group")
    numbered = rows.join(numbers, on=by, how="left", nulls_equal=True, maintain_order="left")
    table = numbered.group_by("group", *by, maintain_order=True).agg(
        count=pl.len(),
        total_bytes=pl.when(pl.col("bytes").is_not_null().any()).then(pl.col("bytes").sum()),
        total_ns=pl.col("dur_ns").sum(),
        pageable=pl.col("pageable").first(),
        blocking=pl.when(pl.col("blocks").is_not_null().any()).then(pl.col("blocks").sum()),
        blocked_ns=pl.when(pl.col("blocks").is_not_null().any()).then(pl.col("call_ns").filter("blocks").sum()),
        op=pl.col("op").drop_nulls().mode().sort().first(),
        event_id=pl.col("id").sort_by("dur_ns", descending=True).first(),
    )
    table = table.join(_exposed(timeline, numbered), on="group", how="left", maintain_order="left")
    table = table.join(_repeated(numbered, steady), on="group", how="left", maintain_order="left")
    enough = steady is not None and steady.steps.height >= FEWEST_STEPS
    repeated = pl.col("repeated_each_step").fill_null(value=False) if enough else pl.lit(None, pl.Boolean)
    return (
        table.with_columns(repeated_each_step=repeated)
        .select([pl.col(column.name).cast(column.dtype) for column in TRANSFERS.columns])
        .sort("total_ns", "name", "bytes", descending=[True, False, True])
    )


FEWEST_STEPS: Final = 2
"""What comes back must be seen to come back."""


def _exposed(timeline: Timeline, numbered: pl.DataFrame) -> pl.DataFrame:
    work = timeline.device_work.filter(~pl.col("kind").is_in(list(COPY_KINDS)))
    by_device = work.partition_by("device", as_dict=True)
    parts = []
    on_host = numbered["id"].is_in(only_on_host(timeline)["id"].implode())
    # What only the host recorded may be for any device: it is exposed while none of them works.
    hidden = numbered.with_columns(exposable=pl.col("device").is_not_null() | (on_host & bool(work.height)))
    for (device,), own in hidden.filter("exposable").group_by("device"):
        other = work if device is None else by_device.get((device,), work.clear())
        starts = other["start_ns"].to_numpy()
        cover = intervals.merge(starts, starts + other["dur_ns"].to_numpy())
        for (group,), rows in own.group_by("group"):
            begin = rows["start_ns"].to_numpy()
            alone = intervals.subtract((begin, begin + rows["dur_ns"].to_numpy()), cover)
            parts.append({"group": group, "exposed_ns": intervals.total(*alone)})
    return pl.DataFrame(parts, schema={"group": numbered.schema["group"], "exposed_ns": pl.Int64})


def _repeated(numbered: pl.DataFrame, steady: SteadyState | None) -> pl.DataFrame:
    if steady is None:
        return (
            numbered.select("group")
            .head(0)
            .with_columns(repeated_each_step=pl.lit(None, pl.Boolean), per_step=pl.lit(None, pl.Float64))
        )
    steps = steady.steps.group_by("process").agg(steps=pl.col("step").n_unique())
    # A device row belongs to the process that launched it; ranks of one program have their own steps.
    return (
        steady.within(numbered)
        .group_by("group", "process", "step")
        .agg(n=pl.len())
        .group_by("group", "process")
        .agg(seen=pl.len(), least=pl.col("n").min(), most=pl.col("n").max(), total=pl.col("n").sum())
        .join(steps, on="process", how="left")
        .select(
            "group",
            repeated_each_step=(pl.col("seen") == pl.col("steps")) & (pl.col("least") == pl.col("most")),
            per_step=pl.col("total") / pl.col("steps"),
        )
    )
