"""The bytes of a trace file, decompressed as they are read, with every byte before a damage kept."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from traceview.errors import UnreadableTraceError

if TYPE_CHECKING:
    from pathlib import Path

GZIP_MAGIC: Final = b"\x1f\x8b"
BOM: Final = b"\xef\xbb\xbf"
MAX_RATIO: Final = 400
"""Traces shrink 10 to 60 times; deflate can reach 1032. More than this, beyond the free allowance, is a bomb."""
FREE_BYTES: Final = 256 << 20
"""Text that may be inflated whatever its ratio."""
MAX_TEXT_BYTES: Final = 64 << 30
"""No trace is inflated beyond this, so that a small file cannot keep a process busy for hours."""
_RAW_CHUNK: Final = 1 << 17


class Source:
    """A trace file as a stream of text bytes.

    Attributes:
        truncated: The gzip stream ended early or is damaged; set when the end is reached.
        damage: Why, in words, or ``""``.
        checksum_wrong: Everything was inflated, and some of it is not what was written.
        size: Size of the file on disk, bytes.
        consumed: Bytes of the file on disk read so far.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by close()
            self.size = os.fstat(self._file.fileno()).st_size
            self._pending = self._file.read(4)
        except OSError as error:
            raise UnreadableTraceError(
                "cannot-open",
                where=str(path),
                why=f"The file cannot be read: {error.strerror or error}.",
                next_step="Check the path and the permissions.",
            ) from None
        self._path = path
        self.truncated = False
        self.damage = ""
        self.checksum_wrong = False
        self.consumed = len(self._pending)
        self._given = 0
        self.compressed = self._pending.startswith(GZIP_MAGIC)
        if self.compressed:
            from isal import isal_zlib

            self._zlib: Any = isal_zlib
            self._zlib_error: Any = isal_zlib.error
            self._inflater = isal_zlib.decompressobj(31)
        self._inflated = 0
        self._at_start = True
        self._ended = False

    def read(self, size: int) -> bytes:
        """Up to about ``size`` bytes of text; ``b""`` at the end. A byte order mark at the start is passed over."""
        data = self._read_gzip(size) if self.compressed else self._read_plain(size)
        if self._at_start and data:
            self._at_start = False
            data = data.removeprefix(BOM)
        self._given += len(data)
        return data

    def why_damaged(self, *, whole: bool) -> str:
        """What is wrong with a file that does not simply break off, in words; ``""`` if it does, or nothing is.

        Args:
            whole: The text that was inflated is complete.
        """
        if self.checksum_wrong:
            return "its checksum is wrong, so something of what was read is wrong or missing"
        if self.truncated and whole:
            return "its text is whole, but the compressed stream around it has no proper end"
        if self.damage.startswith("the gzip stream is damaged"):
            return "what follows the damage could not be read"
        return ""

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read_raw(self, size: int) -> bytes:
        try:
            data = self._file.read(size)
        except OSError as error:
            self._stop(f"the file cannot be read further: {error.strerror or error}")
            return b""
        self.consumed += len(data)
        return data

    def _read_plain(self, size: int) -> bytes:
        parts, have = [], 0
        while have < size:
            data, self._pending = self._pending or self._read_raw(size - have), b""
            if not data:
                break
            parts.append(data)
            have += len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read_gzip(self, size: int) -> bytes:
        parts: list[bytes] = []
        have = 0
        while have < size and not self._ended:
            if self._inflater.eof:
                raw = self._inflater.unused_data or self._read_raw(_RAW_CHUNK)
                if len(raw) < 2:
                    raw += self._read_raw(_RAW_CHUNK)
                if not raw.startswith(GZIP_MAGIC):
                    # Zero padding after the last member is allowed (RFC 1952 readers ignore it).
                    if raw.strip(b"\0"):
                        self.damage = "other data follows the gzip stream"
                    self._ended = True
                    break
                self._inflater = self._zlib.decompressobj(31)
            else:
                raw = self._pending or self._inflater.unconsumed_tail or self._read_raw(_RAW_CHUNK)
                self._pending = b""
                if not raw:
                    self._stop("the gzip stream ends early")
                    break
            data = self._inflate(raw, size - have)
            self._check_bomb(have + len(data))
            parts.append(data)
            have += len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _inflate(self, raw: bytes, size: int) -> bytes:
        """Inflate up to ``size`` bytes; what was inflated before a damage is returned, too."""
        try:
            data: bytes = self._inflater.decompress(raw, size)
        except self._zlib_error as error:
            self._stop(f"the gzip stream is damaged: {error}")
            self.checksum_wrong = "checksum" in str(error).lower()
            return self._inflate_again(self._inflated)
        self._inflated += len(data)
        return data

    def _inflate_again(self, known: int) -> bytes:
        """What inflates beyond the first ``known`` bytes, in the chunk where inflating failed.

        The call that fails throws away what it had inflated, so the file is inflated a second time, the last chunk
        byte by byte.
        """
        last_chunk = max(0, self.consumed - _RAW_CHUNK)
        rest: list[bytes] = []
        done = 0
        inflater = self._zlib.decompressobj(31)
        self._file.seek(0)
        position = 0
        raw = b""
        try:
            while True:
                if inflater.eof:
                    raw, inflater = inflater.unused_data, self._zlib.decompressobj(31)
                raw = raw or inflater.unconsumed_tail
                if not raw:
                    raw = self._file.read(_RAW_CHUNK if position + _RAW_CHUNK <= last_chunk else 1)
                    position += len(raw)
                if not raw:
                    break
                data = inflater.decompress(raw, _RAW_CHUNK)
                raw = b""
                if done + len(data) > known:
                    rest.append(data[max(0, known - done) :])
                done += len(data)
        except (self._zlib_error, OSError):
            pass
        return b"".join(rest)

    def _check_bomb(self, fresh: int) -> None:
        given = self._given + fresh
        if given > MAX_TEXT_BYTES or given > max(FREE_BYTES, MAX_RATIO * self.consumed):
            raise UnreadableTraceError(
                "too-large",
                where=str(self._path),
                why=f"The file inflates to over {MAX_RATIO} times its size ({given >> 20} MiB so far); no trace does.",
                next_step="Check where the file comes from.",
            )

    def _stop(self, damage: str) -> None:
        self._ended = True
        self.truncated = True
        self.damage = damage
