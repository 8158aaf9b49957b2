"""The values of a block's keys as columns: numbers by arithmetic on words, texts as slices of the block."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from .event import EVENT_KEYS, strict_end
from .fastscan import PlainTexts
from .keys import IDENTITY_FIELDS, MAX_KEY_BYTES, MAX_KEYS, TEXT_FIELDS, TIME_FIELDS, UNKNOWN, KeyTable, initial_table
from .numbers import MAX_DIGITS, parse_decimal_ns, parse_whole
from .pieces import codes_of
from .raw import INT_ARGS, LABEL_BASE
from .values import decode_string, is_json_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .structure import Structure

_QUOTE: Final = ord('"')
_BACKSLASH: Final = ord("\\")
_MINUS: Final = ord("-")
_ZERO: Final = ord("0")
_NINE: Final = ord("9")


class Knowledge:
    """What the blocks of one file teach: their keys, and which argument texts have been found to be sound JSON.

    Threads share it. An entry that two of them make at once is made twice, which does no harm.
    """

    def __init__(self) -> None:
        self.keys = initial_table()
        self._verdict = np.zeros(1 << 12, np.uint8)
        self._lock = threading.Lock()
        self.plain = PlainTexts(_is_sound)
        self.phase_codes = codes_of(pl.Series([chr(code) for code in range(128)], dtype=pl.String))

    def learn_keys(self, fresh: set[str]) -> None:
        """Recognise these keys from now on, as far as there is room."""
        with self._lock:
            # Tables only ever grow, so a number keeps its meaning in every later table.
            names = sorted(fresh - set(self.keys.names))
            room = MAX_KEYS - len(self.keys.names)
            if names and room > 0:
                self.keys = self.keys.extended(names[:room])

    def unsound(self, texts: pl.Series, codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Which of these JSON texts, whose codes are given, cannot be kept as they are. Each is checked once."""
        if not len(codes):
            return np.zeros(0, np.bool_)
        top = int(codes.max())
        with self._lock:
            # Another thread may replace the array at the same time, so growing it is one step for all of them.
            verdict = self._verdict
            if top >= len(verdict):
                verdict = np.zeros(2 * top + 1, np.uint8)
                verdict[: len(self._verdict)] = self._verdict
                self._verdict = verdict
        known = verdict[codes]
        fresh = np.flatnonzero(known == 0)
        if len(fresh):
            different, first = np.unique(codes[fresh], return_index=True)
            strings = texts.gather(fresh[first]).to_list()
            verdict[different] = [1 if _is_sound(string) else 2 for string in strings]
            known = verdict[codes]
        unsound: NDArray[np.bool_] = known == 2
        return unsound


def _is_sound(raw: str) -> bool:
    """Whether a JSON text says what it means: valid, without NaN, and without doubtful backslashes."""
    if raw.startswith('"'):
        return "\\" not in raw or decode_string(raw[1:-1])[1] != "repaired-backslash"
    if raw[:1] not in ("[", "{"):
        return raw in ("null", "true", "false") or is_json_number(raw)
    try:
        return strict_end(raw, 0) == len(raw)
    except (ValueError, RecursionError):
        return False


@dataclass(slots=True)
class Columns:
    """Columns of all events of a block, odd ones included; rows are event indices, ascending in each column.

    ``repairs`` holds what had to be repaired in names: kind, example, and the events.
    """

    height: int
    odd: NDArray[np.bool_]
    texts: dict[str, tuple[NDArray[np.int64], NDArray[np.uint32]]] = field(default_factory=dict)
    numbers: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]] = field(default_factory=dict)
    int_args: list[tuple[str, NDArray[np.int64], NDArray[np.int64]]] = field(default_factory=list)
    text_args: list[tuple[str, NDArray[np.int64], NDArray[np.uint32]]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    repairs: list[tuple[str, str, NDArray[np.int64]]] = field(default_factory=list)


class _Reader:
    """Reads the columns of one block; the state that its steps share."""

    def __init__(self, block: bytes, found: Structure, knowledge: Knowledge) -> None:
        self.block = block
        self.found = found
        self.knowledge = knowledge
        self.out = Columns(len(found.start), found.odd.copy())

    def read(self) -> Columns:
        found, out = self.found, self.out
        key, table = self._find_keys()
        names, fields = table.names, len(table.names)
        column = np.where(found.in_args, _argument_columns(table)[key], key)
        order = np.argsort(column.astype(np.uint8 if fields + len(EVENT_KEYS) < 256 else np.uint16), kind="stable")
        column = column[order]
        self.event = found.key_event[order]
        self.start, self.end = found.value_start[order], found.value_end[order]
        self.string_end = found.string_end[order]
        self.first = found.text[self.start]
        self.repeated = repeated = np.flatnonzero((column[1:] == column[:-1]) & (self.event[1:] == self.event[:-1]))
        out.odd[self.event[repeated]] = True
        self._check_strings()
        sizes = np.bincount(column, minlength=fields + len(EVENT_KEYS))
        bounds = np.concatenate(([0], np.cumsum(sizes)))
        span = {index: slice(int(bounds[index]), int(bounds[index + 1])) for index in np.flatnonzero(sizes).tolist()}

        index_of = {name: number for number, name in enumerate(names)}
        empty = slice(0, 0)
        self._times(int(bounds[1]), int(bounds[len(TIME_FIELDS)]))
        numeric_end = int(bounds[index_of[TEXT_FIELDS[0]]])
        value, is_int, quoted = self._whole_numbers(int(bounds[len(TIME_FIELDS)]), numeric_end)
        offset = int(bounds[len(TIME_FIELDS)])
        labels: list[tuple[str, NDArray[np.int64]]] = []
        texts: list[tuple[str, NDArray[np.int64]]] = []
        for index, where in span.items():
            name = names[index] if index < fields else EVENT_KEYS[index - fields]
            rows = self.event[where]
            if index < fields and name in EVENT_KEYS:
                if name in IDENTITY_FIELDS:
                    local = slice(where.start - offset, where.stop - offset)
                    self._identities(name, where, value[local], is_int[local], quoted[local], labels)
                elif name == "args":
                    plain = ~found.opens_args[order[where]]
                    out.odd[rows[plain]] = True
            elif name in INT_ARGS:
                local = slice(where.start - offset, where.stop - offset)
                whole = is_int[local]
                if whole.all():
                    out.int_args.append((name, rows, value[local]))
                else:
                    if whole.any():
                        out.int_args.append((name, rows[whole], value[local][whole]))
                    texts.append((name, np.flatnonzero(~whole) + where.start))
            else:
                texts.append((name, np.arange(where.start, where.stop)))
        self._phases(span.get(index_of["ph"], empty))
        self._strings(span.get(index_of["cat"], empty), span.get(index_of["name"], empty), labels, texts)
        self._check_present()
        return out

    def _find_keys(self) -> tuple[NDArray[np.int64], KeyTable]:
        """Number the keys; events with keys that cannot be learned become odd."""
        found = self.found
        table = self.knowledge.keys
        key = table.find(found.text, found.words, found.key_start, found.key_end)
        unknown = np.flatnonzero(key == UNKNOWN)
        if len(unknown):
            starts, ends = found.key_start[unknown].tolist(), found.key_end[unknown].tolist()
            fresh = {self.block[start:end] for start, end in zip(starts, ends, strict=True)}
            self.knowledge.learn_keys({name for raw in fresh if (name := _key_name(raw)) is not None})
            table = self.knowledge.keys
            key[unknown] = table.find(found.text, found.words, found.key_start[unknown], found.key_end[unknown])
            unknown = unknown[key[unknown] == UNKNOWN]
            self.out.odd[found.key_event[unknown]] = True
            # Without a column they would be out of range; their events are read by the slow lane anyway.
            key[unknown] = len(table.names) - 1
        return key.astype(np.int64), table

    def _check_strings(self) -> None:
        """A string must fill its value: characters behind its quote mean that a quote was not escaped."""
        quoted = self.first == _QUOTE
        self.out.odd[self.event[quoted & (self.string_end != self.end)]] = True

    def _times(self, dur_begin: int, dur_end: int) -> None:
        """Read ts and dur, the first two columns."""
        found = self.found
        both = slice(0, dur_end)
        value, ok = parse_decimal_ns(found.text, found.words, self.start[both], self._bounded(both))
        self.out.odd[self.event[both][~ok]] = True
        for name, where in (("ts_ns", slice(0, dur_begin)), ("dur_ns", slice(dur_begin, dur_end))):
            self.out.numbers[name] = (self.event[where], value[where])

    def _bounded(self, where: slice) -> NDArray[np.int64]:
        """Ends of values that are never before their start, also where the structure is odd."""
        return np.maximum(self.end[where], self.start[where])

    def _whole_numbers(self, begin: int, stop: int) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Parse a run of values as whole numbers, in quotes or not."""
        found = self.found
        where = slice(begin, stop)
        quoted = self.first[where] == _QUOTE
        start, end = self.start[where], self._bounded(where)
        if quoted.any():
            start, end = start + quoted, np.maximum(end - quoted, start + quoted)
        value, ok = parse_whole(found.text, found.words, start, end)
        long = np.flatnonzero(~ok & (end - start > MAX_DIGITS))
        if len(long):
            char = found.text[start[long]]
            number = (char == _MINUS) | ((char >= _ZERO) & (char <= _NINE))
            self.out.odd[self.event[where][long[number]]] = True
        return value, ok, quoted

    def _identities(
        self,
        name: str,
        where: slice,
        value: NDArray[np.int64],
        is_int: NDArray[np.bool_],
        quoted: NDArray[np.bool_],
        labels: list[tuple[str, NDArray[np.int64]]],
    ) -> None:
        """pid, tid and id: whole numbers, or texts that become labels; anything else is odd."""
        rows = self.event[where]
        column = {"id": "flow_id"}.get(name, name)
        self.out.odd[rows[~is_int & ~quoted]] = True
        self.out.numbers[column] = (rows, value.copy())
        if not is_int.all():
            labels.append((column, np.flatnonzero(~is_int & quoted) + where.start))

    def _phases(self, where: slice) -> None:
        """Read ph, which is one character nearly always: look it up instead of slicing."""
        rows = self.event[where]
        short = (self.first[where] == _QUOTE) & (self.end[where] - self.start[where] == 3)
        char = self.found.text[self.start[where] + 1]
        short &= (char < 128) & (char != _BACKSLASH)
        self.out.odd[rows[~short]] = True
        char = np.where(short, char, 0)
        self.out.texts["ph"] = (rows, self.knowledge.phase_codes[char])

    def _strings(
        self,
        cat: slice,
        name: slice,
        labels: list[tuple[str, NDArray[np.int64]]],
        texts: list[tuple[str, NDArray[np.int64]]],
    ) -> None:
        """Slice all texts out of the block in one call, then share them out."""
        out = self.out
        ranges = [np.arange(cat.start, cat.stop), np.arange(name.start, name.stop)]
        inner = np.concatenate([*(at for _, at in labels), *ranges])
        out.odd[self.event[inner[self.first[inner] != _QUOTE]]] = True
        raw = np.concatenate([at for _, at in texts]) if texts else np.empty(0, np.int64)
        starts = np.concatenate((self.start[inner] + 1, self.start[raw]))
        lengths = np.maximum(np.concatenate((self.end[inner] - 1, self.end[raw])) - starts, 0)
        # Spans of odd events may lie anywhere, even inside a character.
        lengths[out.odd[self.event[np.concatenate((inner, raw))]]] = 0
        spans = pl.DataFrame([pl.Series("start", starts), pl.Series("length", lengths)])
        whole = pl.lit(pl.Series([self.block], dtype=pl.Binary))
        sliced = spans.select(whole.bin.slice(pl.col("start"), pl.col("length")).cast(pl.String)).to_series()
        used = 0
        for column, at in labels:
            self._label(column, at, sliced.slice(used, len(at)))
            used += len(at)
        rows = self.event[inner[used:]]
        names = used
        argument_start = names + len(rows)
        if len(self.found.backslashes):
            sliced = pl.concat([self._decoded(rows, sliced.slice(names, len(rows))), sliced.slice(argument_start)])
            names, argument_start = 0, len(rows)
        codes = codes_of(sliced)
        split = names + cat.stop - cat.start
        out.texts["cat"] = (self.event[cat], codes[names:split])
        out.texts["name"] = (self.event[name], codes[split:argument_start])
        codes = codes[argument_start:]
        out.odd[self.event[raw[self.knowledge.unsound(sliced.slice(argument_start), codes)]]] = True
        used = 0
        for argument, at in texts:
            out.text_args.append((argument, self.event[at], codes[used : used + len(at)]))
            used += len(at)

    def _label(self, column: str, at: NDArray[np.int64], strings: pl.Series) -> None:
        """Number the texts of an identity field."""
        out = self.out
        index = {label: number for number, label in enumerate(out.labels)}
        codes = [index.setdefault(decode_string(raw)[0], len(index)) for raw in strings.to_list()]
        rows, values = out.numbers[column]
        values[np.searchsorted(rows, self.event[at])] = LABEL_BASE + np.array(codes, np.int64)
        out.labels[:] = index

    def _decoded(self, rows: NDArray[np.int64], strings: pl.Series) -> pl.Series:
        """Texts with their escapes resolved."""
        escaped = strings.str.contains("\\", literal=True)
        if not escaped.any():
            return strings
        different = strings.filter(escaped).unique(maintain_order=True).to_list()
        decoded = [decode_string(raw) for raw in different]
        for kind in {kind for _, kind in decoded if kind is not None}:
            affected = [raw for raw, (_, its_kind) in zip(different, decoded, strict=True) if its_kind == kind]
            self.out.repairs.append((kind, affected[0], rows[strings.is_in(affected).to_numpy()]))
        return strings.replace(different, [text for text, _ in decoded])

    def _check_present(self) -> None:
        """An event without ph or ts is no plain case."""
        out = self.out
        for rows in (out.texts["ph"][0], out.numbers["ts_ns"][0]):
            if len(rows) != out.height or len(self.repeated):
                present = np.zeros(out.height, np.bool_)
                present[rows] = True
                out.odd |= ~present


def _key_name(raw: bytes) -> str | None:
    """The key, if it is one that a table can hold."""
    if not 0 < len(raw) <= MAX_KEY_BYTES or b"\\" in raw:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _argument_columns(table: KeyTable) -> NDArray[np.int64]:
    """Column of each key when it is an argument: its own, unless it is also the name of an event field."""
    count = len(table.names)
    columns = np.arange(count)
    for number, name in enumerate(EVENT_KEYS):
        columns[table.names.index(name)] = count + number
    return columns


def read_columns(block: bytes, found: Structure, knowledge: Knowledge) -> Columns:
    """Read the values of all events of a block; those that are not plain are marked as odd."""
    return _Reader(block, found, knowledge).read()
