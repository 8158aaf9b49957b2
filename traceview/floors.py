"""The least time that recorded work can take on its device: its roofline.

The floor of work is the longer of its arithmetic at the published dense peak and its compulsory bytes (each input read
once, each output written once) at the published bandwidth. It is known for matrix products and fused attention
whose shapes and dtypes are recorded, on devices whose peaks are published. Formulas: those of
``torch.utils.flop_counter``. Nobody reaches the floor; it bounds what tuning can win.
"""

from __future__ import annotations

import json
from math import prod
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from traceview.knowledge.devices import BYTES, DevicePeak, find_device, peak_flops

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.timeline import Timeline

Shape = list[int]

FLOORS: Final = {"id": pl.UInt32, "device_ns": pl.Int64, "floor_ns": pl.Int64}
"""Columns of :func:`work_floors`."""

_COUNTED_KINDS: Final = ("kernel", "xla_op")


def work_floors(timeline: Timeline) -> pl.DataFrame:
    """The device work whose floor is known.

    Returns:
        Columns ``id`` (of a piece of device work), ``device_ns`` and ``floor_ns``, at most that. The work of one op is
        one entry, at its first piece.
    """
    return pl.concat([_of_ops(timeline), _of_counted(timeline)])


def _of_counted(timeline: Timeline) -> pl.DataFrame:
    """Work whose operations or bytes are recorded, as XLA does. Its dtype is not, so the fastest peak bounds it."""
    work = timeline.device_work.filter(
        pl.col("op_id").is_null()
        & pl.col("kind").is_in(list(_COUNTED_KINDS))
        & (pl.col("flops").is_not_null() | pl.col("bytes").is_not_null())
    )
    rates = []
    for row in timeline.devices.iter_rows(named=True):
        peak = find_device(row["name"])
        if peak is not None and peak.peak_flops and peak.bandwidth:
            rates.append((row["device"], max(peak.peak_flops.values()), peak.bandwidth))
    if not work.height or not rates:
        return pl.DataFrame(schema=FLOORS)
    known = pl.DataFrame(rates, schema={"device": pl.UInt32, "peak": pl.Float64, "bandwidth": pl.Float64}, orient="row")
    floor = 1e9 * pl.max_horizontal(pl.col("flops") / pl.col("peak"), pl.col("bytes") / pl.col("bandwidth"))
    return (
        work.join(known, on="device", how="inner", maintain_order="left")
        .select("id", device_ns="dur_ns", floor_ns=pl.min_horizontal(floor.cast(pl.Int64), "dur_ns"))
        .cast(FLOORS)  # type: ignore[arg-type]
    )


def _of_ops(timeline: Timeline) -> pl.DataFrame:
    """Ops that launched device work and whose cost follows from their recorded shapes."""
    work = timeline.device_work.filter(pl.col("op_id").is_not_null())
    if not work.height or not timeline.inputs.height:
        return pl.DataFrame(schema=FLOORS)
    ops = (
        work.group_by("op_id", "device")
        .agg(pl.col("id").min(), device_ns=pl.col("dur_ns").sum())
        .sort("op_id", "device")
    )
    asked = timeline.events.select("name", "inputs")[ops["op_id"]]
    ops = ops.with_columns(op=asked["name"].cast(pl.String), inputs=asked["inputs"]).filter(
        pl.col("op").is_in(list(_COSTS)) & pl.col("inputs").is_not_null()
    )
    peaks = {row["device"]: find_device(row["name"]) for row in timeline.devices.iter_rows(named=True)}
    signatures = {row["inputs"]: (row["dims"], row["dtypes"]) for row in timeline.inputs.iter_rows(named=True)}
    kinds = ops.select("op", "inputs", "device").unique()
    known = [
        _floor_ns(op, *signatures.get(inputs, (None, None)), peaks.get(device))
        for op, inputs, device in kinds.iter_rows()
    ]
    floors = kinds.with_columns(floor_ns=pl.Series(known, dtype=pl.Int64)).filter(pl.col("floor_ns").is_not_null())
    return (
        ops.join(floors, on=["op", "inputs", "device"], how="inner", maintain_order="left")
        .with_columns(floor_ns=pl.min_horizontal("floor_ns", "device_ns"))
        .select(list(FLOORS))
        .cast(FLOORS)  # type: ignore[arg-type]
    )


def _floor_ns(op: str, dims: str | None, dtypes: str | None, device: DevicePeak | None) -> int | None:
    if device is None or dims is None or dtypes is None:
        return None
    try:
        shapes, names = json.loads(dims), json.loads(dtypes)
        dtype = next(name for name in names if name in BYTES)
        flops, elements = _COSTS[op](shapes)
    except (ValueError, TypeError, IndexError, StopIteration, KeyError):
        return None  # Not the shapes that the op takes: nothing is known.
    peak = peak_flops(device, dtype)
    if peak is None or device.bandwidth is None or flops <= 0:
        return None
    return int(1e9 * max(flops / peak, elements * BYTES[dtype] / device.bandwidth))


def _mm(shapes: list[Any], first: int = 0) -> tuple[int, int]:
    (m, k), (_, n) = shapes[first], shapes[first + 1]
    return 2 * m * n * k, m * k + k * n + m * n


def _addmm(shapes: list[Any]) -> tuple[int, int]:
    flops, elements = _mm(shapes, 1)
    return flops, elements + prod(shapes[0])


def _bmm(shapes: list[Any], first: int = 0) -> tuple[int, int]:
    (b, m, k), (_, _, n) = shapes[first], shapes[first + 1]
    return 2 * b * m * n * k, b * (m * k + k * n + m * n)


def _baddbmm(shapes: list[Any]) -> tuple[int, int]:
    flops, elements = _bmm(shapes, 1)
    return flops, elements + prod(shapes[0])


def _linear(shapes: list[Any]) -> tuple[int, int]:
    rows, (n, k) = prod(shapes[0][:-1]), shapes[1]
    return 2 * rows * n * k, rows * k + n * k + rows * n


def _attention(shapes: list[Any]) -> tuple[int, int]:
    """Forward, heads before the sequence. Causal attention computes half; whether it is causal is not asked here."""
    (b, h, q, d), (_, h_kv, k, _), (_, _, _, d_v) = shapes[0], shapes[1], shapes[2]
    # Half of the pairs: a floor must hold for causal attention, too.
    return b * h * q * k * (d + d_v), b * (q * h * d + k * h_kv * d + k * h_kv * d_v + q * h * d_v)


_COSTS: Final[dict[str, Callable[[list[Any]], tuple[int, int]]]] = {
    "aten::mm": _mm,
    "aten::addmm": _addmm,
    "aten::bmm": _bmm,
    "aten::baddbmm": _baddbmm,
    "aten::linear": _linear,
    "aten::_scaled_dot_product_flash_attention": _attention,
    "aten::_scaled_dot_product_efficient_attention": _attention,
    "aten::_scaled_dot_product_cudnn_attention": _attention,
}
"""Op to FLOP and compulsory elements, from the shapes of its arguments."""
