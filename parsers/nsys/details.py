"""Rare arguments of events, read from the export only when somebody asks for them.

Most answers need times, names and owners. Grid sizes, registers and contexts are some twenty more columns of the
largest tables; reading them every time would double the cost of loading.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.errors import UnreadableTraceError
from traceview.parsers.nsys import tables as t

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.parsers.nsys.tables import Tables


@dataclass(frozen=True, slots=True)
class Argument:
    """One detail of one table: the columns it is made of, and how. ``text``: its values are JSON text."""

    columns: tuple[str, ...]
    value: pl.Expr
    text: bool = False


def _list_of(*names: str) -> pl.Expr:
    return pl.concat_str(pl.lit("["), pl.concat_str([pl.col(name) for name in names], separator=","), pl.lit("]"))


_GRID: Final = ("gridX", "gridY", "gridZ")
_BLOCK: Final = ("blockX", "blockY", "blockZ")

# The names are those of the PyTorch profiler where it records the same fact.
ARGUMENTS: Final[dict[str, dict[str, Argument]]] = {
    "grid": {t.KERNEL: Argument(_GRID, _list_of(*_GRID), text=True)},
    "block": {t.KERNEL: Argument(_BLOCK, _list_of(*_BLOCK), text=True)},
    "registers per thread": {t.KERNEL: Argument(("registersPerThread",), pl.col("registersPerThread"))},
    "shared memory": {
        t.KERNEL: Argument(
            ("staticSharedMemory", "dynamicSharedMemory"), pl.col("staticSharedMemory") + pl.col("dynamicSharedMemory")
        )
    },
    "local memory per thread": {t.KERNEL: Argument(("localMemoryPerThread",), pl.col("localMemoryPerThread"))},
    "context": {
        table: Argument(("contextId",), pl.col("contextId"))
        for table in (t.KERNEL, t.MEMCPY, t.MEMSET, t.SYNCHRONIZATION)
    },
    "graph node id": {
        table: Argument(("graphNodeId",), pl.col("graphNodeId"))
        for table in (t.KERNEL, t.MEMCPY, t.MEMSET, t.GRAPH_NODES)
    },
    "original graph node id": {t.GRAPH_NODES: Argument(("originalGraphNodeId",), pl.col("originalGraphNodeId"))},
    "graph exec id": {t.GRAPH_TRACE: Argument(("graphExecId",), pl.col("graphExecId"))},
    "return value": {t.RUNTIME: Argument(("returnValue",), pl.col("returnValue"))},
    "value": {t.MEMSET: Argument(("value",), pl.col("value"))},
    "event id": {t.SYNCHRONIZATION: Argument(("eventId",), pl.col("eventId"))},
    "nvtx color": {t.NVTX: Argument(("color",), pl.col("color"))},
    "nvtx category": {t.NVTX: Argument(("category",), pl.col("category"))},
}  # fmt: skip
"""Detail to the tables that have it."""

DOMAIN: Final = "nvtx domain"
"""JSON text: the name of the domain of a range outside the default domain."""
SEQUENCE: Final = "Sequence number"
"""The number that ties an operator to its backward, under the name that the PyTorch profiler uses."""


class LazyDetails(Mapping[str, pl.DataFrame]):
    """Details by name as frames of ``(row, value)``; each is read from the export when it is first asked for.

    Args:
        reopen: Opens the export again.
        path: The export; it must still be the one that was loaded.
        offsets: Table to the number of rows before it, as ``row`` counts them.
        available: Table to its columns.
        domains: ``(globalPid, domainId)`` to name.
    """

    def __init__(
        self,
        reopen: Callable[[], Tables],
        path: Path,
        offsets: dict[str, int],
        available: dict[str, set[str]],
        domains: dict[tuple[int, int], str],
    ) -> None:
        self._reopen, self._path, self._offsets, self._domains = reopen, path, offsets, domains
        self._stamp = _stamp(path)
        self._sources = {
            name: own
            for name, by_table in ARGUMENTS.items()
            if (own := {k: a for k, a in by_table.items() if k in offsets and available[k].issuperset(a.columns)})
        }
        nvtx_columns = available.get(t.NVTX, set()) if t.NVTX in offsets else set()
        self._names = [*self._sources]
        if domains:
            self._names.append(DOMAIN)
        if nvtx_columns & {"text", "textId"}:
            self._names.append(SEQUENCE)

    def __getitem__(self, key: str) -> pl.DataFrame:
        if key not in self._names:
            raise KeyError(key)
        if _stamp(self._path) != self._stamp:
            raise UnreadableTraceError(
                "file-changed",
                where=str(self._path),
                why=f"the file has changed since it was loaded, so {key!r} cannot be read from it.",
                next_step="Load it again.",
            )
        tables = self._reopen()
        try:
            if key == DOMAIN:
                return self._domain_names(tables)
            if key == SEQUENCE:
                return self._sequence(tables)
            frames = [self._argument(tables, table, one) for table, one in self._sources[key].items()]
        finally:
            tables.close()
        return pl.concat(frames)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _argument(self, tables: Tables, table: str, one: Argument) -> pl.DataFrame:
        frame = tables.read(table, one.columns).select(value=one.value)
        return self._rows(table, frame.cast({"value": pl.Categorical if one.text else pl.Int64}))

    def _rows(self, table: str, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_row_index("row", offset=self._offsets[table]).drop_nulls()

    def _domain_names(self, tables: Tables) -> pl.DataFrame:
        frame = tables.read(t.NVTX, ("globalTid", "domainId"))
        keys = frame.select(process=pl.col("globalTid") - pl.col("globalTid").mod(1 << 24), domain="domainId")
        known = pl.DataFrame(
            [(pid, domain, _json_text(name)) for (pid, domain), name in self._domains.items()],
            schema={"process": pl.Int64, "domain": pl.Int64, "value": pl.String},
            orient="row",
        )
        named = keys.join(known, on=["process", "domain"], how="left", maintain_order="left")
        return self._rows(t.NVTX, named.select(pl.col("value").cast(pl.Categorical)))

    def _sequence(self, tables: Tables) -> pl.DataFrame:
        frame = tables.read(t.NVTX, ("textId",), ("text",))
        if frame["text"].null_count() and frame["textId"].null_count() < frame.height:
            strings = tables.read(t.STRINGS, ("id",), ("value",)).unique("id", keep="first")
            frame = frame.join(strings, left_on="textId", right_on="id", how="left", maintain_order="left").select(
                text=pl.coalesce("text", "value")
            )
        number = pl.col("text").str.extract(r", seq = (\d+)").cast(pl.Int64, strict=False)
        return self._rows(t.NVTX, frame.select(value=number))


def _json_text(name: str) -> str:
    return json.dumps(name)


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
