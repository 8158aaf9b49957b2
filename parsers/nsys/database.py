"""An SQLite export: opened read-only, never trusted, never modified.

The file may come from anywhere, so views, triggers and virtual tables are never touched, and only plain tables with
the columns that ``PRAGMA table_info`` lists are read. No journal, index or shared-memory file is left beside it.
"""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import polars as pl

from traceview.errors import UnreadableTraceError
from traceview.parsers.nsys import adbc, salvage
from traceview.parsers.nsys.tables import DATABASE_ERRORS, EVENT_TABLES, STRINGS, completed, empty, newest, quoted
from traceview.sqlite_header import HEADER_BYTES, missing_size
from traceview.timeline import Count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

MAGIC: Final = b"SQLite format 3\x00"

LONGEST_TEXT: Final = 64 * 1024 * 1024
"""Longest text or blob that is read, bytes; a longer one in a field that is a name is an attack or damage."""

LOCK_WAIT_S: Final = 2.0
"""How long to wait for a program that holds the file locked."""

_WAL_VERSION: Final = 2
"""Bytes 18 and 19 of a file in write-ahead mode. SQLite file format, section 1.3.3."""


def uri_of(path: Path) -> str:
    """The URI that opens a file so that neither it nor its folder is changed.

    Raises:
        UnreadableTraceError: the file is still being written: a journal or a write-ahead log lies beside it.
    """
    target = quote(os.fsencode(path.resolve()))
    for suffix, what in (("-journal", "a rollback journal"), ("-wal", "a write-ahead log")):
        beside = path.with_name(path.name + suffix)
        if not _has_content(beside):
            continue
        # Even where another program keeps the log open: to share its view would write to the shared memory beside it.
        raise UnreadableTraceError(
            "export-unfinished",
            where=str(path),
            why=f"{what} lies beside it ({beside.name}): a program is still writing it, or was stopped.",
            next_step="Let it finish, or export again: nsys export --type sqlite --force-overwrite true FILE.",
        )
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES)
    # Write-ahead mode cannot be opened without creating files; without a log there is nothing in them to miss.
    immutable = len(head) == HEADER_BYTES and head[18] == _WAL_VERSION
    return f"file:{target}?mode=ro" + ("&immutable=1" if immutable else "")


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


class Decoder:
    """Turns stored text into a string; damaged text must not stop the reader, and is counted."""

    def __init__(self) -> None:
        self.damaged = 0

    def __call__(self, raw: bytes) -> str:
        """The text of some stored bytes."""
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self.damaged += 1
            return raw.decode("utf-8", "replace")


def connect(uri: str, decoder: Decoder | None = None) -> sqlite3.Connection:
    """A connection that can only read plain data."""
    connection = sqlite3.connect(uri, uri=True, timeout=LOCK_WAIT_S, check_same_thread=False)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_TEXT)
        for pragma in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON", "mmap_size=0"):
            connection.execute(f"PRAGMA {pragma}")
        connection.text_factory = decoder or Decoder()
    except BaseException:
        connection.close()
        raise
    return connection


class Database:
    """The tables of an SQLite export; see :class:`traceview.parsers.nsys.tables.Tables`.

    Args:
        path: The file.
        engine: ``"adbc"``, ``"sqlite3"``, or ``None`` for the fastest that is installed.

    Raises:
        UnreadableTraceError: the file cannot be opened as a database; the message says why.
    """

    def __init__(self, path: Path, engine: str | None = None) -> None:
        self.path = path
        self.counts: dict[str, Count] = {}
        self.unread: dict[str, str] = {}
        self._adbc = adbc.AVAILABLE if engine is None else engine == "adbc"
        self._uri = uri_of(path)
        self._decoder = Decoder()
        try:
            self._connection = self._connected()
            self._tables = newest(self._plain_tables())
            self.unread = self._not_plain()
        except DATABASE_ERRORS as error:
            raise self._refusal(error) from None
        self._columns: dict[str, list[str]] = {}
        self._rows: dict[str, int] = {}

    def _connected(self) -> sqlite3.Connection:
        try:
            connection = connect(self._uri, self._decoder)
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            # A file system without locks (NFS, Lustre) cannot say whether somebody writes; reading is still possible.
            if "immutable" in self._uri or "lock" in str(error):
                raise
            if not any(word in str(error) for word in ("disk I/O", "unable to open")):
                raise
            self._uri += "&immutable=1"
            connection = connect(self._uri, self._decoder)
        return connection

    def _plain_tables(self) -> list[str]:
        rows = self._connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        return [
            name
            for name, sql in rows
            if isinstance(name, str) and isinstance(sql, str) and not sql.upper().startswith("CREATE VIRTUAL")
        ]

    def _not_plain(self) -> dict[str, str]:
        """Views and virtual tables in the place of a table: whoever wrote them decides what reading them does."""
        query = "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')"
        names = {name: sort for name, sort in self._connection.execute(query) if isinstance(name, str)}
        found = {
            plain: "it is a view" if names[name] == "view" else "it is a virtual table"
            for plain, name in newest(names).items()
            if plain in (*EVENT_TABLES, STRINGS) and plain not in self._tables
        }
        if found:
            self.counts["lost-table"] = Count(len(found), ", ".join(sorted(found)))
        return found

    def _refusal(self, error: Exception) -> UnreadableTraceError:
        text = str(error) if isinstance(error, sqlite3.Error) else "its description of tables is damaged"
        again = "Export it again: nsys export --type sqlite --force-overwrite true FILE."
        if "locked" in text:
            return UnreadableTraceError(
                "locked",
                where=str(self.path),
                why="another program holds the database locked.",
                next_step="Wait until the export has finished, or copy the file and give the copy.",
            )
        cut = _promised_size(self.path)
        if cut:
            why = f"the database is cut off: its header promises {cut[0]:,} bytes, the file has {cut[1]:,}."
        else:
            why = f"the database cannot be read: {text}."
        return UnreadableTraceError("bad-database", where=str(self.path), why=why, next_step=again)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def names(self) -> Sequence[str]:
        """See :class:`traceview.parsers.nsys.tables.Tables`."""
        return sorted(set(self._tables.values()))

    def columns(self, table: str) -> Sequence[str]:
        """See :class:`traceview.parsers.nsys.tables.Tables`."""
        if table not in self._columns:
            try:
                found = self._connection.execute(f"PRAGMA table_info({quoted(self._tables.get(table, table))})")
                # Generated columns are not in this list: they are expressions of whoever wrote the file.
                self._columns[table] = [row[1] for row in found] if table in self._tables else []
            except DATABASE_ERRORS:
                self._columns[table] = []
        return self._columns[table]

    def rows(self, table: str) -> int:
        """See :class:`traceview.parsers.nsys.tables.Tables`; of a damaged table the number that its last row states."""
        if table not in self._rows:
            self._rows[table] = self._counted(table) if self.columns(table) else 0
        return self._rows[table]

    def _counted(self, table: str) -> int:
        name = quoted(self._tables[table])
        for query in (f"SELECT count(*) FROM {name}", f"SELECT max(rowid) FROM {name}"):  # noqa: S608
            try:
                return int(self._connection.execute(query).fetchone()[0] or 0)
            except (*DATABASE_ERRORS, TypeError, ValueError):
                continue
        return 0

    def read(self, table: str, ints: Iterable[str], texts: Iterable[str] = ()) -> pl.DataFrame:
        """See :class:`traceview.parsers.nsys.tables.Tables`."""
        ints, texts = list(ints), list(texts)
        have = self.columns(table)
        own_ints, own_texts = [c for c in ints if c in have], [c for c in texts if c in have]
        if not own_ints and not own_texts:
            return empty(ints, texts)
        name = self._tables[table]
        expected = self.rows(table)
        frame = None
        if self._adbc and expected:
            frame = adbc.read(self._uri, name, own_ints, own_texts)
            if frame is not None and frame.height != expected:
                frame = None
        if frame is None:
            self._decoder.damaged = 0
            frame, counts = salvage.read(self._connection, name, own_ints, own_texts, expected, self.path)
            if self._decoder.damaged:
                counts["repaired-text"] = Count(self._decoder.damaged, _place_of_damage(name, frame, own_texts))
            for kind, count in counts.items():
                before = self.counts.get(kind)
                self.counts[kind] = Count(before.n + count.n, before.example) if before else count
        return completed(frame, ints, texts)


def _place_of_damage(table: str, frame: pl.DataFrame, texts: Sequence[str]) -> str:
    """Where the first repaired text is. Not the text: it may be what a program wrote, or a part of its environment."""
    for name in texts:
        marked = frame.filter(pl.col(name).str.contains("\ufffd", literal=True))
        if marked.height:
            place = f", id {marked['id'][0]}" if "id" in frame.columns and marked["id"][0] is not None else ""
            return f"{table}.{name}{place}"
    return table


def _promised_size(path: Path) -> tuple[int, int] | None:
    """Size that the header of a database states and size that the file has, if the file is shorter."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            promised = missing_size(file.read(HEADER_BYTES), size)
    except OSError:
        return None
    return None if promised is None else (promised, size)
