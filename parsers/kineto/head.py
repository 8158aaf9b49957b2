"""What stands around the events of a file: its top-level keys before and after them, and where the events begin."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from traceview.errors import UnreadableTraceError

from .event import BrokenEventError, Kind, Value, read_member
from .values import decode_string, without_surrogates

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .tally import Tally

EVENTS_KEY: Final = re.compile(rb'"traceEvents"[\x00-\x20]*+:[\x00-\x20]*+\[')
LIST_ROOT: Final = re.compile(rb"[\x00-\x20]*+\[")
MAX_HEAD_BYTES: Final = 48 << 20
"""Metadata before the events of a real trace are at most some MiB."""
_SPACE: Final = re.compile(r"[\x00-\x20]*+")
_SEPARATORS: Final = re.compile(r"[\x00-\x20,]*+")
_TRACE_KEYS: Final = frozenset(
    {"distributedInfo", "deviceProperties", "baseTimeNanoseconds", "traceName", "displayTimeUnit", "traceEvents"}
)
_EVENT_LIKE: Final = re.compile(r'"ph"[\x00-\x20]*+:')


def read_head(text: str, tally: Tally) -> dict[str, Any]:
    """The keys before the events.

    Args:
        text: The file's text up to the key ``traceEvents`` (not included), or the whole of it if there is none.
        tally: Counts what could not be read.
    """
    at = _skip(text, 0)
    if not text.startswith("{", at):
        return {}
    members, at, _ = read_members(text, at + 1, tally)
    return members


def read_tail(text: str, tally: Tally, *, list_root: bool) -> tuple[dict[str, Any], bool]:
    """The keys after the events.

    Args:
        text: Text from the ``]`` on that ends the events.
        tally: Counts what could not be read, and text behind the end of the document.
        list_root: Whether the events are the whole document.

    Returns:
        The keys, and whether the document ends as it should.
    """
    members: dict[str, Any] = {}
    at, closed = 1, True
    if not list_root:
        members, at, closed = read_members(text, 1, tally)
    again = members.pop("traceEvents", None)
    if isinstance(again, list) and again:
        # JSON leaves open which of two values of one key counts.
        tally.add("lost-trailing", '"traceEvents" stands there twice', len(again))
    rest = text[_skip(text, at) :].rstrip("\x00\t\n\r ")
    if rest:
        tally.add("lost-trailing", rest[:400], max(1, len(_EVENT_LIKE.findall(rest))))
    return members, closed


def read_members(text: str, at: int, tally: Tally) -> tuple[dict[str, Any], int, bool]:
    """Key and value pairs up to a ``}``; also where it stands, and whether it was there."""
    members: dict[str, Any] = {}
    while True:
        match = _SEPARATORS.match(text, at)
        at = match.end() if match is not None else at
        if at >= len(text):
            return members, at, False
        if text[at] == "}":
            return members, at + 1, True
        try:
            key, value, at = read_member(text, at, tally)
        except BrokenEventError:
            tally.add("lost-metadata", text[at : at + 400])
            return members, len(text), False
        members[key] = _parsed(value)


def _parsed(value: Value) -> Any:
    if value.kind is Kind.STRING:
        return decode_string(value.inner)[0]
    try:
        read = json.loads(value.raw, strict=False)
        return _sound(read) if "\\u" in value.raw else read
    except (ValueError, RecursionError):
        return value.raw


def _sound(value: Any) -> Any:
    """The same without halves of surrogate pairs, which no frame and no file can hold."""
    if isinstance(value, str):
        return without_surrogates(value)[0]
    if isinstance(value, list):
        return [_sound(one) for one in value]
    if isinstance(value, dict):
        return {_sound(key): _sound(one) for key, one in value.items()}
    return value


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match is not None else at


def no_events_error(path: Path, *, empty: bool) -> UnreadableTraceError:
    """The file holds nothing that is a trace."""
    return UnreadableTraceError(
        "no-trace-events",
        where=str(path),
        why="The file is empty." if empty else 'The file has no list of events ("traceEvents").',
        next_step="Export it again with prof.export_chrome_trace() or tensorboard_trace_handler().",
    )


def is_trace_head(head: Mapping[str, Any]) -> bool:
    """Whether these top-level keys are those of a trace, so that it may have no events at all."""
    return not _TRACE_KEYS.isdisjoint(head)
