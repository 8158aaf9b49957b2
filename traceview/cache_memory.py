"""Which content a file had when it was last looked at: a file that did not change since needs no hashing again."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import time
from typing import TYPE_CHECKING, Final

from traceview.content import Hashing

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.content import Stamp

SETTLED_NS: Final = 2 * 10**9
"""A file that was written a moment ago can be written again without a change of its times: they move in steps."""
MOST_MEMOS: Final = 4096


class ContentMemory:
    """Memos, one file for each trace.

    Args:
        folder: Where they are; made by :meth:`make_folder`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make_folder(self) -> None:
        """Make the folder, for this user alone.

        Raises:
            OSError: it cannot be made.
        """
        self.folder.mkdir(exist_ok=True, mode=0o700)

    def recall(self, stamp: Stamp) -> str | None:
        """The digest of a trace that is as it was; ``None`` if it is not known."""
        try:
            files, digest = json.loads(self._memo(stamp).read_bytes())
        except (OSError, ValueError, TypeError, RecursionError):
            return None
        return digest if files == stamp.as_json() and isinstance(digest, str) else None

    def look(self, stamp: Stamp) -> str | None:
        """The digest of a trace, read now; ``None`` if it cannot be read."""
        digest = Hashing([stamp]).result()[0]
        if digest is not None:
            self.keep(stamp, digest)
        return digest

    def keep(self, stamp: Stamp, digest: str) -> None:
        """Remember a digest, unless the file is so new that it can change without showing it."""
        if time.time_ns() - stamp.newest_ns < SETTLED_NS:
            return
        place = self._memo(stamp)
        new = place.with_name(f"{place.name}.{secrets.token_hex(6)}")
        try:
            new.write_text(json.dumps([stamp.as_json(), digest]))
            os.replace(new, place)
        except OSError:
            removed(new)

    def forget(self) -> None:
        """Remove all memos."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def thin(self) -> None:
        """Remove the oldest of too many."""
        ages = []
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    ages.append((entry.stat().st_mtime, entry.name))  # noqa: PERF401 - what was seen so far counts
        except OSError:
            return  # Another process thins it.
        for _, name in sorted(ages)[: max(0, len(ages) - MOST_MEMOS)]:
            removed(self.folder / name)

    def _memo(self, stamp: Stamp) -> Path:
        # The path itself is not stored: it names people and machines.
        return self.folder / hashlib.sha256(os.fsencode(stamp.path)).hexdigest()[:32]


def removed(path: Path) -> bool:
    """Remove a file; whether that worked."""
    try:
        path.unlink()
    except OSError:
        return False  # In use (Windows), or gone already.
    return True
