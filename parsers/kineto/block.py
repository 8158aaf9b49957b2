"""A block of events: columns for the events that are plain, the slow lane for the stretches that are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from .columns import Columns, Knowledge, read_columns
from .numbers import PAD
from .pieces import LABELLED_COLUMNS, NUMBER_COLUMNS, TEXT_COLUMNS, Piece, Rows, interleave, narrow
from .raw import LABEL_BASE
from .salvage import read_stretch
from .structure import OddBlockError, Structure, find_structure
from .tally import Tally

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

BLANKS: Final = b" " * PAD


@dataclass(slots=True)
class BlockResult:
    """What a block held.

    Attributes:
        piece: Its events.
        tally: What had to be repaired or given up.
        tail: The text from the ``]`` on that ends the array of events, or None if the block does not hold it.
        open_text: The text of an event that the block ends in the middle of, or ``""``.
    """

    piece: Piece
    tally: Tally
    tail: str | None = None
    open_text: str = ""


def decode_text(data: bytes, tally: Tally) -> str:
    """UTF-8 text, with what is not UTF-8 replaced and counted."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        text = data.decode(errors="replace")
        example = data[max(0, error.start - 40) : error.start + 40].decode(errors="replace")
        tally.add("repaired-utf8", example, text.count("\ufffd") - data.count(b"\xef\xbf\xbd"))
        return text


def read_block(block: bytes, knowledge: Knowledge) -> BlockResult:
    """Read a block.

    Args:
        block: Events with the commas between them, from the ``{`` of the first one on, with :data:`BLANKS` before
            and behind.
        knowledge: What earlier blocks of the file taught.
    """
    try:
        found = find_structure(block)
        mark_undecodable(block, found)
        columns = read_columns(sanitised(block, found), found, knowledge)
    except (OddBlockError, IndexError):
        return _slow_block(block)
    odd = columns.odd
    rest = block[found.array_end : len(block) - PAD]
    rest_is_blank = not rest.strip(b"\x00\t\n\r ")
    if rest_is_blank and not odd.any():
        tally = Tally()
        return BlockResult(_piece(columns, None, tally), tally)
    return _mixed_block(block, found, columns, rest_is_blank=rest_is_blank)


def mark_undecodable(block: bytes, found: Structure) -> None:
    """Make events odd that hold bytes which are not UTF-8."""
    if block.isascii():
        return
    try:
        block.decode()
        return
    except UnicodeDecodeError:
        pass
    high = np.flatnonzero(found.text > 127)
    for event in np.unique(np.searchsorted(found.start, high, side="right") - 1).tolist():
        event = max(event, 0)
        if event >= len(found.odd):
            return
        end = int(found.start[event + 1]) if event + 1 < len(found.start) else len(block)
        begin = int(found.start[event]) if event else 0
        try:
            block[begin:end].decode()
        except UnicodeDecodeError:
            found.odd[event : event + 2] = True


def sanitised(block: bytes, found: Structure) -> bytes:
    """The block with the bytes above 127 of odd events overwritten, so that it is UTF-8; positions stay."""
    try:
        block.decode()
        return block
    except UnicodeDecodeError:
        text = found.text.copy()
        text[text > 127] = ord("?")
        keep = np.zeros(len(text), np.bool_)
        for event in np.flatnonzero(~found.odd).tolist():
            keep[found.start[event] : found.stop[event] + 1] = True
        text[keep] = found.text[keep]
        return text.tobytes()


def _slow_block(block: bytes) -> BlockResult:
    tally, rows = Tally(), Rows()
    text = decode_text(block[PAD : len(block) - PAD], tally)
    outcome = read_stretch(text, rows, tally, follows=False)
    result = BlockResult(rows.piece(), tally)
    if outcome.array_end is not None:
        result.tail = text[outcome.array_end :]
    if outcome.open_event is not None:
        result.open_text = text[outcome.open_event :]
    return result


def _mixed_block(block: bytes, found: Structure, columns: Columns, *, rest_is_blank: bool) -> BlockResult:
    """Plain events by column, the stretches between them event by event, put together in file order."""
    odd = columns.odd
    count = len(odd)
    tally, rows = Tally(), Rows()
    result = BlockResult(rows.piece(), tally)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], odd, [False])).astype(np.int8)))
    runs = [(int(first), int(last)) for first, last in zip(edges[0::2], edges[1::2], strict=True)]
    if not rest_is_blank and (not runs or runs[-1][1] != count):
        runs.append((count, count))
    inserted = np.zeros(count + 1, np.int64)
    slow_at: list[NDArray[np.int64]] = []
    good_before = np.concatenate(([0], np.cumsum(~odd)))
    for first, last in runs:
        begin = int(found.stop[first - 1]) + 1 if first else PAD
        is_last = last == count
        end = len(block) - PAD if is_last else int(found.start[last])
        had = len(rows)
        _slow_stretch(decode_text(block[begin:end], tally), rows, tally, result, follows=first > 0, is_last=is_last)
        fresh = len(rows) - had
        slow_at.append(good_before[first] + had + np.arange(fresh))
        inserted[last] += fresh
    good = ~odd
    fast = _piece(columns, good, tally)
    shift = np.cumsum(inserted)[:count][good]
    result.piece = interleave(
        fast,
        np.arange(fast.height) + shift,
        rows.piece(),
        np.concatenate(slow_at) if slow_at else np.empty(0, np.int64),
    )
    return result


def _slow_stretch(text: str, rows: Rows, tally: Tally, result: BlockResult, *, follows: bool, is_last: bool) -> None:
    while True:
        outcome = read_stretch(text, rows, tally, follows=follows)
        if outcome.array_end is not None:
            if is_last:
                result.tail = text[outcome.array_end :]
                return
            # Plain events follow, so this bracket did not end anything.
            tally.add("lost-text", text[outcome.array_end : outcome.array_end + 400])
            text = text[outcome.array_end + 1 :]
            follows = False
            continue
        if outcome.open_event is not None:
            if is_last:
                result.open_text = text[outcome.open_event :]
            else:
                tally.add("lost-event", text[outcome.open_event : outcome.open_event + 400])
        return


def _piece(columns: Columns, good: NDArray[np.bool_] | None, tally: Tally) -> Piece:
    """The columns of all events, or of the good ones only, with one row for each event."""
    height = columns.height if good is None else int(good.sum())
    number = None if good is None else np.cumsum(good) - 1
    for kind, example, events in columns.repairs:
        tally.add(kind, example, len(events) if good is None else int(good[events].sum()))
    texts, numbers = {}, {}
    for name in TEXT_COLUMNS:
        rows, series = columns.texts[name]
        if good is not None and number is not None:
            kept = good[rows]
            rows, series = number[rows[kept]], series.filter(kept)
        texts[name] = _full_height(series, rows, height).alias(name)
    for name in NUMBER_COLUMNS:
        rows, values = columns.numbers.get(name, _NOTHING)
        if good is not None and number is not None:
            kept = good[rows]
            rows, values = number[rows[kept]], values[kept]
        numbers[name] = _full_height(pl.Series(name, values), rows, height)
    int_args, text_args = {}, {}
    for name, rows, values in columns.int_args:
        if good is not None and number is not None:
            kept = good[rows]
            rows, values = number[rows[kept]], values[kept]
        if len(rows):
            int_args[name] = (rows.astype(np.uint32), narrow(values))
    for name, rows, series in columns.text_args:
        if good is not None and number is not None:
            kept = good[rows]
            rows, series = number[rows[kept]], series.filter(kept)
        if len(rows):
            text_args[name] = (rows.astype(np.uint32), series)
    return Piece(height, texts, numbers, int_args, text_args, columns.labels)


_NOTHING: Final = (np.empty(0, np.int64), np.empty(0, np.int64))


def _full_height(series: pl.Series, rows: NDArray[np.int64], height: int) -> pl.Series:
    """The values at their rows, null elsewhere."""
    if len(rows) == height:
        return series
    if not len(rows):
        return pl.Series(series.name, [None] * height, series.dtype)
    valid = np.zeros(height, np.bool_)
    valid[rows] = True
    source = np.zeros(height, np.int64)
    source[rows] = np.arange(len(rows))
    return pl.select(pl.when(pl.Series(valid)).then(series.gather(source)).alias(series.name)).to_series()
