"""Rows of one stretch of a file, and how the stretches of a file become one :class:`~.raw.RawTrace`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from .packing import PackedColumn, PackedRows
from .raw import EVENT_COLUMNS, LABEL_BASE, NULL, NULL_CODE, EventColumns, RawTrace

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from .tally import Tally

TEXT_COLUMNS: Final = ("ph", "cat", "name")
NUMBER_COLUMNS: Final = ("pid", "tid", "ts_ns", "dur_ns", "flow_id")
LABELLED_COLUMNS: Final = ("pid", "tid", "flow_id")
MAX_ARGUMENT_NAMES: Final = 4096
"""Different argument names of one file; a real one has fewer than 200."""

_MAX_LABELS: Final = 1 << 40


@dataclass(slots=True)
class Piece:
    """The rows of one stretch of a file.

    Attributes:
        height: Number of rows.
        texts: ``ph``, ``cat`` and ``name`` as codes of Categorical (uint32), or :data:`NULL_CODE`.
        numbers: The integer columns (int64), or :data:`NULL`; labels are ``LABEL_BASE`` + index into ``labels`` of
            this piece.
        int_args: Argument name to rows (counted from the start of the piece) and values.
        text_args: Argument name to rows and codes of Categorical.
        labels: Texts of ``pid``, ``tid`` and ``id``.
        left_out: Arguments dropped because they had too many different names.
    """

    height: int
    texts: dict[str, NDArray[np.uint32]]
    numbers: dict[str, NDArray[np.int64]]
    int_args: dict[str, tuple[NDArray[Any], NDArray[np.int64]]]
    text_args: dict[str, tuple[NDArray[Any], NDArray[np.uint32]]]
    labels: list[str] = field(default_factory=list)
    left_out: int = 0


def codes_of(texts: pl.Series) -> NDArray[np.uint32]:
    """The codes of texts as Categorical. They are valid as long as some Categorical series exists."""
    physical = texts.cast(pl.Categorical).to_physical()
    if physical.null_count():
        physical = physical.fill_null(NULL_CODE)
    return physical.to_numpy()


class Rows:
    """Rows collected one by one; :meth:`piece` turns them into columns."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in EVENT_COLUMNS}
        self.int_args: dict[str, tuple[list[int], list[int]]] = {}
        self.text_args: dict[str, tuple[list[int], list[str]]] = {}
        self._labels: dict[str, int] = {}
        self.left_out = 0

    def __len__(self) -> int:
        return len(self.columns["ph"])

    def label(self, text: str) -> int:
        """The number that stands for a text ``pid``, ``tid`` or ``id``."""
        return LABEL_BASE + self._labels.setdefault(text, len(self._labels))

    def add_int(self, name: str, value: int) -> None:
        """Give the row that comes next a whole-number argument."""
        rows, values = self.int_args.setdefault(name, ([], []))
        rows.append(len(self))
        values.append(value)

    def add_text(self, name: str, text: str) -> None:
        """Give the row that comes next an argument as JSON text."""
        if name not in self.text_args and len(self.text_args) >= MAX_ARGUMENT_NAMES:
            self.left_out += 1
            return
        rows, values = self.text_args.setdefault(name, ([], []))
        rows.append(len(self))
        values.append(text)

    def add(self, **cells: Any) -> None:
        """Finish the row."""
        for name, column in self.columns.items():
            column.append(cells[name])

    def _coded_texts(self) -> dict[str, tuple[NDArray[Any], NDArray[np.uint32]]]:
        """Text arguments by name; all are encoded in one go, because a hostile event can have thousands of names."""
        everything = [text for _, values in self.text_args.values() for text in values]
        codes = codes_of(pl.Series(everything, dtype=pl.String))
        coded, used = {}, 0
        for name, (rows, values) in self.text_args.items():
            coded[name] = (np.array(rows, np.uint32), codes[used : used + len(values)])
            used += len(values)
        return coded

    def piece(self) -> Piece:
        """The rows as columns."""
        columns = self.columns
        return Piece(
            height=len(self),
            texts={name: codes_of(pl.Series(columns[name], dtype=pl.String)) for name in TEXT_COLUMNS},
            numbers={
                name: np.array([NULL if cell is None else cell for cell in columns[name]], np.int64)
                for name in NUMBER_COLUMNS
            },
            int_args={
                name: (np.array(rows, np.uint32), np.array(values, np.int64))
                for name, (rows, values) in self.int_args.items()
            },
            text_args=self._coded_texts(),
            labels=list(self._labels),
            left_out=self.left_out,
        )


def interleave(first: Piece, first_at: NDArray[np.int64], second: Piece, second_at: NDArray[np.int64]) -> Piece:
    """The rows of two pieces as one piece, each row at the position given for it (a permutation in all)."""
    height = first.height + second.height
    shift = len(first.labels)

    def placed(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        out = np.empty(height, one.dtype)
        out[first_at] = one
        out[second_at] = other
        return out

    def merged(
        one: dict[str, tuple[NDArray[Any], NDArray[Any]]], other: dict[str, tuple[NDArray[Any], NDArray[Any]]]
    ) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
        out = {}
        for name in {**one, **other}:
            parts = [
                (at[cells[name][0]], cells[name][1])
                for at, cells in ((first_at, one), (second_at, other))
                if name in cells
            ]
            rows = np.concatenate([part[0] for part in parts])
            order = np.argsort(rows, kind="stable")
            out[name] = (rows[order], np.concatenate([part[1] for part in parts])[order])
        return out

    numbers = {}
    for name in NUMBER_COLUMNS:
        other = second.numbers[name]
        if name in LABELLED_COLUMNS:
            other = np.where(_is_label(other), other + shift, other)
        numbers[name] = placed(first.numbers[name], other)
    return Piece(
        height=height,
        texts={name: placed(first.texts[name], second.texts[name]) for name in TEXT_COLUMNS},
        numbers=numbers,
        int_args=merged(first.int_args, second.int_args),
        text_args=merged(first.text_args, second.text_args),
        labels=first.labels + second.labels,
        left_out=first.left_out + second.left_out,
    )


def _is_label(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (values < LABEL_BASE + _MAX_LABELS) & (values != NULL)
    return found


class _ArgumentColumn:
    """Rows and values of one argument."""

    __slots__ = ("rows", "values")

    def __init__(self, values: PackedColumn) -> None:
        self.rows = PackedRows()
        self.values = values

    def append(self, rows: NDArray[Any], values: NDArray[Any]) -> None:
        self.rows.append(rows)
        self.values.append(values)


def _numbers() -> PackedColumn:
    return PackedColumn(np.int64, NULL)


def _codes() -> PackedColumn:
    return PackedColumn(np.uint32, NULL_CODE)


class Assembly:
    """Collects the pieces of a file in file order."""

    def __init__(self) -> None:
        self.height = 0
        # Codes are valid while some Categorical series exists: this one does until the end.
        self._anchor = pl.Series([""], dtype=pl.Categorical)
        self._columns = {name: _codes() if name in TEXT_COLUMNS else _numbers() for name in EVENT_COLUMNS}
        self._ints: dict[str, _ArgumentColumn] = {}
        self._strings: dict[str, _ArgumentColumn] = {}
        self._labels: dict[str, int] = {}
        self._names: set[str] = set()

    def append(self, piece: Piece, tally: Tally) -> None:
        """Add the piece that follows in the file; its arrays may be changed."""
        if piece.labels:
            self._relabel(piece)
        tally.add("lost-argument", "too many different argument names", piece.left_out)
        for name in TEXT_COLUMNS:
            self._columns[name].append(piece.texts[name])
        for name in NUMBER_COLUMNS:
            self._columns[name].append(piece.numbers[name])
        for name, (rows, values) in piece.int_args.items():
            if len(rows) and self._admit(name, len(rows), tally):
                self._argument(self._ints, name, _numbers).append(rows + self.height, values)
        for name, (rows, codes) in piece.text_args.items():
            if len(rows) and self._admit(name, len(rows), tally):
                self._argument(self._strings, name, _codes).append(rows + self.height, codes)
        self.height += piece.height

    def finish(self, head: Mapping[str, Any], tally: Tally, *, truncated: bool, damage: str = "") -> RawTrace:
        """The whole file."""
        return RawTrace(
            events=_Events(self._columns, self.height, self._anchor),
            int_args=_Arguments(self._ints, self._anchor),
            text_args=_Arguments(self._strings, self._anchor),
            labels=tuple(self._labels),
            head=head,
            counts=tally.as_dict(),
            truncated=truncated,
            damage=damage,
        )

    def _admit(self, name: str, cases: int, tally: Tally) -> bool:
        if name not in self._names:
            if len(self._names) >= MAX_ARGUMENT_NAMES:
                tally.add("lost-argument", name, cases)
                return False
            self._names.add(name)
        return True

    @staticmethod
    def _argument(
        columns: dict[str, _ArgumentColumn], name: str, packed: Callable[[], PackedColumn]
    ) -> _ArgumentColumn:
        if name not in columns:
            columns[name] = _ArgumentColumn(packed())
        return columns[name]

    def _relabel(self, piece: Piece) -> None:
        """Replace the label numbers of the piece by those of the file."""
        table = np.full(len(piece.labels), -1, np.int64)
        for name in LABELLED_COLUMNS:
            values = piece.numbers[name]
            labelled = np.flatnonzero(_is_label(values))
            if not len(labelled):
                continue
            index = values[labelled] - LABEL_BASE
            for used in np.unique(index).tolist():
                table[used] = self._labels.setdefault(piece.labels[used], len(self._labels))
            values[labelled] = LABEL_BASE + table[index]


def _series(name: str, values: NDArray[Any]) -> pl.Series:
    """A column of numbers or codes as a series, with its nulls."""
    series = pl.Series(name, values)
    null = NULL_CODE if values.dtype == np.uint32 else NULL
    missing = values == null
    if missing.any():
        series = pl.select(pl.when(pl.Series(~missing)).then(series).alias(name)).to_series()
    return series.cat.to(pl.Categorical) if values.dtype == np.uint32 else series


class _Events(EventColumns):
    """Event columns, packed until they are asked for."""

    def __init__(self, columns: dict[str, PackedColumn], height: int, anchor: pl.Series) -> None:
        self._columns = columns
        self._anchor = anchor
        self.height = height

    def __getitem__(self, name: str) -> pl.Series:
        return _series(name, self._columns[name].take())

    def array(self, name: str) -> NDArray[Any]:
        return self._columns[name].take()

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class _Arguments(Mapping[str, pl.DataFrame]):
    """Arguments, packed until they are asked for: most are used once or never."""

    def __init__(self, columns: dict[str, _ArgumentColumn], anchor: pl.Series) -> None:
        self._columns = columns
        self._anchor = anchor

    def __getitem__(self, name: str) -> pl.DataFrame:
        column = self._columns[name]
        values = column.values.take()
        value = _series("value", values) if values.dtype == np.uint32 else pl.Series("value", values)
        return pl.DataFrame([pl.Series("row", column.rows.take()), value])

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
