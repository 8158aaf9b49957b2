"""Where the events, keys and values of a block of text are: its structure, found without looking at every byte twice.

All positions count from the start of the padded text. Only quotes and braces are looked up; everything between them
is checked against what JSON allows there, and an event that does not pass is marked as odd.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from .numbers import PAD, U64, skip_space_back, word_view

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Positions = NDArray[np.int64]

_QUOTE: Final = ord('"')
_OPEN: Final = ord("{")
_CLOSE: Final = ord("}")
_COMMA: Final = ord(",")
_COLON: Final = ord(":")
_BACKSLASH: Final = ord("\\")
_SPACE: Final = ord(" ")
_ARGS_BEFORE: Final = U64(int.from_bytes(b'"args": ', "little"))
_ARGS_KEY: Final = U64(int.from_bytes(b'"args"\0\0', "little"))
_ARGS_MASK: Final = U64((1 << 48) - 1)
_MAX_SPACE_STEPS: Final = 64

_KEY, _EVENT_OPEN, _ARGS_OPEN, _ARGS_CLOSE, _EVENT_CLOSE = 1, 2, 3, 4, 5
_FINE, _COMMA_WANTED, _ILLEGAL = 0, 1, 2
_PAIRS: Final = np.full(48, _ILLEGAL, np.uint8)
"""What JSON wants between two tokens that follow each other, by 8 * the first one + the second one."""
for _pair, _rule in {
    (_EVENT_OPEN, _KEY): _FINE,
    (_EVENT_OPEN, _EVENT_CLOSE): _FINE,
    (_ARGS_OPEN, _KEY): _FINE,
    (_ARGS_OPEN, _ARGS_CLOSE): _FINE,
    (_KEY, _KEY): _COMMA_WANTED,
    (_KEY, _ARGS_OPEN): _FINE,
    (_KEY, _ARGS_CLOSE): _FINE,
    (_KEY, _EVENT_CLOSE): _FINE,
    (_ARGS_CLOSE, _KEY): _COMMA_WANTED,
    (_ARGS_CLOSE, _EVENT_CLOSE): _FINE,
    (_EVENT_CLOSE, _EVENT_OPEN): _COMMA_WANTED,
}.items():
    _PAIRS[8 * _pair[0] + _pair[1]] = _rule

EVENT_LEVEL: Final = 1
ARGS_LEVEL: Final = 2
HIDDEN_LEVEL: Final = 3


class OddBlockError(Exception):
    """Quotes or braces do not pair up: nothing about the block is certain."""


@dataclass(slots=True)
class Structure:
    """The events of a block and their keys, in file order.

    Attributes:
        text: The padded text as bytes.
        words: Its overlapping words, see :mod:`.numbers`.
        start: Position of the ``{`` of each event.
        stop: Position of the ``}`` of each event.
        key_start: First character of each key, behind the quote.
        key_end: Its closing quote.
        value_start: First character of each value.
        value_end: Behind its last character.
        string_end: Behind the closing quote of the string that starts at ``value_start``, or 0 if none does.
        key_event: Index of the event that the key belongs to.
        in_args: Whether the key is one of the event's ``args``.
        opens_args: Whether the value is the event's object of arguments.
        odd: For each event, whether something in it, or before it, is not as JSON wants it.
        backslashes: Positions of all backslashes.
        array_end: Position of what follows the last event and is not a further event; the end of the text if all of it
            are events.
    """

    text: NDArray[np.uint8]
    words: NDArray[np.uint64]
    start: Positions
    stop: Positions
    key_start: Positions
    key_end: Positions
    value_start: Positions
    value_end: Positions
    string_end: Positions
    key_event: Positions
    in_args: NDArray[np.bool_]
    opens_args: NDArray[np.bool_]
    odd: NDArray[np.bool_]
    backslashes: Positions
    array_end: int


@dataclass(slots=True)
class _Skeleton:
    """The quotes and braces of a block, as far as they belong to events.

    Attributes:
        mark_at: Position of every quote and every brace of the block.
        quotes: Which of the marks are quotes.
        string_start: Opening quote of each string.
        string_end: Its closing quote.
        braces: Which of the marks are braces outside of strings.
        brace_at: Their positions.
        opens: Which of them are ``{``.
        depth: How many are open behind each.
        strings_before: How many strings stand before each.
    """

    text: NDArray[np.uint8]
    words: NDArray[np.uint64]
    backslashes: Positions
    mark_at: Positions
    quotes: Positions
    string_start: Positions
    string_end: Positions
    braces: Positions
    brace_at: Positions
    opens: NDArray[np.bool_]
    depth: Positions
    strings_before: Positions


def _skeleton(block: bytes) -> _Skeleton:
    text = np.frombuffer(block, np.uint8)
    at, char, backslashes = _marks(text)
    is_quote = char == _QUOTE
    quotes = np.flatnonzero(is_quote)
    if len(quotes) & 1:
        raise OddBlockError
    braces = np.flatnonzero(~is_quote)
    quotes_before = braces - np.arange(len(braces))
    outside = (quotes_before & 1) == 0
    braces, strings_before = braces[outside], quotes_before[outside] >> 1
    string_start, string_end = at[quotes[0::2]], at[quotes[1::2]]
    opens = char[braces] == _OPEN
    depth = np.cumsum(np.where(opens, 1, -1))
    brace_at = at[braces]
    end = len(text) - PAD
    limit = _end_of_events(brace_at, depth, strings_before, string_start, end)
    if limit < end:
        kept = np.searchsorted(brace_at, limit)
        braces, brace_at, opens, depth = braces[:kept], brace_at[:kept], opens[:kept], depth[:kept]
        strings_before = strings_before[:kept]
        kept = np.searchsorted(string_start, limit)
        string_start, string_end, quotes = string_start[:kept], string_end[:kept], quotes[: 2 * kept]
    if len(depth) and depth[-1] != 0:
        raise OddBlockError
    return _Skeleton(
        text,
        word_view(text),
        backslashes,
        at,
        quotes,
        string_start,
        string_end,
        braces,
        brace_at,
        opens,
        depth,
        strings_before,
    )


def find_structure(block: bytes) -> Structure:
    """Find the structure of a block.

    Args:
        block: Events with the commas between them, with :data:`PAD` blanks before and behind.

    Raises:
        OddBlockError: The quotes or braces do not pair up.
    """
    frame = _skeleton(block)
    text, words = frame.text, frame.words
    string_start, string_end = frame.string_start, frame.string_end
    level = _levels(frame)
    start = frame.brace_at[frame.opens & (level == EVENT_LEVEL)]
    stop = frame.brace_at[level == 0]

    edges = np.concatenate(([0], frame.strings_before, [len(string_start)]))
    string_level = np.repeat(np.concatenate((np.zeros(1, np.uint8), level)), np.diff(edges))
    colon, is_key, hard = _colons(text, string_end)
    if level.max(initial=0) >= HIDDEN_LEVEL:
        is_key &= string_level < HIDDEN_LEVEL
    key = np.flatnonzero(is_key)

    kind = np.zeros(len(frame.mark_at), np.uint8)
    kind[frame.quotes[2 * key]] = _KEY
    kind[frame.braces] = _brace_kinds(frame.opens, level)
    token = np.flatnonzero(kind)
    token_at, kind = frame.mark_at[token], kind[token]
    key_token = np.flatnonzero(kind == _KEY)
    token_event = np.cumsum(kind == _EVENT_OPEN) - 1
    key_event = token_event[key_token]

    end, token_odd = _check_between(text, words, token_at, kind)
    value_start, value_hard = _skip_space(text, colon[key] + 1)
    value_end = end[key_token]
    opens_args = np.append(kind[1:], 0)[key_token] == _ARGS_OPEN

    odd = np.zeros(len(start) + 1, np.bool_)
    odd[token_event[token_odd]] = True
    # What is wrong behind an event makes the next one odd, so that the text between them is looked at.
    odd[1:] |= token_odd[kind == _EVENT_CLOSE]
    owner = np.flatnonzero(opens_args)
    odd[key_event[owner[value_start[owner] != token_at[key_token[owner] + 1]]]] = True
    odd[key_event[(value_end <= value_start) & ~opens_args]] = True
    odd[key_event[value_hard]] = True
    odd[np.clip(np.searchsorted(start, string_end[hard]) - 1, 0, None)] = True
    odd = odd[:-1]
    if len(start) and block[PAD : start[0]].strip(b"\x00\t\n\r "):
        odd[0] = True

    value_string = np.minimum(key + 1, len(string_start) - 1)
    holds_string = string_start[value_string] == value_start
    return Structure(
        text=text,
        words=words,
        start=start,
        stop=stop,
        key_start=string_start[key] + 1,
        key_end=string_end[key],
        value_start=value_start,
        value_end=value_end,
        string_end=(string_end[value_string] + 1) * holds_string,
        key_event=key_event,
        in_args=string_level[key] == ARGS_LEVEL,
        opens_args=opens_args,
        odd=odd,
        backslashes=frame.backslashes,
        array_end=int(stop[-1]) + 1 if len(stop) else PAD,
    )


def _brace_kinds(opens: NDArray[np.bool_], level: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The token that each brace is; 0 for the braces inside of values."""
    kinds = np.where(opens, level + (_EVENT_OPEN - EVENT_LEVEL), _EVENT_CLOSE - level).astype(np.uint8)
    if level.max(initial=0) >= HIDDEN_LEVEL:
        # A brace that ends a hidden object belongs to that object, whatever level it goes back to.
        before = np.concatenate((np.zeros(1, np.uint8), level[:-1]))
        kinds[np.where(opens, level, before) >= HIDDEN_LEVEL] = 0
    return kinds


def _marks(text: NDArray[np.uint8]) -> tuple[Positions, NDArray[np.uint8], Positions]:
    """All quotes that no backslash escapes, and all braces: positions and characters; and all backslashes."""
    marked = text == _QUOTE
    marked |= text == _OPEN
    marked |= text == _CLOSE
    at = np.flatnonzero(marked)
    np.equal(text, _BACKSLASH, out=marked)
    if not marked.any():
        return at, text[at], np.empty(0, np.int64)
    backslashes = np.flatnonzero(marked)
    char = text[at]
    doubtful = np.flatnonzero((char == _QUOTE) & (text[at - 1] == _BACKSLASH))
    if len(doubtful):
        begins_run = np.ones(len(backslashes), np.bool_)
        begins_run[1:] = np.diff(backslashes) != 1
        run_start = np.maximum.accumulate(np.where(begins_run, backslashes, 0))
        last = np.searchsorted(backslashes, at[doubtful] - 1)
        run_length = at[doubtful] - run_start[last]
        keep = np.ones(len(at), np.bool_)
        keep[doubtful[run_length & 1 == 1]] = False
        at, char = at[keep], char[keep]
    return at, char, backslashes


def _end_of_events(
    brace_at: Positions, depth: Positions, strings_before: Positions, string_start: Positions, end: int
) -> int:
    """Position of the first brace or string that stands outside of the events, or ``end``."""
    limit = end
    below = np.flatnonzero(depth < 0)
    if len(below):
        limit = int(brace_at[below[0]])
    # Strings between two events, or behind the last one: where the number of strings grows at depth 0.
    counts = np.concatenate(([0], strings_before, [len(string_start)]))
    at_zero = np.concatenate(([True], depth == 0))
    stray = np.flatnonzero(at_zero & (np.diff(counts) > 0))
    if len(stray):
        limit = min(limit, int(string_start[counts[stray[0]]]))
    return limit


def _levels(frame: _Skeleton) -> NDArray[np.uint8]:
    """The level behind each brace: 0 between events, in an event, in its arguments, or hidden in some value."""
    text, words, brace_at, opens, depth = frame.text, frame.words, frame.brace_at, frame.opens, frame.depth
    string_start, string_end = frame.string_start, frame.string_end
    level = np.minimum(depth, HIDDEN_LEVEL).astype(np.uint8)
    second = np.flatnonzero(opens & (depth == ARGS_LEVEL))
    if not len(second):
        return level
    is_args = words[brace_at[second] - 8] == _ARGS_BEFORE
    unusual = np.flatnonzero(~is_args)
    if len(unusual):
        owner = frame.strings_before[second[unusual]] - 1
        safe = np.maximum(owner, 0)
        before, _ = skip_space_back(words, brace_at[second[unusual]])
        key_end, _ = skip_space_back(words, before - 1)
        is_args[unusual] = (
            (owner >= 0)
            & (string_end[safe] - string_start[safe] == 5)
            & ((words[string_start[safe]] & _ARGS_MASK) == _ARGS_KEY)
            & (text[before - 1] == _COLON)
            & (key_end == string_end[safe] + 1)
        )
    if is_args.all() and depth.max() <= ARGS_LEVEL:
        return level
    in_args = np.zeros(len(depth), np.bool_)
    in_args[second] = is_args
    opened = np.maximum.accumulate(np.where(opens & (depth == ARGS_LEVEL), np.arange(len(depth)), 0))
    level[(depth == ARGS_LEVEL) & ~in_args[opened]] = HIDDEN_LEVEL
    return level


def _colons(text: NDArray[np.uint8], string_end: Positions) -> tuple[Positions, NDArray[np.bool_], NDArray[np.bool_]]:
    """What follows each string.

    Returns:
        The first position behind it that is no white space; whether a colon stands there, which makes it a key; and
        whether that position is too far off to be looked for.
    """
    after = string_end + 1
    char = text[after]
    is_key = char == _COLON
    hard = np.zeros(len(after), np.bool_)
    blank = np.flatnonzero(char <= _SPACE)
    if len(blank):
        after[blank], hard[blank] = _skip_space(text, after[blank])
        is_key[blank] = text[after[blank]] == _COLON
    return after, is_key, hard


def _skip_space(text: NDArray[np.uint8], at: Positions) -> tuple[Positions, NDArray[np.bool_]]:
    """Move forward over white space; the second result marks those where it did not end soon."""
    at = at + (text[at] == _SPACE)
    blank = np.flatnonzero(text[at] <= _SPACE)
    for _ in range(_MAX_SPACE_STEPS):
        if not len(blank):
            break
        at[blank] += 1
        np.minimum(at, len(text) - PAD, out=at)
        blank = blank[(text[at[blank]] <= _SPACE) & (at[blank] < len(text) - PAD)]
    hard = np.zeros(len(at), np.bool_)
    hard[blank] = True
    return at, hard


def _check_between(
    text: NDArray[np.uint8], words: NDArray[np.uint64], token_at: Positions, kind: NDArray[np.uint8]
) -> tuple[Positions, NDArray[np.bool_]]:
    """What stands between each token (key or brace) and the next one.

    Returns:
        Where the text before the next token, and before the comma in front of that, ends: the end of the value, for
        keys; and which tokens are not followed by what JSON wants.
    """
    count = len(token_at)
    if not count:
        return token_at, np.zeros(0, np.bool_)
    rule = np.zeros(count, np.uint8)
    rule[:-1] = _PAIRS[(kind[:-1] << np.uint8(3)) + kind[1:]]
    following = np.empty(count, np.int64)
    following[:-1] = token_at[1:]
    following[-1] = token_at[-1] + 1
    end, done = skip_space_back(words, following)
    odd = rule == _ILLEGAL
    odd |= ~done
    comma = np.flatnonzero(rule == _COMMA_WANTED)
    before = end[comma] - 1
    odd[comma[text[before] != _COMMA]] = True
    blank = np.flatnonzero(text[before - 1] <= _SPACE)
    if len(blank):
        before[blank], done = skip_space_back(words, before[blank])
        odd[comma[blank[~done]]] = True
    end[comma] = before
    brace = np.flatnonzero(kind != _KEY)
    odd[brace[end[brace] != token_at[brace] + 1]] = True
    return end, odd
