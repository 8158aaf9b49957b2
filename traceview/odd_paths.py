"""How a file whose name is not UTF-8 gets to Polars, which takes names as text only."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path


def is_utf8(path: Path) -> bool:
    """Whether the whole path can be written as UTF-8; POSIX allows any bytes in it."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def readable(path: Path) -> Path | BinaryIO:
    """What to give to Polars to read a file: its path, or, for a name that is not UTF-8, the open file.

    Polars keeps what it still reads; nobody else has to close the file.

    Raises:
        OSError: the file cannot be opened.
    """
    return path if is_utf8(path) else open(path, "rb")
