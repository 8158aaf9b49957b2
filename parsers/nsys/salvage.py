"""Reading tables with :mod:`sqlite3` alone: slower, always there, and able to read around damage.

Values of another type than asked for are repaired where that is certain (``'12'``, ``12.0``) and else become null;
rows behind a damaged page are read from the other end of the table. Both are counted.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from traceview.errors import UnreadableTraceError
from traceview.parsers.nsys.tables import DATABASE_ERRORS, quoted
from traceview.timeline import Count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

BATCH_ROWS: Final = 100_000
_IN_WORDS: Final = {str: "a text", bytes: "a blob", float: "a fraction", int: "a number"}


def read(
    connection: sqlite3.Connection, table: str, ints: Sequence[str], texts: Sequence[str], expected: int, path: Path
) -> tuple[pl.DataFrame, dict[str, Count]]:
    """Columns of a table, and what was lost or repaired.

    Args:
        connection: Open for reading.
        table: Name of a plain table.
        ints: Columns to read as integers.
        texts: Columns to read as text.
        expected: Number of rows that the table should have.
        path: The file, for what is said of it.

    Raises:
        UnreadableTraceError: there should be rows and none can be read.
    """
    counts: dict[str, Count] = {}
    names = [*ints, *texts]
    selected = ", ".join(quoted(name) for name in names)
    source = f"FROM {quoted(table)} NOT INDEXED"
    parts, error = _scan(connection, table, f"SELECT {selected} {source}", ints, texts, counts)
    if error is not None:
        parts += _behind_the_damage(
            connection, table, selected, sum(part.height for part in parts), ints, texts, counts
        )
    schema = {**dict.fromkeys(ints, pl.Int64), **dict.fromkeys(texts, pl.String)}
    frame = pl.concat(parts) if parts else pl.DataFrame(schema=schema)
    if error is not None and not frame.height:
        raise UnreadableTraceError(
            "bad-database",
            where=f"{path}, table {table}",
            why=f"nothing of it can be read: {_words(error)}.",
            next_step="Export the report again: nsys export --type sqlite --force-overwrite true FILE.",
        )
    if error is not None or frame.height < expected:
        # At least one row is lost where a page is damaged, even if nobody can say how many there were.
        counts["lost-rows"] = Count(
            max(expected - frame.height, 1), f"{table}: {_words(error) if error else 'fewer rows than counted'}"
        )
    return frame, counts


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, sqlite3.Error) else "the database is damaged"


def _scan(
    connection: sqlite3.Connection,
    table: str,
    query: str,
    ints: Sequence[str],
    texts: Sequence[str],
    counts: dict[str, Count],
) -> tuple[list[pl.DataFrame], Exception | None]:
    """Batches of rows until the end or the first error. Rows come one by one, so that none before an error is lost."""
    parts: list[pl.DataFrame] = []
    rows: list[tuple[Any, ...]] = []
    failure: Exception | None = None
    try:
        for row in connection.execute(query):
            rows.append(row)
            if len(rows) == BATCH_ROWS:
                parts.append(_frame(table, rows, ints, texts, counts))
                rows = []
    except DATABASE_ERRORS as error:
        failure = error
    if rows:
        parts.append(_frame(table, rows, ints, texts, counts))
    return parts, failure


def _behind_the_damage(
    connection: sqlite3.Connection,
    table: str,
    selected: str,
    before: int,
    ints: Sequence[str],
    texts: Sequence[str],
    counts: dict[str, Count],
) -> list[pl.DataFrame]:
    """The rows after a damaged page, read backwards from the last row."""
    name = quoted(table)
    try:
        # The last row that was read: with it the two passes cannot meet and count a row twice.
        offset = max(before - 1, 0)
        query = f"SELECT rowid FROM {name} NOT INDEXED LIMIT 1 OFFSET {offset}"  # noqa: S608
        last = connection.execute(query).fetchone() if before else (-(2**63),)
    except DATABASE_ERRORS:
        return []
    if last is None:
        return []
    query = f"SELECT {selected} FROM {name} NOT INDEXED WHERE rowid > {int(last[0])} ORDER BY rowid DESC"  # noqa: S608
    parts, _ = _scan(connection, table, query, ints, texts, counts)
    return [part.reverse() for part in reversed(parts)]


def _frame(
    table: str, rows: list[tuple[Any, ...]], ints: Sequence[str], texts: Sequence[str], counts: dict[str, Count]
) -> pl.DataFrame:
    columns = list(zip(*rows, strict=True))
    whole = [_series(table, name, columns[at], pl.Int64, _whole, counts) for at, name in enumerate(ints)]
    words = [_series(table, name, columns[len(ints) + at], pl.String, _text, counts) for at, name in enumerate(texts)]
    return pl.DataFrame([*whole, *words])


def _series(
    where: str,
    name: str,
    values: Sequence[Any],
    dtype: type[pl.Int64 | pl.String],
    repair: Callable[[Any], int | str | None],
    counts: dict[str, Count],
) -> pl.Series:
    try:
        return pl.Series(name, values, dtype=dtype, strict=True)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        pass
    fixed = []
    wanted = "a text" if dtype == pl.String else "an integer"
    for value in values:
        good = value if value is None else repair(value)
        if value is not None and (good is None or type(good) is not type(value)):
            kind = "lost-field" if good is None else "repaired-field"
            # Never the value itself: it may be what a program wrote, or a part of its environment.
            seen = counts.get(
                kind, Count(0, f"{where}.{name}: {_IN_WORDS.get(type(value), 'a value')} instead of {wanted}")
            )
            counts[kind] = Count(seen.n + 1, seen.example)
        fixed.append(good)
    return pl.Series(name, fixed, dtype=dtype)


def _whole(value: Any) -> int | None:
    """The integer that a value certainly is."""
    if isinstance(value, float):
        value = int(value) if value.is_integer() else None
    elif isinstance(value, str):
        value = int(value) if value.strip().lstrip("-").isdecimal() and len(value) < 24 else None
    return value if isinstance(value, int) and -(2**63) <= value < 2**63 else None


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else str(value)
