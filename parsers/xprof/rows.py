"""The rows that one plane gives to the timeline, as arrays, and ways to look at the stats of its events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from traceview import schema
from traceview.building import NO_KEY

from .columns import REF
from .distinct import distinct
from .stats import as_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .lanes import Place
    from .space import Plane

NULL: Final = np.iinfo(np.int64).min
"""Stands for null in an int64 array."""

KIND: Final = {name: index for index, name in enumerate(schema.KINDS)}
"""Kind to its number in the enum."""

_TRUE: Final = np.True_


@dataclass(slots=True)
class PlaneRows:
    """Arrays over all events of one plane, in file order.

    Attributes:
        plane: The plane.
        place: What it belongs to.
        base: Row of its first event in the file.
        start_ns: Start, on the clock of the profile, rounded down.
        dur_ns: Rounded-down end less start; negative where the file has an impossible duration.
        start_ps: Picoseconds that rounding took from the start.
        kind: Kind number.
        keep: False for rows that are no events of their own.
        thread: Key of the thread, :data:`NO_KEY` on device rows.
        device: Key of the device, :data:`NO_KEY` on host rows.
        stream: Lane number on device rows.
        correlation: Launch key.
        bytes: Bytes moved or allocated.
        flops: Floating-point operations.
    """

    plane: Plane
    place: Place
    base: int
    start_ns: NDArray[np.int64]
    dur_ns: NDArray[np.int64]
    start_ps: NDArray[np.int16]
    kind: NDArray[np.uint8] = field(init=False)
    keep: NDArray[np.bool_] = field(init=False)
    thread: NDArray[np.uint32] = field(init=False)
    device: NDArray[np.uint32] = field(init=False)
    stream: NDArray[np.int64] | None = None
    correlation: NDArray[np.int64] | None = None
    bytes: NDArray[np.int64] | None = None
    flops: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        count = len(self.start_ns)
        self.kind = np.full(count, KIND["other"], np.uint8)
        self.keep = np.ones(count, np.bool_)
        self.thread = np.full(count, NO_KEY, np.uint32)
        self.device = np.full(count, NO_KEY, np.uint32)

    def __len__(self) -> int:
        return len(self.start_ns)

    def column(self, name: str) -> NDArray[np.int64]:
        """``stream``, ``correlation``, ``bytes`` or ``flops``, made on first use."""
        found: NDArray[np.int64] | None = getattr(self, name)
        if found is None:
            found = np.full(len(self), NULL, np.int64)
            setattr(self, name, found)
        return found


def rows_of(plane: Plane, place: Place, base: int) -> PlaneRows:
    """Times of a plane's events.

    End points are rounded, not durations, so that rounding adds up to nothing. A line's own time is in ns and may be
    Unix time, which in picoseconds would not fit into 64 bits.
    """
    counts = [line.stop - line.first for line in plane.lines]
    line_ns = np.repeat(np.array([line.timestamp_ns for line in plane.lines], np.int64), counts)
    offset = plane.offset_ps
    whole = offset // 1000
    start_ps = (offset - whole * 1000).astype(np.int16)
    impossible = (plane.duration_ps < 0) | (offset < 0) | (plane.duration_ps > _LONGEST_PS)
    duration = np.where(impossible, 0, plane.duration_ps)
    dur_ns = (start_ps.astype(np.int64) + duration) // 1000
    dur_ns[impossible] = -1
    with np.errstate(over="ignore"):
        start_ns: NDArray[np.int64] = line_ns + whole
    return PlaneRows(plane, place, base, start_ns, dur_ns, start_ps)


_LONGEST_PS: Final = 1 << 62


def integers(plane: Plane, name: str) -> NDArray[np.int64] | None:
    """A number of each event, from the event or from its name, :data:`NULL` where there is none.

    A uint64 beyond int64 keeps its bits. ``None`` if no event has such a stat.
    """
    values = None
    by_name = [as_whole(entry.stats[name].value) if name in entry.stats else None for entry in plane.names]
    if any(value is not None for value in by_name):
        table = np.array([NULL if value is None else _bits(value) for value in by_name], np.int64)
        values = table[plane.name_of]
    column = plane.columns.get(name)
    if column is not None:
        found, good = column.integers()
        if values is None:
            values = np.full(len(plane), NULL, np.int64)
        values[column.row[good]] = found[good]
    return values


def _bits(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value


def labels(plane: Plane, name: str) -> tuple[NDArray[np.uint32], list[str | None]]:
    """A short text of each event, as index into the distinct ones; of events only interned texts are looked at."""
    known: dict[str | None, int] = {None: 0}

    def code(text: str | None) -> int:
        return known.setdefault(text, len(known))

    table = np.array(
        [code(str(entry.stats[name].value)) if name in entry.stats else 0 for entry in plane.names] or [0], np.uint32
    )
    codes = table[plane.name_of]
    column = plane.columns.get(name)
    if column is not None:
        refs = column.kind == REF
        values, inverse = distinct(column.value[refs].view(np.int64))
        found = np.array([code(column.interned.get(key)) for key in values.tolist()], np.uint32)
        if len(found):
            codes[column.row[refs]] = found[inverse]
    return codes, list(known)


def has(plane: Plane, name: str) -> NDArray[np.bool_]:
    """Which events have a stat of their own of that name."""
    mask = np.zeros(len(plane), np.bool_)
    if name in plane.columns:
        mask[plane.columns[name].row] = _TRUE
    return mask
