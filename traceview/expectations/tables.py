"""Read the tables of a TOML document key by key, collecting every problem with its line instead of stopping at one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, Final

from traceview.errors import TraceviewError
from traceview.expectations.lines import Place, locate
from traceview.expectations.vocabulary import nearest

if TYPE_CHECKING:
    from collections.abc import Collection

MOST_BYTES: Final = 1 << 20
"""A larger file is no file of expectations."""

MOST_PROBLEMS: Final = 50
_POSITION: Final = re.compile(r" \(at (?:line (?P<line>\d+), column (?P<column>\d+)|(?P<end>end of document))\)$")
_MOST_SHOWN: Final = 60
_MOST_DEPTH: Final = 20


class ExpectationsError(TraceviewError):
    """A file of expectations cannot be used; ``lines`` has one line per problem, all of them at once."""

    def __init__(self, code: str, *, where: str, lines: tuple[str, ...]) -> None:
        self._lines = lines
        super().__init__(code, where=where, why="; ".join(lines))

    @property
    def lines(self) -> tuple[str, ...]:
        """One line per problem, with file and line."""
        return self._lines

    def __str__(self) -> str:
        return "; ".join(self._lines)


@dataclass(slots=True)
class Problems:
    """What is wrong with one file, in the order in which it is found."""

    path: str
    found: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        """Note a problem."""
        self.found.append((line, text))

    def raise_if_any(self) -> None:
        """Raise all problems as one error, in the order of their lines."""
        if not self.found:
            return
        lines = [f"{self.path}:{line}: {text}" for line, text in sorted(self.found, key=lambda one: one[0])]
        if len(lines) > MOST_PROBLEMS:
            lines[MOST_PROBLEMS:] = [f"{self.path}: and {len(lines) - MOST_PROBLEMS} more problems."]
        raise ExpectationsError("bad-expectations", where=self.path, lines=tuple(lines))


def read_text(path: str, *, if_missing: str) -> str:
    """The text of a file.

    Args:
        path: The file.
        if_missing: What to do where there is none, to follow "Check the path, or".

    Raises:
        ExpectationsError: it is missing, a folder, unreadable, too large, or not UTF-8.
    """

    def refuse(code: str, text: str) -> ExpectationsError:
        return ExpectationsError(code, where=path, lines=(f"{path}: {text}",))

    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise refuse("no-such-file", f"no such file. Check the path, or {if_missing}.") from None
    except IsADirectoryError:
        raise refuse("is-a-folder", "this is a folder. Name the file in it.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise refuse("unreadable", f"cannot be read ({reason}). Check its permissions.") from None
    if len(data) > MOST_BYTES:
        raise refuse("too-large", "is larger than 1 MiB, so it is no file of expectations. Was a trace meant?")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ExpectationsError(
            "not-utf-8", where=path, lines=(f"{path}:{line}: not UTF-8 text, as TOML must be. Save it as UTF-8.",)
        ) from None


def parse(path: str, *, if_missing: str) -> tuple[dict[str, Any], Place]:
    """The document of a file, and where everything in it stands; arguments as for :func:`read_text`.

    Raises:
        ExpectationsError: the file cannot be read or is not TOML; the message has line and column.
    """
    text = read_text(path, if_missing=if_missing)
    try:
        document = tomllib.loads(text)
        if _has_large_number(document):
            raise ValueError  # noqa: TRY301 - the same as what Python refuses to read
        return document, locate(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        found = _POSITION.search(message)
        where = f"{path}:{text.count(chr(10)) + 1}"
        if found:
            message = message[: found.start()]
            if found["line"]:
                where = f"{path}:{found['line']}:{found['column']}"
        raise ExpectationsError("not-toml", where=where, lines=(f"{where}: not TOML: {message}.",)) from None
    except RecursionError:
        raise ExpectationsError("not-toml", where=path, lines=(f"{path}: nested too deeply.",)) from None
    except ValueError:
        # Python reads no decimal number of thousands of digits, and writes none that hexadecimal ones stand for.
        line = f"{path}: a whole number in it needs more than 64 bits."
        raise ExpectationsError("not-toml", where=path, lines=(line,)) from None


def _has_large_number(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_large_number, value.values()))
    if isinstance(value, list):
        return any(map(_has_large_number, value))
    return isinstance(value, int) and value.bit_length() > 64


def toml_values(document: Mapping[Any, Any], line: int, problems: Problems) -> dict[str, Any]:
    """A copy of a mapping in the types that ``tomllib`` returns; what TOML cannot hold is a problem.

    Args:
        document: Mappings, sequences and plain values.
        line: Where problems are.
        problems: Where they go.
    """

    def convert(value: Any, where: str, depth: int) -> Any:
        if depth > _MOST_DEPTH:
            problems.add(line, f"{where[:_MOST_SHOWN]}: nested too deeply.")
        elif isinstance(value, Mapping):
            wrong = next((key for key in value if not isinstance(key, str)), None)
            if wrong is not None:
                problems.add(line, f"{where or 'expect'}: a key must be a text, not {type(wrong).__name__}.")
                return {}
            return {key: convert(inner, f"{where}.{key}".lstrip("."), depth + 1) for key, inner in value.items()}
        elif isinstance(value, list | tuple):
            return [convert(inner, f"{where}[{at}]", depth + 1) for at, inner in enumerate(value)]
        elif isinstance(value, str | bool | int | float | date | time):
            return value
        else:
            problems.add(line, f"{where} is of type {type(value).__name__}, which TOML cannot hold.")
        return None

    found: dict[str, Any] = convert(document, "", 0)
    return found


class Table:
    """One table of the document; each key is taken once, what is left is unknown.

    Args:
        values: The table.
        place: Where it stands.
        title: How messages call it, e.g. ``[[expect]]``.
        problems: Where problems go.
    """

    def __init__(self, values: dict[str, Any], place: Place, title: str, problems: Problems) -> None:
        self.values = values
        self.place = place
        self.title = title
        self.problems = problems
        self._taken: list[str] = []

    @property
    def line(self) -> int:
        """Line of the header."""
        return self.place.line

    def problem(self, text: str, key: str | None = None, at: int | None = None) -> None:
        """Note a problem with a key (or with one element of its list), or with the whole table."""
        path = [part for part in (key, at) if part is not None]
        self.problems.add(self.place.at(*path) if key else self.line, text)

    def text(self, key: str, *, known: Collection[str] | None = None) -> str | None:
        """A text that is not empty; one of ``known`` if given. ``None`` if absent or wrong."""
        value = self._take(key)
        if value is None:
            return None
        if not isinstance(value, str):
            self.problem(f"{key} must be a text, not {_shown(value)}.", key)
            return None
        if not value.strip():
            self.problem(f"{key} is empty. Write a text, or leave it out.", key)
            return None
        if known is not None and value not in known:
            self.problem(unknown_word(value, key, known), key)
            return None
        return value

    def texts(self, key: str, known: Collection[str]) -> tuple[str, ...]:
        """One text or a list of them, each one of ``known``; empty if absent or wrong."""
        value = self._take(key)
        if value is None:
            return ()
        parts = value if isinstance(value, list) else [value]
        if not parts:
            self.problem(f"{key} is an empty list: nothing can satisfy it. Name at least one, or leave it out.", key)
        good = []
        for at, part in enumerate(parts):
            line = self.place.at(key, at) if isinstance(value, list) else self.place.at(key)
            if not isinstance(part, str):
                self.problems.add(line, f"{key} must be a text or a list of texts, not {_shown(part)}.")
            elif not part.strip():
                self.problems.add(line, f"{key} is empty. Write one of {', '.join(known)}, or leave it out.")
            elif part not in known:
                self.problems.add(line, unknown_word(part, key, known))
            else:
                good.append(part)
        return tuple(dict.fromkeys(good))

    def globs(self, key: str) -> tuple[str, ...]:
        """One text or a list of them, of any words; empty if absent or wrong."""
        value = self._take(key)
        if value is None:
            return ()
        parts = value if isinstance(value, list) else [value]
        good = [part for part in parts if isinstance(part, str) and part.strip()]
        if not parts or len(good) < len(parts):
            self.problem(f"{key} must be a text or a list of texts, none of them empty.", key)
        return tuple(dict.fromkeys(good))

    def flag(self, key: str) -> bool | None:
        """``true`` or ``false``."""
        value = self._take(key)
        if value is None or isinstance(value, bool):
            return value
        self.problem(f"{key} must be true or false, not {_shown(value)}.", key)
        return None

    def share(self, key: str, *, zero: bool) -> float | None:
        """A share of one; 0 only where ``zero`` says so."""
        value = self._take(key)
        if value is None:
            return None
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not (0 <= value <= 1) or (value == 0 and not zero):
            span = "from 0 to 1" if zero else "above 0 and at most 1"
            hint = f" For {value} % write {value / 100:g}." if number and 1 < value <= 100 else ""
            self.problem(f"{key} must be a number {span}, not {_shown(value)}.{hint}", key)
            return None
        return float(value)

    def count(self, key: str, *, least: int) -> int | None:
        """A whole number, at least ``least``."""
        value = self._take(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            self.problem(f"{key} must be a whole number, {least} or more, not {_shown(value)}.", key)
            return None
        return value

    def day(self, key: str) -> date | str | None:
        """A date, or the text ``"never"``."""
        value = self._take(key)
        if value is None:
            return None
        if value == "never":
            return "never"
        if isinstance(value, date) and not isinstance(value, datetime):
            return value
        hint = ""
        if isinstance(value, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
            hint = f" Write it without quotes: {key} = {value}."
        self.problem(f'{key} must be a date such as 2027-06-30, or "never", not {_shown(value)}.{hint}', key)
        return None

    def table(self, key: str) -> Table | None:
        """A table inside."""
        value = self._take(key)
        if value is None:
            return None
        if isinstance(value, dict):
            title = f"{key} of {self.title}" if self.title else f"[{key}]"
            return Table(value, self.place.keys[key], title, self.problems)
        # Inside a list of tables, [when] alone would be a table of the file.
        how = f"{key} = {{ ... }}" if self.title else f"[{key}]"
        self.problem(f"{key} must be a table: write {how}.", key)
        return None

    def tables(self, key: str) -> list[Table]:
        """An array of tables inside."""
        value = self._take(key)
        if value is None:
            return []
        if isinstance(value, list) and all(isinstance(part, dict) for part in value):
            places = self.place.keys[key].items
            return [Table(part, place, f"[[{key}]]", self.problems) for part, place in zip(value, places, strict=True)]
        self.problem(f"{key} must be a list of tables: write [[{key}]] with two brackets.", key)
        return []

    def skip(self, key: str) -> None:
        """Take a key without looking at its value."""
        self._take(key)

    def has(self, key: str) -> bool:
        """The key is written, whatever its value."""
        return key in self.values

    def no_more(self) -> None:
        """Every key that nobody took is unknown."""
        for key in self.values:
            if key in self._taken:
                continue
            near = nearest(key, self._taken)
            place = "at the top of the file" if not self.title else f"in {self.title}"
            hint = f'Did you mean "{near}"?' if near else f"Known: {', '.join(self._taken)}."
            self.problem(f'unknown key "{key[:_MOST_SHOWN]}" {place}. {hint}', key)

    def _take(self, key: str) -> Any:
        self._taken.append(key)
        return self.values.get(key)


def unknown_word(word: str, key: str, known: Collection[str]) -> str:
    """The message for a word that ``key`` cannot have."""
    near = nearest(word, known)
    hint = f'Did you mean "{near}"?' if near else f"Known: {', '.join(known)}."
    return f'{key} cannot be "{word[:_MOST_SHOWN]}". {hint}'


def _shown(value: Any) -> str:
    """A wrong value in words: its kind, and itself if it is short."""
    kinds: list[tuple[type | tuple[type, ...], str]] = [
        (bool, "the truth value"), (int, "the number"), (float, "the number"), (str, "the text"),
        (list, "a list"), (dict, "a table"), ((date, time), "the date or time"),
    ]  # fmt: skip
    kind = next(name for type_, name in kinds if isinstance(value, type_))
    if isinstance(value, list | dict):
        return kind
    text = str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)
    return f"{kind} {text[:_MOST_SHOWN]}"
