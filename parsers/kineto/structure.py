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
_ARGS_KEY: Final = U64(int.from_bytes(b'"args"\0\0', "little"))
_ARGS_MASK: Final = U64((1 << 48) - 1)
_MAX_SPACE_STEPS: Final = 64

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


def find_structure(block: bytes) -> Structure:
    """Find the structure of a block.

    Args:
        block: Events with the commas between them, with :data:`PAD` blanks before and behind.

    Raises:
        OddBlockError: The quotes or braces do not pair up.
    """
    text = np.frombuffer(block, np.uint8)
    words = word_view(text)
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

    limit = _end_of_events(at[braces], depth, strings_before, string_start, len(text) - PAD)
    if limit < len(text) - PAD:
        kept = np.searchsorted(at[braces], limit)
        braces, opens, depth, strings_before = braces[:kept], opens[:kept], depth[:kept], strings_before[:kept]
        kept = np.searchsorted(string_start, limit)
        string_start, string_end, quotes = string_start[:kept], string_end[:kept], quotes[: 2 * kept]
    if len(depth) and depth[-1] != 0:
        raise OddBlockError

    level = _levels(text, words, at[braces], opens, depth, strings_before, string_start, string_end)
    begins = opens & (level == EVENT_LEVEL)
    ends = ~opens & (level == 0)
    start, stop = at[braces[begins]], at[braces[ends]]

    edges = np.concatenate(([0], strings_before, [len(string_start)]))
    string_level = np.repeat(np.concatenate((np.zeros(1, np.uint8), level)), np.diff(edges))
    after, hard = _after_strings(text, string_end)
    is_key = text[after] == _COLON
    if level.max(initial=0) >= HIDDEN_LEVEL:
        is_key &= string_level < HIDDEN_LEVEL
    key = np.flatnonzero(is_key)

    visible = level <= ARGS_LEVEL
    if not visible.all():
        # A brace that ends a hidden object leaves the level it came back to and is hidden as well.
        before = np.concatenate((np.zeros(1, np.uint8), level[:-1]))
        visible &= opens | (before <= ARGS_LEVEL)
    chosen = np.zeros(len(at), np.bool_)
    chosen[quotes[2 * key]] = True
    chosen[braces[visible]] = True
    token = np.flatnonzero(chosen)
    token_at, token_char = at[token], char[token]
    token_is_key = token_char == _QUOTE

    value_start, value_hard = _skip_space(text, after[key] + 1)
    value_end, token_odd = _check_between(text, words, token_at, token_char, token_is_key, value_start)
    starts_event = np.zeros(len(token), np.bool_)
    starts_event[np.searchsorted(token_at, start)] = True
    token_event = np.cumsum(starts_event) - 1
    odd = np.zeros(len(start) + 1, np.bool_)
    odd[token_event[token_odd]] = True
    # What is wrong behind an event makes the next one odd, so that the text between them is looked at.
    ends_event = np.searchsorted(token_at, stop)
    odd[1:] |= token_odd[ends_event]
    key_event = token_event[token_is_key]
    if hard.any() or value_hard.any():
        odd[key_event[value_hard]] = True
        odd[np.clip(np.searchsorted(start, string_end[hard]) - 1, 0, None)] = True
    odd = odd[:-1]
    if len(start) and block[PAD : start[0]].strip(b"\x00\t\n\r "):
        odd[0] = True

    value_string = key + 1
    followed = value_string < len(string_start)
    value_string[~followed] = 0
    holds_string = followed & (string_start[value_string] == value_start) if len(key) else followed
    return Structure(
        text=text,
        words=words,
        start=start,
        stop=stop,
        key_start=string_start[key] + 1,
        key_end=string_end[key],
        value_start=value_start,
        value_end=value_end[token_is_key],
        string_end=np.where(holds_string, string_end[value_string] + 1, 0) if len(key) else key,
        key_event=key_event,
        in_args=string_level[key] == ARGS_LEVEL,
        opens_args=np.concatenate((~token_is_key[1:], [False]))[token_is_key] & (text[value_start] == _OPEN)
        if len(key)
        else followed,
        odd=odd,
        backslashes=backslashes,
        array_end=int(stop[-1]) + 1 if len(stop) else PAD,
    )


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


def _levels(
    text: NDArray[np.uint8],
    words: NDArray[np.uint64],
    brace_at: Positions,
    opens: NDArray[np.bool_],
    depth: Positions,
    strings_before: Positions,
    string_start: Positions,
    string_end: Positions,
) -> NDArray[np.uint8]:
    """The level behind each brace: 0 between events, in an event, in its arguments, or hidden in some value."""
    level = np.minimum(depth, HIDDEN_LEVEL).astype(np.uint8)
    second = np.flatnonzero(opens & (depth == ARGS_LEVEL))
    owner = strings_before[second] - 1
    if not len(second):
        return level
    # An object at depth 2 has an event's brace before it, and the string before it may be older than that event.
    safe = np.maximum(owner, 0)
    is_args = (owner >= 0) & (string_end[safe] - string_start[safe] == 5)
    is_args &= (words[string_start[safe]] & _ARGS_MASK) == _ARGS_KEY
    before, _ = skip_space_back(words, brace_at[second])
    colon = text[before - 1] == _COLON
    key_end, _ = skip_space_back(words, before - 1)
    is_args &= colon & (key_end == string_end[safe] + 1)
    if is_args.all() and depth.max() <= ARGS_LEVEL:
        return level
    in_args = np.zeros(len(depth), np.bool_)
    in_args[second] = is_args
    opened = np.maximum.accumulate(np.where(opens & (depth == ARGS_LEVEL), np.arange(len(depth)), 0))
    level[(depth == ARGS_LEVEL) & ~in_args[opened]] = HIDDEN_LEVEL
    return level


def _after_strings(text: NDArray[np.uint8], string_end: Positions) -> tuple[Positions, NDArray[np.bool_]]:
    """The first character behind each string that is no white space."""
    return _skip_space(text, string_end + 1)


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
    text: NDArray[np.uint8],
    words: NDArray[np.uint64],
    token_at: Positions,
    token_char: NDArray[np.uint8],
    is_key: NDArray[np.bool_],
    value_start: Positions,
) -> tuple[Positions, NDArray[np.bool_]]:
    """What stands between each token (key or brace) and the next one.

    Returns:
        Where the value of each key ends, for tokens that are keys; and which tokens are not followed by what JSON
        wants: a comma between two pairs and between two events, none elsewhere, and white space.
    """
    count = len(token_at)
    if not count:
        return token_at, np.zeros(0, np.bool_)
    following = np.append(token_at[1:], token_at[-1] + 1)
    following_char = np.append(token_char[1:], _CLOSE)
    end, done = skip_space_back(words, following)
    wants_comma = (following_char == _QUOTE) & (token_char != _OPEN)
    wants_comma |= (following_char == _OPEN) & (token_char == _CLOSE)
    odd = ~done
    odd |= wants_comma & (text[end - 1] != _COMMA)
    end = end - wants_comma
    blank = np.flatnonzero(wants_comma & (text[end - 1] <= _SPACE))
    if len(blank):
        end[blank], done = skip_space_back(words, end[blank])
        odd[blank] |= ~done
    odd |= ~is_key & (end != token_at + 1)
    value_at = np.zeros(count, np.int64)
    value_at[is_key] = value_start
    opens_args = is_key & (following_char == _OPEN)
    odd |= opens_args & (value_at != following)
    odd |= (token_char == _OPEN) & (following_char == _OPEN)
    odd |= is_key & ~opens_args & (end <= value_at)
    return end, odd
