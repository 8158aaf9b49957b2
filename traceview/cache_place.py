"""Where the cache of this user is, and how large it may become: settings of the environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from traceview.errors import UsageError

FOLDER_VARIABLE: Final = "TRACEVIEW_CACHE_DIR"
OFF_VARIABLE: Final = "TRACEVIEW_NO_CACHE"
LIMIT_VARIABLE: Final = "TRACEVIEW_CACHE_LIMIT_MB"

LIMIT_BYTES: Final = 2 << 30


def user_folder() -> Path:
    """Where the cache of this user is: ``TRACEVIEW_CACHE_DIR``, else the place for caches of this system.

    Raises:
        UsageError: this user has no home folder, and the variable names no other place.
    """
    if given := os.environ.get(FOLDER_VARIABLE):
        return Path(given)
    import platformdirs

    try:
        folder = platformdirs.user_cache_path("traceview", appauthor=False) / "timelines"
    except RuntimeError:  # Older releases give `~/.cache` back as it is.
        folder = Path()
    if not folder.is_absolute():
        raise UsageError(
            "no-home",
            where="cache",
            why="this user has no home folder, so nothing can be cached.",
            next_step=f"{FOLDER_VARIABLE} names another place, {OFF_VARIABLE}=1 turns the cache off.",
        )
    return folder


def user_limit() -> int:
    """How large the cache of this user may become, bytes.

    Raises:
        UsageError: ``TRACEVIEW_CACHE_LIMIT_MB`` is no number.
    """
    text = os.environ.get(LIMIT_VARIABLE, "")
    if not text:
        return LIMIT_BYTES
    if not text.isdecimal() or len(text) > 12:
        raise UsageError(
            "bad-limit", where=LIMIT_VARIABLE, why=f"{text!r} is not a whole number of megabytes.",
            next_step="Give one such as 500.",
        )  # fmt: skip
    return int(text) * 1_000_000
