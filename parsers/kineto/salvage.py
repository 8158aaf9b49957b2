"""Event-by-event reading of text that may be damaged: everything that is whole is kept, the rest is counted.

The reference reader runs it over a whole file, the vectorised reader over the stretches that it is not sure of.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .event import BrokenEventError, EventText, add_event, split_event
from .head import read_members
from .tally import Tally
from .values import decode_string

if TYPE_CHECKING:
    from .pieces import Rows

_EVENT_KEY: Final = r'"(?:ph|name|cat|pid|tid|ts|dur|id|args|bp|s)"'
EVENT_START: Final = re.compile(r"\{[\x00-\x20]*+" + _EVENT_KEY + r"[\x00-\x20]*+:")
"""Where an event seems to begin, whatever came before."""

_SEPARATORS: Final = re.compile(r"[\x00-\x20,]*+")
_LOOKS_LIKE_END: Final = re.compile(r'\][\x00-\x20]*+(?:,[\x00-\x20]*+"|\}|$)')
_NEXT_EVENT: Final = re.compile(r"\}[\x00-\x20]*+,[\x00-\x20]*+\{[\x00-\x20]*+" + _EVENT_KEY + r"[\x00-\x20]*+:")
_PHASE: Final = re.compile(r'"ph"[\x00-\x20]*+:')
_STRING_VALUE: Final = re.compile(r'"(?P<key>[^"\\{}\[\]]{1,100})"[\x00-\x20]*+:[\x00-\x20]*+"')
_FIELD_STRING_END: Final = re.compile(
    r'"(?=[\x00-\x20]*+(?:,[\x00-\x20]*+' + _EVENT_KEY + r"[\x00-\x20]*+:|\}[\x00-\x20]*+(?:$|[,\]}])))"
)
_ARGUMENT_STRING_END: Final = re.compile(
    r'"(?=[\x00-\x20]*+(?:,[\x00-\x20]*+"[^"\\{}\[\]]{1,100}"[\x00-\x20]*+:[\x00-\x20]*+["\[{\-0-9tfn]|\}[\x00-\x20]*+(?:$|[,}])))'
)
_BARE_QUOTE: Final = re.compile(r'\\.|"', re.DOTALL)
_MAX_ATTEMPT_CHARS: Final = 1 << 20
_WORK_FACTOR: Final = 16
"""Characters looked at, at most, for one character of text: keeps made-up input from taking quadratic time."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a stretch ended.

    Attributes:
        array_end: Position of the ``]`` that closes the events, or None if there was none.
        open_event: Position of an event that the text ends in the middle of, or None.
    """

    array_end: int | None = None
    open_event: int | None = None


class _OutOfBudgetError(Exception):
    """The text makes reading quadratic."""


class _Budget:
    def __init__(self, chars: int) -> None:
        self.left = _WORK_FACTOR * chars + (1 << 22)

    def spend(self, chars: int) -> None:
        self.left -= max(chars, 16)
        if self.left < 0:
            raise _OutOfBudgetError


def read_stretch(text: str, rows: Rows, tally: Tally, *, follows: bool) -> Outcome:
    """Read the events of ``text``, which starts outside of any event.

    Args:
        text: Elements of the array of events.
        rows: Takes the events.
        tally: Takes the counts.
        follows: Whether an event stands before the text, so that it should begin with a comma.

    Returns:
        How it ended. An event that is cut off by the end of the text is neither added nor counted: the caller
        knows whether more text follows.
    """
    budget = _Budget(len(text))
    at = 0
    # After a loss nobody knows how many commas there should be.
    wanted: int | None = 1 if follows else 0
    try:
        while True:
            match = _SEPARATORS.match(text, at)
            after = match.end() if match is not None else at
            if after == len(text):
                return Outcome()
            if text[after] == "]" and _is_array_end(text, after, budget):
                _check_commas(text, at, after, tally, None if wanted is None else 0)
                return Outcome(array_end=after)
            if text[after] != "{":
                at, wanted = _pass_over(text, after, tally), None
                continue
            _check_commas(text, at, after, tally, wanted)
            end, whole = _read_one(text, after, rows, tally, budget)
            if end is None:
                return Outcome(open_event=after)
            at, wanted = end, 1 if whole else None
    except _OutOfBudgetError:
        tally.add("lost-text", text[at : at + 400])
        return Outcome()


def _check_commas(text: str, start: int, end: int, tally: Tally, wanted: int | None) -> None:
    commas = text.count(",", start, end)
    if wanted is not None and commas != wanted:
        tally.add("repaired-comma", text[max(0, start - 40) : end + 40], abs(commas - wanted))


def _is_array_end(text: str, at: int, budget: _Budget) -> bool:
    """Whether the ``]`` closes the events; one that a damage has left over is followed by more of them."""
    if not _LOOKS_LIKE_END.match(text, at):
        return False
    budget.spend(len(text) - at)
    # Other objects may follow in the rest of the document (``deviceProperties``), but an event has a phase.
    if _NEXT_EVENT.search(text, at) is None or _PHASE.search(text, at) is None:
        return True
    # Events may also follow because a second document does.
    _, end, closed = read_members(text, at + 1, Tally())
    return closed and text[end:].lstrip("\x00\t\n\r ")[:1] in ("", "{", "[")


def _pass_over(text: str, at: int, tally: Tally) -> int:
    """Skip what is no event; returns where the next one seems to begin."""
    end = _next_start(text, at)
    tally.add("lost-text", text[at : at + 400])
    return len(text) if end is None else end


def _next_start(text: str, at: int) -> int | None:
    """The next place that looks like the start of an event and not like the start of an argument object."""
    for match in EVENT_START.finditer(text, at):
        before = match.start() - 1
        while before >= at and text[before] <= " ":
            before -= 1
        if before < at or text[before] != ":":
            return match.start()
    return None


def _read_one(text: str, start: int, rows: Rows, tally: Tally, budget: _Budget) -> tuple[int | None, bool]:
    """Read the event at ``start``.

    Returns:
        Where to go on, or None if the text ends in the middle of the event; and whether the event was read.
    """
    attempt = Tally()
    try:
        event = split_event(text, start, attempt)
    except BrokenEventError as error:
        budget.spend(error.position - start)
        return _read_broken(text, start, rows, tally, budget)
    add_event(event, rows, attempt, text[start : min(event.end, start + 400)])
    tally.merge(attempt)
    return event.end, True


def _read_broken(text: str, start: int, rows: Rows, tally: Tally, budget: _Budget) -> tuple[int | None, bool]:
    """Repair the event at ``start``, or give it up and go on at the next one."""
    following = _next_start(text, start + 1)
    end = len(text) if following is None else following
    closing = _last_array_end(text, start) if following is None else None
    budget.spend(end - start)
    chunk = text[start : closing or end].rstrip("\x00\t\n\r ,")
    event, attempt = _repaired(chunk)
    if event is not None and event.end == event.length and not event.repeated:
        add_event(event, rows, attempt, chunk[:400])
        tally.merge(attempt)
        return start + len(chunk), True
    if following is None and closing is None:
        return None, False
    tally.add("lost-event", chunk[:400])
    return following or closing, False


def _last_array_end(text: str, start: int) -> int | None:
    """Where the array seems to end behind a broken event that is the last one."""
    for match in re.finditer(r"\}[\x00-\x20,]*+(?=\][\x00-\x20]*+(?:,[\x00-\x20]*+\"|\}|$))", text[start:]):
        return start + match.end()
    return None


def _repaired(chunk: str) -> tuple[EventText | None, Tally]:
    """The event with its strings quoted anew, or None."""
    attempt = Tally()
    if len(chunk) > _MAX_ATTEMPT_CHARS:
        return None, attempt
    try:
        return split_event(_requote(chunk, attempt), 0, attempt), attempt
    except BrokenEventError:
        return None, attempt


def _requote(chunk: str, tally: Tally) -> str:
    """Strings end where a key or the end of the object follows, not at the first quote; quotes inside get escaped."""
    out: list[str] = []
    at = 0
    for_names = ("name", "cat")
    while True:
        match = _STRING_VALUE.search(chunk, at)
        if match is None:
            break
        start = match.end()
        ends = _FIELD_STRING_END if match["key"] in for_names else _ARGUMENT_STRING_END
        closing = ends.search(chunk, start)
        if closing is None:
            break
        inner = chunk[start : closing.start()]
        out.append(chunk[at:start])
        out.append(_escaped(inner, tally))
        at = closing.start()
    out.append(chunk[at:])
    return "".join(out)


def _escaped(inner: str, tally: Tally) -> str:
    """The inside of a JSON string whose text is ``inner``, changed only where that is no valid one."""
    bare = any(found[0] == '"' for found in _BARE_QUOTE.finditer(inner))
    open_end = len(inner) - len(inner.rstrip("\\")) & 1
    if not bare and not open_end:
        return inner
    quoted = _BARE_QUOTE.sub(lambda found: '\\"' if found[0] == '"' else found[0], inner)
    text, kind = (inner, "repaired-backslash") if open_end else decode_string(quoted)
    if kind == "repaired-backslash":
        text = inner
    tally.add("repaired-quote" if bare else "repaired-backslash", inner)
    return json.dumps(text, ensure_ascii=False)[1:-1]
