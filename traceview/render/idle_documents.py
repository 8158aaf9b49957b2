"""Gaps, recompiles and transfers as JSON: documents of their commands, and parts of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traceview.render.documents import import_part, notes_part, trace_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from traceview.gap_report import GapReport
    from traceview.recompile_report import RecompileReport
    from traceview.transfer_report import TransferReport


def rows_part(frame: pl.DataFrame | None) -> list[dict[str, Any]] | None:
    """A documented frame as a list of objects, one key per column; ``None`` stays ``None``."""
    return None if frame is None else frame.to_dicts()


def gaps_part(
    result: GapReport, *, limit: int | None = None, places: Sequence[str | None] = ()
) -> list[dict[str, Any]] | None:
    """``gaps``: the idle stretches, by falling recoverable time.

    Args:
        result: The answer.
        limit: At most so many.
        places: Where in the user's code the host was in each of the first stretches.
    """
    if result.gaps is None:
        return None
    rows = rows_part(result.gaps if limit is None else result.gaps.head(limit)) or []
    for at, row in enumerate(rows):
        row["where"] = places[at] if at < len(places) else None
    return rows


def recompiles_part(result: RecompileReport, *, limit: int | None = None) -> list[dict[str, Any]] | None:
    """``recompiles``: the compilations in the order of time."""
    table = result.recompiles
    return rows_part(table if table is None or limit is None else table.head(limit))


def transfers_part(result: TransferReport, *, limit: int | None = None) -> list[dict[str, Any]] | None:
    """``transfers``: copies by kind and size, longest in total first."""
    table = result.transfers
    return rows_part(table if table is None or limit is None else table.head(limit))


def gaps_document(result: GapReport, *, limit: int | None, places: Sequence[str | None]) -> dict[str, Any]:
    """``traceview.gaps/1``."""
    return {
        "schema": "traceview.gaps/1",
        "trace": trace_part(result.trace),
        "trust": result.trust,
        "span_ns": result.span_ns,
        "idle_ns": None if result.causes is None else result.idle_ns,
        "recoverable_ns": None if result.causes is None else result.recoverable_ns,
        "reliable": result.doubt is None,
        "causes": rows_part(result.causes),
        "distinct": None if result.gaps is None else result.gaps.height,
        "gaps": gaps_part(result, limit=limit, places=places),
        "devices": rows_part(result.devices),
        "regions": rows_part(result.regions),
        "waits": rows_part(result.waits),
        "import_report": import_part(result.import_report),
        "notes": notes_part(result.notes),
    }


def recompiles_document(result: RecompileReport, *, limit: int | None) -> dict[str, Any]:
    """``traceview.recompiles/1``."""
    late = result.late
    return {
        "schema": "traceview.recompiles/1",
        "trace": trace_part(result.trace),
        "trust": result.trust,
        "distinct": None if result.recompiles is None else result.recompiles.height,
        "after_warmup": None if late is None else late.height,
        "after_warmup_ns": None if late is None else int(late["dur_ns"].sum()),
        "recompiles": recompiles_part(result, limit=limit),
        "import_report": import_part(result.import_report),
        "notes": notes_part(result.notes),
    }


def transfers_document(result: TransferReport, *, limit: int | None) -> dict[str, Any]:
    """``traceview.transfers/1``."""
    return {
        "schema": "traceview.transfers/1",
        "trace": trace_part(result.trace),
        "trust": result.trust,
        "steady_steps": result.steady_steps,
        "distinct": None if result.transfers is None else result.transfers.height,
        "transfers": transfers_part(result, limit=limit),
        "allocations": rows_part(result.allocations),
        "import_report": import_part(result.import_report),
        "notes": notes_part(result.notes),
    }
