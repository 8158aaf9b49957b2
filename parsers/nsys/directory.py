"""Exports of one file per table: ``nsys export --type parquetdir`` and ``--type arrowdir``.

Tables and columns are the same as in an SQLite export. Only the asked columns are read: a column of raw payloads holds
text that is none, and nothing here needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.errors import UnreadableTraceError
from traceview.odd_paths import readable
from traceview.parsers.nsys import tables
from traceview.parsers.nsys.tables import EVENT_TABLES, completed, empty, newest
from traceview.timeline import Count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

PARQUET_SUFFIXES: Final = (".parquet",)
ARROW_SUFFIXES: Final = (".arrow", ".arrows", ".feather", ".ipc")

_PARQUET_MAGIC: Final = b"PAR1"
_ARROW_FILE_MAGIC: Final = b"ARROW1"

MOST_FILES: Final = 2048
"""Nsight Systems has some two hundred tables."""


def is_export(folder: Path) -> bool:
    """Whether a folder holds one file per table of Nsight Systems, told by the tables and by what the files are."""
    try:
        files = _table_files(folder)
    except OSError:
        return False
    real = {name for name, path in newest_files(files).items() if _kind_of(path)}
    return tables.is_export(real) or not real.isdisjoint(EVENT_TABLES)


def newest_files(files: dict[str, Path]) -> dict[str, Path]:
    """Plain table name to its file, see :func:`traceview.parsers.nsys.tables.newest`."""
    return {plain: files[name] for plain, name in newest(files).items()}


def _table_files(folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for entry in folder.iterdir():
        if entry.suffix.lower() in (*PARQUET_SUFFIXES, *ARROW_SUFFIXES) and entry.is_file():
            found[entry.stem] = entry
            if len(found) > MOST_FILES:
                return {}
    return found


def _kind_of(path: Path) -> str:
    """``"parquet"``, ``"arrow"`` (with a table of contents), ``"stream"`` (without), or nothing."""
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError:
        return ""
    if head.startswith(_PARQUET_MAGIC):
        return "parquet"
    if head.startswith(_ARROW_FILE_MAGIC):
        return "arrow"
    # A stream starts with the continuation mark of its first message. Arrow columnar format, IPC.
    return "stream" if head.startswith(b"\xff\xff\xff\xff") and path.suffix.lower() in ARROW_SUFFIXES else ""


class Directory:
    """The tables of a folder; see :class:`traceview.parsers.nsys.tables.Tables`.

    Args:
        path: The folder.

    Raises:
        UnreadableTraceError: the folder cannot be listed or holds no table.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts: dict[str, Count] = {}
        self.unread: dict[str, str] = {}
        self._schemas: dict[str, dict[str, pl.DataType]] = {}
        try:
            self._files = newest_files(_table_files(path))
        except OSError as error:
            raise UnreadableTraceError(
                "no-permission", where=str(path), why=f"the folder cannot be listed: {error.strerror}."
            ) from None

    def close(self) -> None:
        """Nothing is kept open."""

    def names(self) -> Sequence[str]:
        """See :class:`traceview.parsers.nsys.tables.Tables`."""
        return sorted({path.stem for path in self._files.values()})

    def _scan(self, table: str) -> pl.LazyFrame:
        path = self._files[table]
        kind = _kind_of(path)
        if kind == "parquet":
            return pl.scan_parquet(readable(path), glob=False)
        if kind == "arrow":
            return pl.scan_ipc(readable(path), glob=False)
        if kind == "stream":
            return pl.read_ipc_stream(readable(path)).lazy()
        raise pl.exceptions.ComputeError("it is neither Parquet nor Arrow")

    def _schema(self, table: str) -> dict[str, pl.DataType]:
        if table not in self._schemas:
            try:
                schema = dict(self._scan(table).collect_schema()) if table in self._files else {}
            except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
                self._lost(table, error)
                schema = {}
            self._schemas[table] = schema
        return self._schemas[table]

    def _lost(self, table: str, error: BaseException) -> None:
        if table in self.unread:
            return
        self.unread[table] = "its file is damaged"
        before = self.counts.get("lost-table", Count(0, f"{table}: {_first_line(error)}"))
        self.counts["lost-table"] = Count(before.n + 1, before.example)

    def columns(self, table: str) -> Sequence[str]:
        """See :class:`traceview.parsers.nsys.tables.Tables`."""
        return list(self._schema(table))

    def rows(self, table: str) -> int:
        """See :class:`traceview.parsers.nsys.tables.Tables`."""
        if not self._schema(table):
            return 0
        try:
            return int(self._scan(table).select(pl.len()).collect().item())
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return 0

    def read(self, table: str, ints: Iterable[str], texts: Iterable[str] = ()) -> pl.DataFrame:
        """See :class:`traceview.parsers.nsys.tables.Tables`."""
        ints, texts = list(ints), list(texts)
        schema = self._schema(table)
        wanted = [
            *(_as_int(name, schema[name]) for name in ints if name in schema),
            *(pl.col(name).cast(pl.String) for name in texts if name in schema),
        ]
        if not wanted:
            return empty(ints, texts)
        try:
            frame = self._scan(table).select(wanted).collect()
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            self._lost(table, error)
            return empty(ints, texts)
        self._count_bad_fields(table, frame, [name for name in ints if schema.get(name) == pl.String])
        return completed(frame, ints, texts)

    def _count_bad_fields(self, table: str, frame: pl.DataFrame, names: list[str]) -> None:
        """Texts where numbers belong: which of them were none."""
        if not names:
            return
        before = self._scan(table).select(pl.col(name).null_count() for name in names).collect()
        for name in names:
            lost = frame[name].null_count() - int(before[name].item())
            if lost:
                seen = self.counts.get("lost-field", Count(0, f"{table}.{name}: text where a number belongs"))
                self.counts["lost-field"] = Count(seen.n + lost, seen.example)


def _as_int(name: str, dtype: pl.DataType) -> pl.Expr:
    if dtype == pl.UInt64:
        # Ids of system processes use the highest bit; their pattern is kept, as SQLite does.
        return pl.col(name).reinterpret(signed=True)
    return pl.col(name).cast(pl.Int64, strict=False)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]
