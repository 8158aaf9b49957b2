"""``traceview transfers`` as text and Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from traceview.render.conditions import conditions, write_conditions, write_remarks
from traceview.render.grids import Grid, print_markdown, write_grid
from traceview.render.names import host_name
from traceview.render.notes import notes_grid
from traceview.render.page import Column, Page
from traceview.render.units import counted, duration, durations, together

if TYPE_CHECKING:
    from typing import TextIO

    from traceview.transfer_report import TransferReport

_COPY_WORDS: Final = (
    "per step: = as many in every step past the warm-up. exposed: the device did nothing but copy. block: calls that "
    "returned only when their copy was done. held: time that these held the host."
)
_OP_WIDTH: Final = 16
_SIZES: Final = (("GB", 10**9), ("MB", 10**6), ("kB", 10**3))


def size(octets: int | None) -> str:
    """``150.99 MB``; ``-`` for what is not recorded."""
    if octets is None:
        return "-"
    for unit, one in _SIZES:
        if octets >= one:
            return f"{octets / one:,.2f} {unit}"
    return f"{octets} B"


def transfer_sentence(result: TransferReport) -> str:
    """How much was copied, and what of it again in every step."""
    table = result.transfers
    if table is None:
        return "The trace does not show what was copied."
    if not table.height:
        return "Nothing was copied in the recorded window."
    kinds = (
        table.group_by("kind", maintain_order=True)
        .agg(
            pl.col("total_ns").sum(),
            pl.col("total_bytes").sum(),
            pl.col("count").sum(),
            unsized=pl.col("count").filter(pl.col("total_bytes").is_null()).sum(),
        )
        .sort("total_ns", descending=True, maintain_order=True)
    )
    parts = [
        f"{row['kind']} {row['count']:,} x, {_octets(row)} in {duration(row['total_ns'])}"
        for row in kinds.iter_rows(named=True)
    ]
    # Copies that the host recorded do not say which of its devices they were for.
    on_host = bool(table["device"].null_count())
    devices = max(table["device"].drop_nulls().n_unique(), result.trace.worked if on_host else 0)
    text = f"{counted(int(table['count'].sum()), 'copy', 'copies')}{together(devices)}: {'; '.join(parts)}."
    again = table.filter(pl.col("repeated_each_step").fill_null(value=False) & pl.col("bytes").is_not_null())
    if again.height:
        octets = float((again["bytes"] * again["per_step"]).sum())
        count = float(again["per_step"].sum())
        text += (
            f" The same sizes come back in every step{together(again['device'].n_unique())}: {count:,.0f} copies, "
            f"{size(round(octets))} per step."
        )
    return text


def _octets(row: dict[str, Any]) -> str:
    """How much was copied, as far as it is recorded."""
    if row["unsized"] == row["count"]:
        return "size not recorded,"
    return f"{'at least ' if row['unsized'] else ''}{size(row['total_bytes'])}"


def write_transfers(result: TransferReport, page: Page, *, limit: int | None) -> None:
    """As text."""
    page.verdict(transfer_sentence(result))
    write_conditions(page, result.trace, result.import_report)
    for grid in _grids(result, limit):
        write_grid(page, grid)
    write_remarks(page, result.import_report)


def print_transfers(result: TransferReport, out: TextIO, *, limit: int | None) -> None:
    """As Markdown."""
    facts = conditions(result.trace, result.import_report)
    print_markdown(out, "traceview transfers", transfer_sentence(result), facts, _grids(result, limit))


def _grids(result: TransferReport, limit: int | None) -> list[Grid]:
    grids = [_copies(result, limit), _allocations(result), notes_grid(result.notes)]
    return [grid for grid in grids if grid is not None]


def _copies(result: TransferReport, limit: int | None) -> Grid | None:
    if result.transfers is None or not result.transfers.height:
        return None
    shown = result.transfers if limit is None else result.transfers.head(limit)
    rows = list(shown.iter_rows(named=True))
    unit, texts = durations(
        ns
        for row in rows
        for ns in (row["total_ns"], row["exposed_ns"], row["blocked_ns"] if row["blocking"] else None)
    )
    cells = iter(texts)
    names = {one.device: one.label for one in result.trace.devices}
    several = len({(row["device"], row["process"] if row["device"] is None else None) for row in rows}) > 1
    columns = (
        *((Column("device"),) if several else ()),
        Column("copy"),
        Column("bytes", number=True),
        Column("count", number=True),
        Column("per step", number=True),
        Column(f"total {unit}", number=True),
        Column("exposed", number=True),
        Column("memory"),
        Column("block", number=True),
        Column("held", number=True),
        Column("asked by"),
    )
    table = []
    for row in rows:
        total, exposed, blocked = next(cells), next(cells), next(cells)
        table.append(
            [
                *((names.get(row["device"], result.hosts.get(row["process"], "host")),) if several else ()),
                row["kind"],
                size(row["bytes"]),
                f"{row['count']:,}",
                _per_step(row),
                total,
                exposed,
                {True: "pageable", False: "pinned", None: "-"}[row["pageable"]],
                "-" if row["blocking"] is None else f"{row['blocking']:,}",
                blocked,
                host_name(row["op"] or "-", _OP_WIDTH),
            ]
        )
    whole = len(rows) == result.transfers.height
    heading = "Copies" if whole else f"Top {len(rows)} of {result.transfers.height:,} kinds of copies"
    return Grid(
        heading,
        columns,
        table,
        (_COPY_WORDS,),
    )


def _per_step(row: dict[str, Any]) -> str:
    if row["per_step"] is None:
        return "-"
    number = f"{row['per_step']:,.1f}".removesuffix(".0")
    return f"= {number}" if row["repeated_each_step"] else number


def _allocations(result: TransferReport) -> Grid | None:
    if not result.allocations.height:
        return None
    rows = list(result.allocations.iter_rows(named=True))
    unit, texts = durations(ns for row in rows for ns in (row["total_ns"], row["late_ns"]))
    cells = iter(texts)
    columns = (
        Column("what"),
        Column("count", number=True),
        Column(f"host {unit}", number=True),
        Column("bytes", number=True),
        Column("after warm-up", number=True),
        Column(unit, number=True),
    )
    table = []
    for row in rows:
        total, late = next(cells), next(cells)
        late_count = "-" if row["late_count"] is None else f"{row['late_count']:,}"
        table.append([row["what"], f"{row['count']:,}", total, size(row["bytes"]), late_count, late])
    return Grid("Memory taken from the driver and given back", columns, table)
