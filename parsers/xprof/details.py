"""Everything a profile says of an event beyond the columns of the timeline, made a frame when it is asked for.

A detail can come from the event, from its name (XLA writes what is constant there), or from the compiled program; the
first that has it wins. Numbers become integers, everything else JSON text. Ids that use all 64 bits are text too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from .columns import BYTES, COMPRESSED, DOUBLE, INT64, REF, STR, UINT64
from .distinct import distinct
from .programs import FACTS, UNFUSED, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from .programs import Origins
    from .source import SourceFile
    from .space import EventName, Plane
    from .stats import Stat, StatColumns

NONE: Final = 0xFFFFFFFF
"""In an array of indices: no such thing."""

IDS: Final = frozenset({"program_id", "run_id", "fingerprint", "symbol_id", "_p", "_c"})
"""Stats that are identifiers: kept as text, because they use all 64 bits and mean nothing as numbers."""

_COLUMNS: Final = frozenset({"correlation_id"})
"""Stats that are columns of the timeline."""

_MOST_INT64: Final = (1 << 63) - 1
_PATHS: Final = frozenset({"source", "source_stack"})
LONG_NAME: Final = "long_name"
"""Full name of an event that the timeline lists under its short one."""

EXACT: Final = ("start_ps", "duration_ps")
"""Picoseconds after ``start_ns``, and the exact duration, of events that are no whole nanoseconds."""


class StatDetails(Mapping[str, pl.DataFrame]):
    """Details by name, as :class:`traceview.building.Details` takes them: ``(row, value)`` with rows of the file.

    Args:
        planes: Each plane with the row of its first event.
        origins: What the compiled programs tell.
        origin_of: For each row the index into ``origins``, or :data:`NONE`.
        exact: For each plane the row of its first event, and ``start_ps`` and ``duration_ps`` of its events.
        source: The file.
    """

    def __init__(
        self,
        planes: list[tuple[int, Plane]],
        origins: Origins,
        origin_of: NDArray[np.uint32],
        exact: list[tuple[int, NDArray[np.int16], NDArray[np.int64]]],
        source: SourceFile,
    ) -> None:
        self._planes = planes
        self._origins = origins
        self._origin_of = origin_of
        self._exact = exact
        self._source = source
        self._keys = dict(self._find_keys())

    def _find_keys(self) -> Iterator[tuple[str, tuple[str, bool]]]:
        """Each key with the name that it stands for and whether it holds the numbers or the texts of that name."""
        numbers: set[str] = set()
        texts: set[str] = set()
        for _, plane in self._planes:
            _sort_names(plane, numbers, texts)
        if len(self._origins):
            texts.update(FACTS, ("hlo_op", UNFUSED))
        for name in sorted((numbers | texts) - _COLUMNS):
            if name in numbers:
                yield name, (name, True)
            if name in texts:
                yield f"{name} (text)" if name in numbers else name, (name, False)
        for name in EXACT:
            yield name, (name, True)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, key: str) -> pl.DataFrame:
        name, numeric = self._keys[key]
        if name in EXACT:
            return self._exact_frame(name)
        frames = [
            *(self._of_events(base, plane, name, numeric=numeric) for base, plane in self._planes),
            *(self._of_names(base, plane, name, numeric=numeric) for base, plane in self._planes),
        ]
        if not numeric and (name in FACTS or name in ("hlo_op", UNFUSED)):
            frames.append(self._of_programs(name))
        found = [frame for frame in frames if frame is not None and frame.height]
        if not found:
            return pl.DataFrame(schema={"row": pl.UInt32, "value": pl.Int64 if numeric else pl.Categorical})
        return _first_of_each_row(pl.concat(found))

    def _exact_frame(self, key: str) -> pl.DataFrame:
        frames = []
        for base, start_ps, duration_ps in self._exact:
            rows = np.flatnonzero((start_ps != 0) | (duration_ps % 1000 != 0))
            values = start_ps if key == "start_ps" else duration_ps
            frames.append(
                pl.DataFrame({"row": (rows + base).astype(np.uint32), "value": values[rows].astype(np.int64)})
            )
        return pl.concat(frames) if frames else pl.DataFrame(schema={"row": pl.UInt32, "value": pl.Int64})

    def _of_events(self, base: int, plane: Plane, name: str, *, numeric: bool) -> pl.DataFrame | None:
        column = plane.columns.get(name)
        if column is None:
            return None
        as_number = _numbers(name, column)
        if numeric:
            return pl.DataFrame(
                {"row": column.row[as_number] + np.uint32(base), "value": column.value[as_number].view(np.int64)}
            )
        chosen = column.where(~as_number & ~column.is_bytes())
        texts = _texts(chosen, self._source, paths=name in _PATHS)
        return pl.DataFrame({"row": chosen.row + np.uint32(base), "value": texts})

    def _of_names(self, base: int, plane: Plane, name: str, *, numeric: bool) -> pl.DataFrame | None:
        values: list[str | int | None] = [
            self._long_name(entry) if name == LONG_NAME else _of_entry(entry, name, numeric=numeric)
            for entry in plane.names
        ]
        if all(value is None for value in values):
            return None
        by_name = pl.Series(values, dtype=pl.Int64 if numeric else pl.String)
        by_name = by_name if numeric else by_name.cast(pl.Categorical)
        rows = np.arange(base, base + len(plane), dtype=np.uint32)
        return pl.DataFrame({"row": rows, "value": by_name.gather(plane.name_of)}).drop_nulls()

    @staticmethod
    def _long_name(entry: EventName) -> str | None:
        recorded = entry.stats.get(LONG_NAME)
        if recorded is not None and recorded.value is not None:
            return json.dumps(recorded.value)
        return json.dumps(entry.name) if entry.display_name not in ("", entry.name) else None

    def _of_programs(self, name: str) -> pl.DataFrame:
        rows = np.flatnonzero(self._origin_of != NONE).astype(np.uint32)
        told = self._origins.names() if name == "hlo_op" else self._origins.values(name)
        by_origin = pl.Series(told, dtype=pl.String).cast(pl.Categorical)
        frame = pl.DataFrame({"row": rows, "value": by_origin.gather(self._origin_of[rows])})
        return frame.drop_nulls()


def _first_of_each_row(frame: pl.DataFrame) -> pl.DataFrame:
    """By ``row``, of several values of a row the first."""
    rows = frame["row"].to_numpy()
    if (rows[1:] > rows[:-1]).all():
        return frame
    # The frame is a few ascending runs, which a stable sort merges; hashing every row takes several times as long.
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    return frame[order[np.r_[True, rows[1:] != rows[:-1]]]]


def _sort_names(plane: Plane, numbers: set[str], texts: set[str]) -> None:
    """Which stats of a plane's events hold numbers and which hold texts; one may hold both."""
    for name, column in plane.columns.items():
        as_number = _numbers(name, column)
        if as_number.any():
            numbers.add(name)
        if (~as_number & ~column.is_bytes()).any():
            texts.add(name)
    for entry in plane.names:
        for name, stat in entry.stats.items():
            if _is_number(name, stat):
                numbers.add(name)
            elif stat.kind != BYTES:
                texts.add(name)
        if entry.display_name not in ("", entry.name):
            texts.add(LONG_NAME)


def _numbers(name: str, column: StatColumns) -> NDArray[np.bool_]:
    """Which values are numbers that fit int64 and mean one."""
    if name in IDS:
        return np.zeros(len(column.row), np.bool_)
    mask: NDArray[np.bool_] = (column.kind == INT64) | ((column.kind == UINT64) & (column.value <= _MOST_INT64))
    return mask


def _is_number(name: str, stat: Stat) -> bool:
    return (
        name not in IDS and stat.kind in (INT64, UINT64) and isinstance(stat.value, int) and stat.value <= _MOST_INT64
    )


def _of_entry(entry: EventName, name: str, *, numeric: bool) -> str | int | None:
    """The value that holds for all events of a name, or ``None``."""
    stat = entry.stats.get(name)
    if stat is None or stat.value is None or _is_number(name, stat) != numeric:
        return None
    if numeric:
        return int(stat.value)
    if isinstance(stat.value, str):
        return json.dumps(shown_path(stat.value) if name in _PATHS else stat.value)
    return repr(stat.value)


def _texts(column: StatColumns, source: SourceFile, *, paths: bool) -> pl.Series:
    """JSON texts of values of any kind but bytes."""
    codes = np.zeros(len(column.row), np.uint32)
    texts: list[str] = []
    for kind in np.unique(column.kind).tolist():
        mask = column.kind == kind
        if kind in (STR, COMPRESSED):
            read = source.texts if kind == STR else source.unpacked
            read_texts = read(column.value[mask], column.length[mask])
            index = {text: at for at, text in enumerate(dict.fromkeys(read_texts))}
            codes[mask] = len(texts) + np.array([index[text] for text in read_texts], np.uint32)
            texts += [_quoted(text, paths=paths) for text in index]
            continue
        found, inverse = distinct(column.value[mask])
        codes[mask] = len(texts) + inverse
        if kind == REF:
            texts += [_quoted(column.interned.get(key, ""), paths=paths) for key in found.view(np.int64).tolist()]
        elif kind == DOUBLE:
            texts += [repr(value) for value in found.view(np.float64).tolist()]
        else:
            texts += [str(value) for value in (found.view(np.int64) if kind == INT64 else found).tolist()]
    return pl.Series(texts, dtype=pl.String).cast(pl.Categorical).gather(codes)


def _quoted(text: str, *, paths: bool) -> str:
    return json.dumps(shown_path(text) if paths else text)
