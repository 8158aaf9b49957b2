"""The plain reader: one event after the other through Python's json. Slow, and the measure for the fast one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .block import decode_text
from .head import EVENTS_KEY, LIST_ROOT, is_trace_head, no_events_error, read_head, read_tail
from .pieces import Assembly, Rows
from .salvage import read_stretch
from .source import Source
from .tally import Tally

if TYPE_CHECKING:
    from pathlib import Path

    from .raw import RawTrace

_READ_BYTES = 1 << 24


def read_reference(path: Path) -> RawTrace:
    """Read a Kineto file; see :func:`traceview.parsers.kineto.reader.read`, which gives the same result."""
    source = Source(path)
    try:
        parts = []
        while part := source.read(_READ_BYTES):
            parts.append(part)
    finally:
        source.close()
    data = b"".join(parts)
    tally, rows, assembly = Tally(), Rows(), Assembly()
    closed = False
    list_root = LIST_ROOT.match(data)
    begin = list_root or EVENTS_KEY.search(data)
    if begin is None:
        head = read_head(decode_text(data, tally), tally)
        if not is_trace_head(head):
            raise no_events_error(path, empty=not data.strip())
        closed = data.rstrip().endswith(b"}")
        damage = source.why_damaged(whole=closed)
        return assembly.finish(head, tally, truncated=source.truncated or not closed, damage=damage)
    head = {} if list_root else read_head(decode_text(data[: begin.start()], tally), tally)
    text = decode_text(data[begin.end() :], tally)
    outcome = read_stretch(text, rows, tally, follows=False)
    if outcome.array_end is None:
        if outcome.open_event is not None:
            tally.add("lost-cut", text[outcome.open_event : outcome.open_event + 400])
    else:
        tail, closed = read_tail(text[outcome.array_end :], tally, list_root=list_root is not None)
        head.update(tail)
    assembly.append(rows.piece(), tally)
    damage = source.why_damaged(whole=closed)
    return assembly.finish(head, tally, truncated=source.truncated or not closed, damage=damage)
