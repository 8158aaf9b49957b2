"""``traceview recompiles`` as text and Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from traceview.render.conditions import conditions, write_conditions, write_remarks
from traceview.render.grids import Grid, print_markdown, write_grid
from traceview.render.names import host_name
from traceview.render.notes import notes_grid
from traceview.render.page import Column, Page
from traceview.render.units import counted, duration, durations

if TYPE_CHECKING:
    from typing import TextIO

    from traceview.recompile_report import RecompileReport

_WIDTH: Final = 160
_FUNCTION_WIDTH: Final = 40


def recompile_sentence(result: RecompileReport) -> str:
    """How much was compiled after the warm-up, and what it cost."""
    table, late = result.recompiles, result.late
    if table is None or late is None:
        return "The trace does not show whether anything was compiled."
    if not table.height:
        return "No compilation is recorded in this window."
    spent = int(table["dur_ns"].sum())
    processes = table["process"].n_unique()
    everywhere = f" of {processes:,} processes together" if processes > 1 else ""
    everything = (
        f"{counted(table.height, 'compilation')} in the recorded window, {duration(spent)} of host time{everywhere}"
    )
    known = table["warmup"].null_count() < table.height
    if not known:
        text = f"{everything}; without profiler steps it is not known which are warm-up."
        again = f" {late.height:,} of them made a new version of code that had one."
        return text + again if late.height else text
    if not late.height:
        return f"{everything}, all of it in the warm-up."
    text = (
        f"{counted(late.height, 'compilation')} after the warm-up: {duration(int(late['dur_ns'].sum()))} of host time"
    )
    fallen = late.filter(pl.col("what") == "eager-fallback")["function"].n_unique()
    fallback = f" {counted(fallen, 'function')} fell back to uncompiled code." if fallen else ""
    return f"{text} ({everything}).{fallback}"


def write_recompiles(result: RecompileReport, page: Page, *, limit: int | None) -> None:
    """As text."""
    page.verdict(recompile_sentence(result))
    write_conditions(page, result.trace, result.import_report)
    for grid in _grids(result, limit):
        write_grid(page, grid)
    write_remarks(page, result.import_report)


def print_recompiles(result: RecompileReport, out: TextIO, *, limit: int | None) -> None:
    """As Markdown."""
    facts = conditions(result.trace, result.import_report)
    print_markdown(out, "traceview recompiles", recompile_sentence(result), facts, _grids(result, limit))


def _grids(result: RecompileReport, limit: int | None) -> list[Grid]:
    grids = [_functions(result), _events(result, limit), notes_grid(result.notes)]
    return [grid for grid in grids if grid is not None]


def _functions(result: RecompileReport) -> Grid | None:
    table = result.recompiles
    if table is None or table.height < 2:
        return None
    late = ~pl.col("warmup").fill_null(value=True)
    groups = (
        table.group_by("what", "function", maintain_order=True)
        .agg(
            count=pl.len(),
            ns=pl.col("dur_ns").sum(),
            late=late.sum(),
            late_ns=pl.col("dur_ns").filter(late).sum(),
        )
        .sort("late_ns", "ns", descending=True, maintain_order=True)
        .head(12)
    )
    rows = list(groups.iter_rows(named=True))
    unit, texts = durations(ns for row in rows for ns in (row["ns"], row["late_ns"]))
    cells = iter(texts)
    columns = (
        Column("function"),
        Column("what"),
        Column("count", number=True),
        Column(f"host {unit}", number=True),
        Column("after warm-up", number=True),
        Column(unit, number=True),
    )
    known = table["warmup"].null_count() < table.height
    out = []
    for row in rows:
        spent, later = next(cells), next(cells)
        out.append(
            [
                host_name(row["function"] or "not recorded", _FUNCTION_WIDTH),
                row["what"],
                f"{row['count']:,}",
                spent,
                f"{row['late']:,}" if known else "?",
                later if known else "?",
            ]
        )
    return Grid("By function", columns, out)


def _events(result: RecompileReport, limit: int | None) -> Grid | None:
    if result.recompiles is None or not result.recompiles.height:
        return None
    shown = result.recompiles if limit is None else result.recompiles.head(limit)
    rows = list(shown.iter_rows(named=True))
    unit, texts = durations(row["dur_ns"] for row in rows)
    columns = (
        Column("function, reason, shapes"),
        Column("at ms", number=True),
        Column(f"host {unit}", number=True),
        Column("step", number=True),
        Column("what"),
        Column("id"),
    )
    table = [
        [
            host_name(_about(row), _WIDTH),
            f"{row['start_ns'] / 1e6:,.3f}",
            text,
            ("-" if row["step"] is None else str(row["step"])) + (" warm-up" if row["warmup"] else ""),
            row["what"],
            row["compile_id"] or "-",
        ]
        for row, text in zip(rows, texts, strict=True)
    ]
    whole = len(rows) == result.recompiles.height
    heading = "Compilations" if whole else f"First {len(rows)} of {result.recompiles.height:,} compilations"
    return Grid(heading, columns, table, above=True)


def _about(row: dict[str, Any]) -> str:
    return ": ".join(part for part in (row["function"], row["reason"], row["shapes"]) if part) or "not recorded"
