"""Rows of one stretch of a file, and how the stretches of a file become one :class:`~.raw.RawTrace`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from .raw import EVENT_COLUMNS, LABEL_BASE, RawTrace
from .tally import Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
        texts: ``ph``, ``cat`` and ``name`` as Categorical.
        numbers: The integer columns as Int64; labels are ``LABEL_BASE`` + index into ``labels`` of this piece.
        int_args: Argument name to rows (uint32, counted from the start of the piece) and values (int32 or int64).
        text_args: Argument name to rows and values (Categorical).
        labels: Texts of ``pid``, ``tid`` and ``id``.
    """

    height: int
    texts: dict[str, pl.Series]
    numbers: dict[str, pl.Series]
    int_args: dict[str, tuple[NDArray[np.uint32], NDArray[Any]]]
    text_args: dict[str, tuple[NDArray[np.uint32], pl.Series]]
    labels: list[str] = field(default_factory=list)


def narrow(values: NDArray[np.int64]) -> NDArray[Any]:
    """``values`` as int32 where they fit."""
    if len(values) and -(1 << 31) <= int(values.min()) and int(values.max()) < 1 << 31:
        return values.astype(np.int32)
    return values


class Rows:
    """Rows collected one by one; :meth:`piece` turns them into columns."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in EVENT_COLUMNS}
        self.int_args: dict[str, tuple[list[int], list[int]]] = {}
        self.text_args: dict[str, tuple[list[int], list[str]]] = {}
        self._labels: dict[str, int] = {}

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
        rows, values = self.text_args.setdefault(name, ([], []))
        rows.append(len(self))
        values.append(text)

    def add(self, **cells: Any) -> None:
        """Finish the row."""
        for name, column in self.columns.items():
            column.append(cells[name])

    def piece(self) -> Piece:
        """The rows as columns."""
        columns = self.columns
        return Piece(
            height=len(self),
            texts={name: pl.Series(name, columns[name], pl.String).cast(pl.Categorical) for name in TEXT_COLUMNS},
            numbers={name: pl.Series(name, columns[name], pl.Int64) for name in NUMBER_COLUMNS},
            int_args={
                name: (np.array(rows, np.uint32), narrow(np.array(values, np.int64)))
                for name, (rows, values) in self.int_args.items()
            },
            text_args={
                name: (np.array(rows, np.uint32), pl.Series(values, dtype=pl.String).cast(pl.Categorical))
                for name, (rows, values) in self.text_args.items()
            },
            labels=list(self._labels),
        )


def interleave(first: Piece, first_at: NDArray[np.int64], second: Piece, second_at: NDArray[np.int64]) -> Piece:
    """The rows of two pieces as one piece, each row at the position given for it (a permutation in all)."""
    height = first.height + second.height
    order = np.empty(height, np.int64)
    order[first_at] = np.arange(first.height)
    order[second_at] = np.arange(first.height, height)
    shift = len(first.labels)
    second_numbers = {name: _shift_labels(series, shift, name) for name, series in second.numbers.items()}
    texts = {name: pl.concat([first.texts[name], second.texts[name]]).gather(order) for name in TEXT_COLUMNS}
    numbers = {name: pl.concat([first.numbers[name], second_numbers[name]]).gather(order) for name in NUMBER_COLUMNS}
    at = (first_at, second_at)
    int_args, text_args = {}, {}
    for name in {**first.int_args, **second.int_args}:
        parts = [
            (at[k][p.int_args[name][0]], p.int_args[name][1])
            for k, p in enumerate((first, second))
            if name in p.int_args
        ]
        rows = np.concatenate([part[0] for part in parts])
        by_row = np.argsort(rows, kind="stable")
        int_args[name] = (rows[by_row].astype(np.uint32), np.concatenate([part[1] for part in parts])[by_row])
    for name in {**first.text_args, **second.text_args}:
        texts_of = [
            (at[k][p.text_args[name][0]], p.text_args[name][1])
            for k, p in enumerate((first, second))
            if name in p.text_args
        ]
        rows = np.concatenate([part[0] for part in texts_of])
        by_row = np.argsort(rows, kind="stable")
        text_args[name] = (rows[by_row].astype(np.uint32), pl.concat([part[1] for part in texts_of]).gather(by_row))
    return Piece(height, texts, numbers, int_args, text_args, first.labels + second.labels)


def _shift_labels(series: pl.Series, shift: int, name: str) -> pl.Series:
    if name not in LABELLED_COLUMNS or shift == 0:
        return series
    is_label = series < LABEL_BASE + _MAX_LABELS
    return pl.select(pl.when(is_label).then(series + shift).otherwise(series).alias(name)).to_series()


class Assembly:
    """Collects the pieces of a file in file order."""

    def __init__(self) -> None:
        self.height = 0
        self._texts: dict[str, list[pl.Series]] = {name: [] for name in TEXT_COLUMNS}
        self._numbers: dict[str, list[pl.Series]] = {name: [] for name in NUMBER_COLUMNS}
        self._ints: dict[str, list[tuple[NDArray[Any], NDArray[Any]]]] = {}
        self._strings: dict[str, list[tuple[NDArray[Any], pl.Series]]] = {}
        self._labels: dict[str, int] = {}
        self._names: set[str] = set()

    def append(self, piece: Piece, tally: Tally) -> None:
        """Add the piece that follows in the file; its arrays may be changed."""
        if piece.labels:
            self._relabel(piece)
        for name in TEXT_COLUMNS:
            self._texts[name].append(piece.texts[name])
        for name in NUMBER_COLUMNS:
            self._numbers[name].append(piece.numbers[name])
        base = np.uint32(self.height)
        for name, (rows, values) in piece.int_args.items():
            if self._admit(name, len(rows), tally):
                self._ints.setdefault(name, []).append((rows + base, values))
        for name, (rows, strings) in piece.text_args.items():
            if self._admit(name, len(rows), tally):
                self._strings.setdefault(name, []).append((rows + base, strings))
        self.height += piece.height

    def finish(self, head: Mapping[str, Any], tally: Tally, *, truncated: bool) -> RawTrace:
        """The whole file. Columns are joined one after the other, so that no two copies of all of them exist."""
        columns = []
        for name, dtype in EVENT_COLUMNS.items():
            parts = self._texts.pop(name, None) or self._numbers.pop(name, None)
            columns.append(pl.concat(parts, rechunk=True).alias(name) if parts else pl.Series(name, [], dtype))
        return RawTrace(
            events=pl.DataFrame(columns),
            int_args=_IntArgs(self._ints),
            text_args=_TextArgs(self._strings),
            labels=tuple(self._labels),
            head=head,
            counts=tally.as_dict(),
            truncated=truncated,
        )

    def _admit(self, name: str, cases: int, tally: Tally) -> bool:
        if name not in self._names:
            if len(self._names) >= MAX_ARGUMENT_NAMES:
                tally.add("lost-argument", name, cases)
                return False
            self._names.add(name)
        return True

    def _relabel(self, piece: Piece) -> None:
        """Replace the label numbers of the piece by those of the file."""
        table = np.full(len(piece.labels), -1, np.int64)
        for name in LABELLED_COLUMNS:
            series = piece.numbers[name]
            values = series.fill_null(0).to_numpy()
            labelled = values < LABEL_BASE + _MAX_LABELS
            if not labelled.any():
                continue
            index = values[labelled] - LABEL_BASE
            for used in np.unique(index).tolist():
                table[used] = self._labels.setdefault(piece.labels[used], len(self._labels))
            values = values.copy()
            values[labelled] = LABEL_BASE + table[index]
            fresh = pl.Series(name, values)
            if series.null_count():
                fresh = pl.select(pl.when(series.is_not_null()).then(fresh).alias(name)).to_series()
            piece.numbers[name] = fresh


class _IntArgs(Mapping[str, pl.DataFrame]):
    """Arguments kept in narrow arrays and widened when they are asked for: an argument is mostly used once."""

    def __init__(self, parts: dict[str, list[tuple[NDArray[Any], NDArray[Any]]]]) -> None:
        self._parts = parts

    def __getitem__(self, name: str) -> pl.DataFrame:
        parts = self._parts[name]
        return pl.DataFrame(
            {
                "row": np.concatenate([rows for rows, _ in parts]),
                "value": np.concatenate([values for _, values in parts], dtype=np.int64),
            }
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


class _TextArgs(Mapping[str, pl.DataFrame]):
    """Arguments joined when they are asked for."""

    def __init__(self, parts: dict[str, list[tuple[NDArray[Any], pl.Series]]]) -> None:
        self._parts = parts

    def __getitem__(self, name: str) -> pl.DataFrame:
        parts = self._parts[name]
        return pl.DataFrame(
            {
                "row": np.concatenate([rows for rows, _ in parts]),
                "value": pl.concat([values for _, values in parts], rechunk=True),
            }
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)
