"""What was compiled, what was copied, and what memory was taken, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from traceview.dashboards.views.table import NS_PER_MS, Show, Table, yes_no
from traceview.render.transfer_text import size

if TYPE_CHECKING:
    from traceview.recompile_report import RecompileReport
    from traceview.transfer_report import TransferReport


def compilations_table(result: RecompileReport) -> Table | None:
    """Every compilation, those after the warm-up first; ``None`` if none is recorded or the trace would not show it."""
    table = result.recompiles
    if table is None or not table.height:
        return None
    ordered = table.sort(pl.col("warmup").fill_null(value=False), "start_ns")
    frame = ordered.select(
        pl.col("what").cast(pl.String),
        pl.col("function").cast(pl.String).fill_null("not recorded"),
        pl.Series(
            "after warm-up", [yes_no(None if one is None else not one) for one in ordered["warmup"]], dtype=pl.String
        ),
        pl.Series("again", [yes_no(one) for one in ordered["recompiled"]], dtype=pl.String),
        pl.col("dur_ns").truediv(NS_PER_MS).alias("host ms"),
        pl.col("start_ns").truediv(NS_PER_MS).alias("at ms"),
        pl.col("step").cast(pl.Int64),
        pl.coalesce("reason", pl.lit("-")).alias("reason"),
        pl.coalesce("shapes", pl.lit("-")).alias("shapes"),
        pl.coalesce("compile_id", pl.lit("-")).alias("id"),
    )
    shows = {"function": Show.LONG, "host ms": Show.MS, "at ms": Show.MS, "reason": Show.LONG}
    return Table(frame, shows, ("again: another version of the same code existed before.",))


def copies_table(result: TransferReport) -> Table | None:
    """Copies by device, direction, name and size; ``None`` if none is recorded or the trace would not show it."""
    table = result.transfers
    if table is None or not table.height:
        return None
    names = {one.device: one.label for one in result.trace.devices}
    frame = table.select(
        pl.col("kind").cast(pl.String).alias("direction"),
        pl.Series("size each", [size(one) for one in table["bytes"]], dtype=pl.String),
        pl.col("count").cast(pl.Int64),
        pl.Series("in all", [size(one) for one in table["total_bytes"]], dtype=pl.String),
        pl.col("total_ns").truediv(NS_PER_MS).alias("total ms"),
        pl.col("exposed_ns").truediv(NS_PER_MS).alias("exposed ms"),
        pl.Series("every step", [yes_no(one) for one in table["repeated_each_step"]], dtype=pl.String),
        pl.col("per_step").alias("per step"),
        pl.Series("pageable", [yes_no(one) for one in table["pageable"]], dtype=pl.String),
        pl.col("blocked_ns").truediv(NS_PER_MS).alias("host held ms"),
        pl.Series(
            "device",
            ["host" if one is None else names.get(one, f"device {one}") for one in table["device"]],
            dtype=pl.String,
        ),
        pl.col("op").fill_null("-").alias("asked by"),
        pl.col("name"),
    )
    shows = {
        "count": Show.COUNT,
        "total ms": Show.MS,
        "exposed ms": Show.MS,
        "host held ms": Show.MS,
        "per step": Show.FEW,
        "name": Show.LONG,
    }
    remark = (
        "exposed: the device did nothing but copy. every step: as many in every step past the warm-up. host held: "
        "calls that returned only when their copy was done."
    )
    return Table(frame, shows, (remark,))


def allocations_table(result: TransferReport) -> Table | None:
    """Memory taken from the driver and given back; ``None`` if nothing is recorded."""
    table = result.allocations
    if not table.height:
        return None
    frame = table.select(
        pl.col("what").cast(pl.String),
        pl.col("count").cast(pl.Int64),
        pl.col("total_ns").truediv(NS_PER_MS).alias("host ms"),
        pl.Series("bytes", [size(one) for one in table["bytes"]], dtype=pl.String),
        pl.col("late_count").cast(pl.Int64).alias("after warm-up"),
        pl.col("late_ns").truediv(NS_PER_MS).alias("of it host ms"),
    )
    shows = {"count": Show.COUNT, "host ms": Show.MS, "after warm-up": Show.COUNT, "of it host ms": Show.MS}
    return Table(frame, shows)
