"""On which line each key and value of a TOML document stands.

``tomllib`` reads values and forgets where they were. This module walks the same text once more and keeps only the
places. It expects a document that ``tomllib`` has accepted: it finds the ends of strings, arrays and tables, and leaves
every question of validity and meaning to ``tomllib``.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from typing import Any, Final

_BLANK: Final = " \t\r"
_SPACE: Final = " \t\r\n"
_BARE_END: Final = ",]}#\n"


@dataclass(slots=True)
class Place:
    """Where a key or value stands, and the places of what is inside.

    Attributes:
        line: Line of the key; for an element of an array, line of its value; for a table of an array of tables, line
            of its header. The first line is 1.
        keys: Places of the keys of a table.
        items: Places of the elements of an array.
    """

    line: int
    keys: dict[str, Place] = field(default_factory=dict)
    items: list[Place] = field(default_factory=list)

    def at(self, *path: str | int) -> int:
        """Line of what the path leads to, or of the last thing on the path that has a place."""
        place = self
        for step in path:
            if isinstance(step, int):
                if step >= len(place.items):
                    break
                place = place.items[step]
            else:
                if step not in place.keys:
                    break
                place = place.keys[step]
        return place.line


def locate(text: str) -> Place:
    """The places of a valid TOML document."""
    return _Walk(text.replace("\r\n", "\n")).document()


def places_of(document: dict[str, Any], line: int) -> Place:
    """The places of a document that is no text of its own: everything in it stands on one line."""

    def place(value: Any) -> Place:
        if isinstance(value, dict):
            return Place(line, keys={key: place(inner) for key, inner in value.items()})
        return Place(line, items=[place(inner) for inner in value] if isinstance(value, list) else [])

    return place(document)


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1

    def document(self) -> Place:
        root = table = Place(1)
        while self._skip(_SPACE):
            if self.text.startswith("[[", self.at):
                table = self._header(root, "[[", "]]")
            elif self.text[self.at] == "[":
                table = self._header(root, "[", "]")
            else:
                self._pair(table)
        return root

    def _header(self, root: Place, opening: str, closing: str) -> Place:
        line = self.line
        self._move(len(opening))
        *parents, last = self._key()
        self._move(len(closing))
        table = root
        for part in parents:
            table = _newest(table.keys.setdefault(part, Place(line)))
        if opening == "[":
            return table.keys.setdefault(last, Place(line))
        array = table.keys.setdefault(last, Place(line))
        array.items.append(Place(line))
        return array.items[-1]

    def _pair(self, table: Place) -> None:
        line = self.line
        *parents, last = self._key()
        self._move(1)  # the equals sign
        for part in parents:
            table = table.keys.setdefault(part, Place(line))
        table.keys[last] = self._value(line)

    def _key(self) -> list[str]:
        """A dotted key, up to the character after it."""
        parts = []
        while True:
            self._skip(_BLANK)
            start = self.at
            if self.text[start] in "\"'":
                self._string()
                quoted = self.text[start : self.at]
                parts.append(next(iter(tomllib.loads(f"{quoted} = 0"))))
            else:
                while self.text[self.at] not in " \t.=]":
                    self.at += 1
                parts.append(self.text[start : self.at])
            self._skip(_BLANK)
            if self.text[self.at] != ".":
                return parts
            self._move(1)

    def _value(self, line: int | None = None) -> Place:
        self._skip(_BLANK)
        place = Place(self.line if line is None else line)
        first = self.text[self.at]
        if first == "[":
            self._move(1)
            while self._skip(_SPACE + ",") and self.text[self.at] != "]":
                place.items.append(self._value())
            self._move(1)
        elif first == "{":
            self._move(1)
            while self._skip(_SPACE + ",") and self.text[self.at] != "}":
                self._pair(place)
            self._move(1)
        elif first in "\"'":
            self._string()
        else:
            while self.at < len(self.text) and self.text[self.at] not in _BARE_END:
                self.at += 1
        return place

    def _string(self) -> None:
        quote = self.text[self.at]
        mark = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self._move(len(mark))
        while not self.text.startswith(mark, self.at):
            self._move(2 if quote == '"' and self.text[self.at] == "\\" else 1)
        self._move(len(mark))
        # Up to two quotes before the closing three belong to the text.
        while len(mark) == 3 and self.text.startswith(quote, self.at):
            self._move(1)

    def _skip(self, characters: str) -> bool:
        """Pass ``characters`` and comments; whether anything is left."""
        while self.at < len(self.text):
            if self.text[self.at] in characters:
                self._move(1)
            elif self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return True
        return False

    def _move(self, count: int) -> None:
        self.line += self.text.count("\n", self.at, self.at + count)
        self.at += count


def _newest(place: Place) -> Place:
    """A header path through an array of tables means its newest table."""
    return place.items[-1] if place.items else place
