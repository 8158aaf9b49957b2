"""A stream of text cut into blocks of whole events, and what stands before the first of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .block import BLANKS
from .head import EVENTS_KEY, LIST_ROOT, MAX_HEAD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .source import Source

BLOCK_BYTES: Final = 1 << 20
MAX_EVENT_BYTES: Final = 64 << 20
"""Text without any border between events beyond this is handed on as it is: no event is that long."""
_BORDER: Final = re.compile(
    rb'\}[\x00-\x20]*+,(?=[\x00-\x20]*+\{[\x00-\x20]*+"(?:ph|name|cat|pid|tid|ts|dur|id)"[\x00-\x20]*+:)'
)
_SEARCH_BACK: Final = 1 << 16


class BlockStream:
    """Cuts the text of a source.

    Attributes:
        head: Text before the events, set by :meth:`start`.
        list_root: The events are the whole document, not a key of it.
    """

    def __init__(self, source: Source, block_bytes: int = BLOCK_BYTES) -> None:
        self._source = source
        self._size = block_bytes
        self._carry = b""
        self.head = b""
        self.list_root = False

    def start(self) -> bool:
        """Read up to the first event; False if there is no list of events."""
        text = b""
        searched = 0
        while True:
            data = self._source.read(self._size)
            text += data
            if text and not text.isspace():
                match = LIST_ROOT.match(text)
                self.list_root = match is not None
                match = match or EVENTS_KEY.search(text, max(0, searched - 4096))
                if match is not None:
                    self.head, self._carry = text[: match.start()], text[match.end() :]
                    return True
            if not data or len(text) > MAX_HEAD_BYTES:
                self.head = text
                return False
            searched = len(text)

    def blocks(self) -> Iterator[bytes]:
        """Blocks of whole events, padded with :data:`~.block.BLANKS`, without the comma between two blocks.

        A border is where one object ends and one that begins like an event follows. In a file whose arguments hold
        lists of such objects it may be none; the block before it then ends in the middle of an event.
        """
        carry = self._carry
        self._carry = b""
        while True:
            data = self._source.read(max(self._size - len(carry), self._size // 2))
            if not data:
                if carry:
                    yield b"".join((BLANKS, carry, BLANKS))
                return
            cut = self._last_border(data, carry)
            if cut is None:
                carry += data
                if len(carry) > MAX_EVENT_BYTES:
                    yield b"".join((BLANKS, carry, BLANKS))
                    carry = b""
                continue
            # The comma at the cut is dropped.
            if cut >= 0:
                yield b"".join((BLANKS, carry, memoryview(data)[:cut], BLANKS))
                carry = data[cut + 1 :]
            else:
                yield b"".join((BLANKS, carry[:cut], BLANKS))
                carry = carry[cut + 1 :] + data if cut < -1 else data

    def _last_border(self, data: bytes, carry: bytes) -> int | None:
        """Position of the last border's comma, from the start of ``data`` (negative: in ``carry``); None if none."""
        end = len(data)
        start = end
        while start > 0:
            start = max(0, start - _SEARCH_BACK)
            last = None
            for match in _BORDER.finditer(data, start, end):
                last = match.end() - 1
            if last is not None:
                return last
        # A border that lies across the seam.
        seam = carry[-256:] + data[:256]
        last = None
        for match in _BORDER.finditer(seam):
            last = match.end() - 1
        return None if last is None else last - len(carry[-256:])
