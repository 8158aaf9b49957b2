"""Is this database an export of Nsight Systems?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import quote

from traceview.parsers.nsys import tables
from traceview.parsers.nsys.database import connect
from traceview.parsers.nsys.tables import DATABASE_ERRORS

if TYPE_CHECKING:
    from pathlib import Path


def is_export(path: Path) -> bool:
    """Whether a database has tables that only Nsight Systems writes.

    Locks and logs beside the file do not matter here; whether it can be read is judged when it is.
    """
    try:
        connection = connect(f"file:{quote(os.fsencode(path.resolve()))}?mode=ro&immutable=1")
    except DATABASE_ERRORS:
        return False
    try:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except DATABASE_ERRORS:
        return False
    finally:
        connection.close()
    return tables.is_export(names)
