"""What the header of an SQLite file promises. Facts: SQLite file format, section 1.3 (sqlite.org/fileformat2.html)."""

from __future__ import annotations

from typing import Final

MAGIC: Final = b"SQLite format 3\x00"
"""What every SQLite file starts with."""

HEADER_BYTES: Final = 100


def missing_size(head: bytes, size: int) -> int | None:
    """The size that the header states, bytes, if the file is shorter than that: it was cut off.

    Args:
        head: At least the first :data:`HEADER_BYTES` bytes.
        size: Size of the file.
    """
    if len(head) < HEADER_BYTES or not head.startswith(MAGIC):
        return None
    page = int.from_bytes(head[16:18], "big")
    promised = int.from_bytes(head[28:32], "big") * (65536 if page == 1 else page)
    # The stated number of pages only holds if the change counter is the one it was written with.
    return promised if promised > size and head[24:28] == head[92:96] else None
