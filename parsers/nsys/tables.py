"""What every source of an Nsight Systems export offers: tables by name, columns that were probed, frames of them.

A source never has to hold a table or a column: exports create tables only when they have rows, and each version adds
and removes columns. What is absent is read as null, and ``columns`` says that it is absent.
"""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, Final, Protocol

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from traceview.timeline import Count

KERNEL: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
MEMCPY: Final = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET: Final = "CUPTI_ACTIVITY_KIND_MEMSET"
SYNCHRONIZATION: Final = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
GRAPH_TRACE: Final = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
CUDA_EVENT: Final = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
RUNTIME: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
CUPTI_OVERHEAD: Final = "CUPTI_ACTIVITY_KIND_OVERHEAD"
PROFILER_OVERHEAD: Final = "PROFILER_OVERHEAD"
NVTX: Final = "NVTX_EVENTS"
OSRT: Final = "OSRT_API"
CUBLAS: Final = "CUBLAS_EVENTS"
CUDNN: Final = "CUDNN_EVENTS"
JIT: Final = "CUPTI_ACTIVITY_KIND_JIT"
HOST_CALLBACK: Final = "CUDA_HOST_CALLBACK"
MPI: Final = ("MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS")
UCP: Final = ("UCP_SUBMIT_EVENTS", "UCP_PROGRESS_EVENTS", "UCP_EVENTS")
GRAPH_NODES: Final = "CUDA_GRAPH_NODE_EVENTS"
STRINGS: Final = "StringIds"

EVENT_TABLES: Final = (
    KERNEL, MEMCPY, MEMSET, GRAPH_TRACE, SYNCHRONIZATION, CUDA_EVENT, RUNTIME, CUPTI_OVERHEAD, PROFILER_OVERHEAD, NVTX,
    OSRT, CUBLAS, CUDNN, JIT, HOST_CALLBACK, *MPI, *UCP, GRAPH_NODES,
)  # fmt: skip
"""The tables whose rows become events. Waits come after the work, which says what devices a process used."""

NAME_IDS: Final = ("demangledName", "shortName", "mangledName", "nameId", "textId")
"""Columns of events and threads that hold ids of :data:`STRINGS`."""

WORK_TABLES: Final = (KERNEL, MEMCPY, MEMSET, GRAPH_TRACE)
"""The tables whose rows keep a device busy."""

MARKS: Final = frozenset(
    {STRINGS, "META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV", NVTX}
)
"""A source that has one of these tables is an export of Nsight Systems, see :func:`is_export`."""


DATABASE_ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)
"""What reading a damaged database raises: SQLite quotes damaged text in its messages, which Python cannot decode."""


class Tables(Protocol):
    """The tables of one export."""

    path: Path
    counts: dict[str, Count]
    """What reading skipped, repaired or doubted, by kind."""

    unread: dict[str, str]
    """Plain names of tables that are there and cannot be read, each with the reason in a few words."""

    def close(self) -> None:
        """Let go of the export."""

    def names(self) -> Sequence[str]:
        """The names of all tables, as written in the export."""

    def columns(self, table: str) -> Sequence[str]:
        """The columns of a table; empty if there is no such table."""

    def rows(self, table: str) -> int:
        """Number of rows of a table; 0 if there is no such table."""

    def read(self, table: str, ints: Iterable[str], texts: Iterable[str] = ()) -> pl.DataFrame:
        """Columns of a table in the order of its rows: ``ints`` as Int64, ``texts`` as String, null where absent.

        Raises:
            UnreadableTraceError: the table is there and nothing of it can be read.
        """


def is_export(names: Iterable[str]) -> bool:
    """Whether tables of these names are an export of Nsight Systems.

    ``StringIds`` is too common a name to say so alone: only beside a table of events does it count.
    """
    plain = set(newest(names))
    return bool(plain & (MARKS - {STRINGS})) or (STRINGS in plain and not plain.isdisjoint(EVENT_TABLES))


def quoted(name: str) -> str:
    """An SQL identifier. ``end`` is a keyword, and a hostile name may hold anything."""
    return '"' + name.replace('"', '""') + '"'


def newest(names: Iterable[str]) -> dict[str, str]:
    """Plain table name to the name in the export: of ``T``, ``T_V2`` and ``T_V3`` the highest number wins.

    Tables with such a suffix were reported by readers of newer exports (GindaChen/nsys-ai, issue 294).
    """
    best: dict[str, tuple[int, str]] = {}
    for name in names:
        match = re.fullmatch(r"(.+?)(?:_V(\d{1,3}))?", name)
        if match:
            rank = (int(match[2] or 1), name)
            best[match[1]] = max(best.get(match[1], rank), rank)
            best.setdefault(name, rank)
    return {plain: name for plain, (_, name) in best.items()}


def completed(frame: pl.DataFrame, ints: Iterable[str], texts: Iterable[str]) -> pl.DataFrame:
    """The frame with every asked column in its dtype and in the order asked, null where it was absent."""
    return frame.select(
        *(pl.col(name) if name in frame.columns else pl.lit(None, pl.Int64).alias(name) for name in ints),
        *(pl.col(name) if name in frame.columns else pl.lit(None, pl.String).alias(name) for name in texts),
    )


def empty(ints: Iterable[str], texts: Iterable[str]) -> pl.DataFrame:
    """A frame of these columns without rows."""
    return pl.DataFrame(schema={**dict.fromkeys(ints, pl.Int64), **dict.fromkeys(texts, pl.String)})
