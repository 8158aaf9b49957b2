"""One trace event from its text, value by value: plain, tolerant, and the definition of what an event means.

The vectorised reader hands every event that it is not sure of to :func:`read_event`, too.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from .raw import INT_ARGS
from .values import (
    LABEL_LIMIT,
    decimal_us_to_ns,
    decode_string,
    is_json_number,
    lenient_number,
    split_sign_to_ns,
    whole_number,
)

if TYPE_CHECKING:
    from .pieces import Rows
    from .tally import Tally

EVENT_KEYS: Final = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args")
"""Keys of an event that are columns, or hold the arguments; every other key is kept like an argument."""

_SPACE: Final = re.compile(r"[\x00-\x20]*")
_STRING: Final = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_WORD: Final = re.compile(r'[^\x00-\x20,:"{}\[\]]+')
_NESTED_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\x00-\x20,:"{}\[\]]+|"', re.DOTALL)
_LITERALS: Final = frozenset({"true", "false", "null"})


class BrokenEventError(Exception):
    """The text is not the event it should be; ``position`` is where that shows."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class Kind(StrEnum):
    """What kind of JSON value a text is."""

    STRING = "string"
    NUMBER = "number"
    LITERAL = "literal"
    NESTED = "nested"


@dataclass(frozen=True, slots=True)
class Value:
    """A value and its JSON text."""

    kind: Kind
    raw: str

    @property
    def inner(self) -> str:
        """The text between the quotes of a string."""
        return self.raw[1:-1]


NULL: Final = Value(Kind.LITERAL, "null")


@dataclass(frozen=True, slots=True)
class EventText:
    """The keys of an event and of its arguments, before their meaning.

    ``end`` is where the event ends in the text, ``length`` that of the text; ``repeated`` says that a key came twice.
    """

    fields: dict[str, Value]
    args: dict[str, Value]
    end: int
    length: int
    repeated: bool


def split_event(text: str, start: int, tally: Tally) -> EventText:
    """Take the object at ``start`` apart.

    Args:
        text: Text with an object at ``start``.
        start: Position of its ``{``.
        tally: Counts what had to be repaired.

    Raises:
        BrokenEventError: It is no object, even with goodwill.
    """
    args: dict[str, Value] = {}
    fields, end, repeated = _split_object(text, start, tally, args)
    return EventText(fields, args, end, len(text), repeated)


def _split_object(
    text: str, start: int, tally: Tally, args: dict[str, Value] | None
) -> tuple[dict[str, Value], int, bool]:
    values: dict[str, Value] = {}
    repeated = False
    at = _skip(text, start + 1)
    first = True
    while True:
        commas = 0
        while text.startswith(",", at):
            commas += 1
            at = _skip(text, at + 1)
        closing = text.startswith("}", at)
        wanted = 0 if first or closing else 1
        if commas != wanted:
            tally.add("repaired-comma", text[max(start, at - 40) : at + 40], abs(commas - wanted))
        if closing:
            return values, at + 1, repeated
        first = False
        key, at = _read_key(text, at)
        if args is not None and key == "args" and text.startswith("{", at):
            repeated |= bool(args) or key in values
            args.clear()
            values.pop(key, None)
            inside, at, again = _split_object(text, at, tally, None)
            args.update(inside)
            repeated |= again
        else:
            repeated |= key in values
            if key == "args" and args:
                args.clear()
            value, at = _read_value(text, at, tally)
            values.pop(key, None)
            values[key] = value
        at = _skip(text, at)


def read_member(text: str, at: int, tally: Tally) -> tuple[str, Value, int]:
    """The key and value at ``at``, and where they end."""
    key, at = _read_key(text, at)
    value, at = _read_value(text, at, tally)
    return key, value, at


def _read_key(text: str, at: int) -> tuple[str, int]:
    match = _STRING.match(text, at)
    if match is None:
        raise BrokenEventError(at)
    colon = _skip(text, match.end())
    if not text.startswith(":", colon):
        raise BrokenEventError(colon)
    raw = match[1]
    return (decode_string(raw)[0] if "\\" in raw else raw), _skip(text, colon + 1)


def _read_value(text: str, at: int, tally: Tally) -> tuple[Value, int]:
    char = text[at : at + 1]
    if char == '"':
        return _read_string(text, at)
    if char in ("[", "{"):
        return _read_nested(text, at, tally)
    match = _WORD.match(text, at)
    if match is None:
        if char in (",", "}"):
            tally.add("repaired-word", text[max(0, at - 40) : at + 1])
            return NULL, at
        raise BrokenEventError(at)
    return _read_word(match[0], tally), match.end()


def _read_string(text: str, at: int) -> tuple[Value, int]:
    match = _STRING.match(text, at)
    if match is None:
        raise BrokenEventError(at)
    after = _skip(text, match.end())
    if after < len(text) and text[after] not in ",}":
        # A missing comma is possible, but only where a key follows; anything else is a stray quote.
        following = _STRING.match(text, after)
        if following is None or not text.startswith(":", _skip(text, following.end())):
            raise BrokenEventError(match.end())
    return Value(Kind.STRING, match[0]), match.end()


def _read_word(word: str, tally: Tally) -> Value:
    if word in _LITERALS:
        return Value(Kind.LITERAL, word)
    if is_json_number(word):
        return Value(Kind.NUMBER, word)
    number = lenient_number(word)
    if number is not None:
        tally.add("repaired-number", word)
        return Value(Kind.NUMBER, number)
    if split_sign_to_ns(word) is not None:
        return Value(Kind.NUMBER, word)
    tally.add("repaired-word", word)
    return NULL


def _read_nested(text: str, at: int, tally: Tally) -> tuple[Value, int]:
    """A list or object as text. Its inside is only looked at if it is not valid JSON."""
    try:
        end = strict_end(text, at)
    except ValueError:
        return _repair_nested(text, at, tally)
    except RecursionError:
        end = _matching_end(text, at)
        tally.add("repaired-deep-value", text[at : at + 80])
    return Value(Kind.NESTED, text[at:end]), end


def refuse_constant(word: str) -> None:
    """Python's json takes NaN and Infinity, which no other parser does."""
    raise ValueError(word)


_DECODER: Final = json.JSONDecoder(strict=False, parse_float=str, parse_int=str, parse_constant=refuse_constant)


def strict_end(text: str, at: int) -> int:
    """Where the JSON value at ``at`` ends; a ValueError or RecursionError if it is none."""
    return _DECODER.raw_decode(text, at)[1]


def _matching_end(text: str, at: int) -> int:
    depth = 0
    reached = at
    for match in _NESTED_TOKEN.finditer(text, at):
        token, reached = match[0], match.end()
        if token in ("[", "{"):
            depth += 1
        elif token in ("]", "}"):
            depth -= 1
            if depth == 0:
                return reached
        elif token == '"':
            break
    raise BrokenEventError(reached)


def _repair_nested(text: str, at: int, tally: Tally) -> tuple[Value, int]:
    """Bare words become null, superfluous commas go; what is then still no JSON is broken."""
    out: list[str] = []
    repairs: list[tuple[str, str]] = []
    depth = 0
    reached = at
    for match in _NESTED_TOKEN.finditer(text, at):
        token, reached = match[0], match.end()
        context = text[max(at, reached - 41) : reached]
        if token in ("[", "{"):
            depth += 1
        elif token in ("]", "}"):
            depth -= 1
            if out and out[-1] == ",":
                out.pop()
                repairs.append(("repaired-comma", context))
        elif token == "," and out and out[-1] in (",", "["):
            repairs.append(("repaired-comma", context))
            continue
        elif token not in (",", ":"):
            token = _repair_token(token, repairs)
        out.append(token)
        if depth == 0:
            break
        if token == '"':
            raise BrokenEventError(reached)
    raw = "".join(out)
    try:
        if strict_end(raw, 0) != len(raw):
            raise BrokenEventError(reached)
    except (ValueError, RecursionError):
        raise BrokenEventError(reached) from None
    for kind, example in repairs:
        tally.add(kind, example)
    return Value(Kind.NESTED, raw), reached


def _repair_token(token: str, repairs: list[tuple[str, str]]) -> str:
    """A string, number or word inside of a list or object, as JSON."""
    if token.startswith('"'):
        decoded, kind = decode_string(token[1:-1])
        if kind != "repaired-backslash":
            return token
        repairs.append((kind, token))
        return json.dumps(decoded, ensure_ascii=False)
    if token in _LITERALS or is_json_number(token):
        return token
    number = lenient_number(token)
    repairs.append(("repaired-word" if number is None else "repaired-number", token))
    return number or "null"


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match is not None else at


def add_event(event: EventText, rows: Rows, tally: Tally, example: str) -> None:
    """Give an event its meaning and add it to ``rows``; an empty object means nothing and is passed over."""
    fields = event.fields
    if not fields and not event.args:
        return
    phase = fields.get("ph", NULL)
    if phase.kind is not Kind.STRING:
        tally.add("lost-event", example)
        return
    ph = decode_string(phase.inner)[0]
    ts_ns = _time(fields.get("ts", NULL), tally)
    # Some writers give metadata events no time, and they need none.
    if ts_ns is None and ph != "M":
        tally.add("lost-time", example)
        return
    duration = fields.get("dur", NULL)
    dur_ns = _time(duration, tally)
    if dur_ns is None and duration != NULL:
        tally.add("lost-duration", example)
    for name, value in event.args.items():
        _add_argument(name, value, rows, tally)
    for name, value in fields.items():
        if name not in EVENT_KEYS or name == "args":
            _add_argument(f"event:{name}" if name in event.args else name, value, rows, tally)
    rows.add(
        ph=ph,
        cat=_text(fields.get("cat", NULL), tally),
        name=_text(fields.get("name", NULL), tally),
        pid=_identity(fields.get("pid", NULL), rows),
        tid=_identity(fields.get("tid", NULL), rows),
        ts_ns=ts_ns,
        dur_ns=dur_ns,
        flow_id=_identity(fields.get("id", NULL), rows),
    )


def _text(value: Value, tally: Tally) -> str | None:
    if value.kind is Kind.STRING:
        text, kind = decode_string(value.inner)
        if kind is not None:
            tally.add(kind, value.inner)
        return text
    return None if value == NULL else value.raw


def _time(value: Value, tally: Tally) -> int | None:
    if value.kind is Kind.STRING:
        ns = decimal_us_to_ns(value.inner)
        if ns is not None:
            tally.add("repaired-time-in-quotes", value.inner)
        return ns
    if value.kind is not Kind.NUMBER:
        return None
    ns = split_sign_to_ns(value.raw)
    if ns is not None:
        tally.add("repaired-number", value.raw)
        return ns
    return decimal_us_to_ns(value.raw)


def _identity(value: Value, rows: Rows) -> int | None:
    if value == NULL:
        return None
    text = decode_string(value.inner)[0] if value.kind is Kind.STRING else value.raw
    number = whole_number(text) if value.kind in (Kind.STRING, Kind.NUMBER) else None
    if number is None or number < LABEL_LIMIT:
        return rows.label(text)
    return number


def _add_argument(name: str, value: Value, rows: Rows, tally: Tally) -> None:
    raw = value.raw
    if value.kind is Kind.NUMBER and not is_json_number(raw):
        tally.add("repaired-number", raw)
        raw = "null"
    elif value.kind is Kind.STRING and "\\" in raw:
        text, kind = decode_string(value.inner)
        if kind == "repaired-backslash":
            tally.add(kind, value.inner)
            raw = json.dumps(text, ensure_ascii=False)
    if name in INT_ARGS and value.kind in (Kind.NUMBER, Kind.STRING):
        number = whole_number(value.inner if value.kind is Kind.STRING else raw)
        if number is not None:
            rows.add_int(name, number)
            return
    rows.add_text(name, raw)
