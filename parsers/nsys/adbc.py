"""Reading tables through the SQLite driver of ADBC (Arrow), several times as fast as :mod:`sqlite3`.

It is an extra (``traceview[nsys]``). It takes the type of a column from the first rows, so whatever it cannot read to
the end, or reads as another type than asked for, is left to the plain reader: ``read`` then returns ``None``.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from traceview.parsers.nsys.tables import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

AVAILABLE: Final = importlib.util.find_spec("adbc_driver_sqlite") is not None

BATCH_ROWS: Final = 65_536


def read(uri: str, table: str, ints: Sequence[str], texts: Sequence[str]) -> pl.DataFrame | None:
    """Columns of a table, or ``None`` if this driver cannot deliver them as asked.

    Args:
        uri: As :func:`traceview.parsers.nsys.database.uri_of` returns it.
        table: Name of a plain table.
        ints: Columns to read as integers.
        texts: Columns to read as text.
    """
    import adbc_driver_sqlite.dbapi as driver

    # A text column that is null in the first rows would be taken for integers: a blank stands for null and is taken
    # back. The driver does not look whether text is UTF-8, so it delivers bytes, and Polars looks.
    columns = [quoted(name) for name in ints]
    columns += [f"ifnull(CAST({quoted(name)} AS BLOB), x'') AS {quoted(name)}" for name in texts]
    query = f"SELECT {', '.join(columns)} FROM {quoted(table)} NOT INDEXED"  # noqa: S608
    try:
        with driver.connect(uri) as connection:
            for pragma in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON"):
                _run(connection, f"PRAGMA {pragma}")
            # A cursor whose result was not read to the end must not be used again: it would lose a batch.
            frame = _run(connection, query)
    except (driver.Error, pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError, OSError):
        return None
    if any(frame.schema[name] != pl.Int64 for name in ints) or any(frame.schema[name] != pl.Binary for name in texts):
        return None
    try:
        decoded = frame.with_columns(pl.col(name).cast(pl.String) for name in texts)
    except pl.exceptions.ComputeError:  # not UTF-8
        return None
    return decoded.with_columns(pl.when(pl.col(name) != "").then(pl.col(name)) for name in texts)


def _run(connection: Any, query: str) -> pl.DataFrame:
    with connection.cursor() as cursor:
        cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)})
        cursor.execute(query)
        frame: pl.DataFrame = cursor.fetch_polars()
        return frame
