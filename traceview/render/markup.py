"""XML and HTML for streams of any encoding: what says that it is UTF-8 must be no other bytes."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO


def write_markup(text: str, out: TextIO) -> None:
    """Write a document; where the stream is not UTF-8, characters outside ASCII become references (``&#181;``)."""
    out.write(text if _is_utf8(out) else text.encode("ascii", "xmlcharrefreplace").decode("ascii"))


def _is_utf8(out: TextIO) -> bool:
    encoding = getattr(out, "encoding", None)
    if encoding is None:  # Text that stays text.
        return True
    try:
        return codecs.lookup(encoding).name == "utf-8"
    except LookupError:
        return False
