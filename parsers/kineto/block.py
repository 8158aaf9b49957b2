"""A block of events: columns for the events that are plain, the slow lane for the stretches that are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .columns import Columns, Knowledge, read_columns
from .fastscan import scan_block
from .numbers import PAD
from .pieces import NUMBER_COLUMNS, TEXT_COLUMNS, Piece, Rows, interleave
from .raw import NULL, NULL_CODE
from .salvage import read_stretch
from .structure import OddBlockError, Structure, find_structure
from .tally import Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLANKS: Final = b" " * PAD
_NOTHING: Final = (np.empty(0, np.int64), np.empty(0, np.int64))


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
    tally = Tally()
    plain = scan_block(block, knowledge.plain, tally)
    if plain is not None:
        return BlockResult(plain, tally)
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
    if block.isascii():
        return block
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
    fast = _piece(columns, None if good.all() else good, tally)
    if not len(rows):
        result.piece = fast
        return result
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

    def chosen(rows: NDArray[Any], values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        if good is None or number is None:
            return rows, values
        kept = good[rows]
        return number[rows[kept]], values[kept]

    def full(rows: NDArray[Any], values: NDArray[Any], null: int) -> NDArray[Any]:
        rows, values = chosen(rows, values)
        if len(rows) == height:
            return values
        out = np.full(height, null, values.dtype)
        out[rows] = values
        return out

    return Piece(
        height=height,
        texts={name: full(*columns.texts[name], NULL_CODE) for name in TEXT_COLUMNS},
        numbers={name: full(*columns.numbers.get(name, _NOTHING), NULL) for name in NUMBER_COLUMNS},
        int_args={name: chosen(rows, values) for name, rows, values in columns.int_args},
        text_args={name: chosen(rows, codes) for name, rows, codes in columns.text_args},
        labels=columns.labels,
    )
