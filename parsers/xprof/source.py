"""The file behind a profile: mapped while it is read, opened again for what is only read when asked for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from typing import TYPE_CHECKING, Final

from traceview.errors import UnreadableTraceError

from .wire import text

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from .wire import Data

MOST_TEXT: Final = 1 << 20
"""A longer text is cut."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file whose content must not change between loading and asking.

    Attributes:
        path: Where it lies.
        size: Its size when it was loaded.
        modified_ns: Its time of modification when it was loaded.
        packed: Its decompressed content, if it was compressed; then nothing is read again.
    """

    path: Path
    size: int
    modified_ns: int
    packed: bytes | None = None

    @classmethod
    def at(cls, path: Path, packed: bytes | None = None) -> SourceFile:
        """The file as it is now."""
        status = os.stat(path)
        return cls(path, status.st_size, status.st_mtime_ns, packed)

    def open(self) -> Data:
        """The whole content.

        Raises:
            UnreadableTraceError: the file is gone or has changed since it was loaded.
        """
        if self.packed is not None:
            return self.packed
        try:
            with open(self.path, "rb") as file:
                status = os.fstat(file.fileno())
                if (status.st_size, status.st_mtime_ns) == (self.size, self.modified_ns):
                    return mmap(file.fileno(), 0, access=ACCESS_READ) if self.size else b""
        except OSError:
            pass
        raise UnreadableTraceError(
            "file-changed",
            where=str(self.path),
            why="the file has changed or gone since it was loaded.",
            next_step="Load it again.",
        )

    def read(self, position: int, length: int) -> bytes:
        """Some bytes of it."""
        return bytes(self.open()[position : position + length])

    def texts(self, positions: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> list[str]:
        """The text at each position."""
        data = self.open()
        met: dict[bytes, str] = {}
        found = []
        for position, length in zip(positions.tolist(), lengths.tolist(), strict=True):
            raw = bytes(data[position : position + min(length, MOST_TEXT)])
            if raw not in met:
                met[raw] = text(raw, 0, len(raw))
            found.append(met[raw])
        return found

    def unpacked(self, positions: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> list[str]:
        """The text that is packed with gzip at each position, cut at :data:`MOST_TEXT`; empty where it is damaged."""
        import zlib

        data = self.open()
        found = []
        for position, length in zip(positions.tolist(), lengths.tolist(), strict=True):
            try:
                raw = zlib.decompressobj(47).decompress(bytes(data[position : position + length]), MOST_TEXT)
            except zlib.error:
                raw = b""
            found.append(text(raw, 0, len(raw)))
        return found
