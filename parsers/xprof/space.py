"""An XSpace in memory: planes, lines, names, and events and stats as columns. No meaning is given to anything here.

Source: tsl/profiler/protobuf/xplane.proto. Numbers of metadata are per plane, and a key may be any int64.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from .columns import BYTES, COMPRESSED, DOUBLE, INT64, REF, STR, UINT64, concatenated, read_line
from .distinct import distinct
from .stats import Stat, StatColumns
from .wire import FIXED64, LENGTH, VARINT, WireError, fields, signed, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from .columns import EventColumns
    from .stats import StatValue
    from .wire import Data

MOST_PLANES: Final = 1 << 16
MOST_LINES: Final = 1 << 20
"""More planes or lines than this are no recording: the file was made to exhaust memory."""


@dataclass(frozen=True, slots=True)
class EventName:
    """What events of one kind have in common (XEventMetadata).

    Attributes:
        name: Full name.
        display_name: Short name, or ``""``.
        stats: Stats that hold for all its events, by name.
    """

    name: str
    display_name: str = ""
    stats: dict[str, Stat] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a plane: a thread, a stream, a unit of a device.

    Attributes:
        id: As recorded.
        name: Name, or the display name where it has no other.
        timestamp_ns: What event offsets are counted from.
        first: Index of its first event among those of the plane.
        stop: Index behind its last.
    """

    id: int
    name: str
    timestamp_ns: int
    first: int
    stop: int


@dataclass(slots=True)
class Plane:
    """One plane.

    Attributes:
        id: As recorded.
        name: E.g. ``/device:TPU:0``.
        lines: Its lines.
        names: What its events are called.
        stats: Facts about the plane itself, by name.
        name_of: For each event the index into ``names``.
        offset_ps: For each event its start after the time of its line, ps.
        duration_ps: For each event its duration, ps.
        columns: The stats of its events, by name.
    """

    id: int = 0
    name: str = ""
    lines: list[Line] = field(default_factory=list)
    names: list[EventName] = field(default_factory=list)
    stats: dict[str, Stat] = field(default_factory=dict)
    name_of: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    offset_ps: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    duration_ps: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    columns: dict[str, StatColumns] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.name_of)


@dataclass(slots=True)
class Losses:
    """What could not be read: how many of what, and the place of the first.

    Attributes:
        counts: Kind to how many, and the place of the first.
        events_of: Name of a plane to how many of its events could not be read.
    """

    counts: dict[str, tuple[int, str]] = field(default_factory=dict)
    events_of: dict[str, int] = field(default_factory=dict)

    def add(self, kind: str, n: int, example: str = "") -> None:
        """Count ``n`` more of a kind."""
        if n:
            before, first = self.counts.get(kind, (0, ""))
            self.counts[kind] = (before + n, first or example)


@dataclass(slots=True)
class Space:
    """A whole file.

    Attributes:
        planes: Its planes, in file order.
        errors: What the profiler itself reports as failed.
        warnings: What it warns of.
        losses: What could not be read.
        cut_at: Position at which the file ends too early or is damaged beyond reading on, or ``None``.
        cut_plane: Name of the plane that lies there, if it is known.
    """

    planes: list[Plane] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    losses: Losses = field(default_factory=Losses)
    cut_at: int | None = None
    cut_plane: str = ""


def read_space(data: Data, *, progress: Callable[[float], None] | None = None) -> Space:
    """Read everything that is whole.

    A plane names its events after it lists them, so a plane that is cut off is left out as a whole.

    Args:
        data: The file.
        progress: Called with the share that has been read.
    """
    octets = np.frombuffer(data, np.uint8)
    space = Space()
    at, end = 0, len(data)
    try:
        for number, wire, start, behind in fields(data, 0, end):
            at = behind
            if wire != LENGTH:
                continue
            if number == 1:
                _allow(len(space.planes) < MOST_PLANES, start)
                space.planes.append(_plane(data, octets, start, behind, space))
                _release(data, start, behind)
            elif number == 2:
                space.errors.append(text(data, start, behind))
            elif number == 3:
                space.warnings.append(text(data, start, behind))
            if progress:
                progress(behind / end)
    except WireError as error:
        space.cut_at = end if _reaches_beyond(data, at, end) else error.at
        space.cut_plane = _name_of_cut(data, at, end)
    return space


def _release(data: Data, start: int, end: int) -> None:
    """Let the system take back the pages of a plane that has been read; they count as memory of the process."""
    advise = getattr(data, "madvise", None)
    if advise is None or not hasattr(mmap, "MADV_DONTNEED"):
        return
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    length = end // mmap.PAGESIZE * mmap.PAGESIZE - first
    if length > 0:
        advise(mmap.MADV_DONTNEED, first, length)


def _allow(holds: bool, at: int) -> None:  # noqa: FBT001  # a check, not a switch
    if not holds:
        raise WireError(at, "there are too many planes or lines")


def _reaches_beyond(data: Data, at: int, end: int) -> bool:
    """Whether what starts at ``at`` says that it is longer than the file: it is cut off, not damaged."""
    from .wire import varint

    try:
        tag, at = varint(data, at, end)
        size, at = varint(data, at, end)
    except WireError:
        return True
    return tag & 7 == LENGTH and size > end - at


def _name_of_cut(data: Data, at: int, end: int) -> str:
    """Name of the plane that begins at ``at`` and cannot be read."""
    from .wire import varint

    try:
        _, at = varint(data, at, end)
        size, at = varint(data, at, end)
        for number, wire, start, behind in fields(data, at, min(end, at + size)):
            if (number, wire) == (2, LENGTH):
                return text(data, start, behind)[:120]
    except WireError:
        pass
    return ""


def _plane(data: Data, octets: NDArray[np.uint8], start: int, end: int, space: Space) -> Plane:
    plane = Plane()
    line_bodies: list[tuple[int, int]] = []
    name_bodies: list[tuple[int, int]] = []
    stat_bodies: list[tuple[int, int]] = []
    stat_names: dict[int, str] = {}
    for number, wire, value, behind in fields(data, start, end):
        if wire == VARINT and number == 1:
            plane.id = signed(value)
        elif wire != LENGTH:
            continue
        elif number == 2:
            plane.name = text(data, value, behind)
        elif number == 3:
            line_bodies.append((value, behind))
        elif number == 4:
            name_bodies.append((value, behind))
        elif number == 5:
            key, name = _stat_name(data, value, behind)
            stat_names[key] = name
        elif number == 6:
            stat_bodies.append((value, behind))
    _allow(len(line_bodies) <= MOST_LINES, end)
    for body in stat_bodies:
        _put(plane.stats, _stat(data, *body, stat_names))
    index_of = {}
    for body in name_bodies:
        key, entry = _event_name(data, *body, stat_names)
        index_of[key] = len(plane.names)
        plane.names.append(entry)
    parts: list[EventColumns] = []
    for body in line_bodies:
        first = sum(len(part) for part in parts)
        line, events = _line(data, octets, *body, first=first, losses=space.losses, plane=plane.name)
        plane.lines.append(line)
        parts.append(events)
    events = concatenated(parts)
    plane.name_of = _dense(events.metadata_id, index_of, plane, space.losses)
    plane.offset_ps, plane.duration_ps = events.offset_ps, events.duration_ps
    plane.columns = _stat_columns(events, stat_names)
    return plane


def _line(
    data: Data, octets: NDArray[np.uint8], start: int, end: int, *, first: int, losses: Losses, plane: str
) -> tuple[Line, EventColumns]:
    content = read_line(data, octets, start, end)
    line_id = timestamp_ns = 0
    name = display_name = ""
    for number, wire, value, behind in content.own:
        if (number, wire) == (1, VARINT):
            line_id = signed(value)
        elif (number, wire) == (2, LENGTH):
            name = text(data, value, behind)
        elif (number, wire) == (3, VARINT):
            timestamp_ns = signed(value)
        elif (number, wire) == (11, LENGTH):
            display_name = text(data, value, behind)
    events = content.events
    where = f"line {name or line_id!r} of {plane or 'a plane without name'}"
    losses.add("lost-event", events.lost_events, where)
    losses.events_of[plane] = losses.events_of.get(plane, 0) + events.lost_events
    losses.add("lost-stat", events.lost_stats, where)
    losses.add("lost-aggregated-event", events.aggregated, where)
    return Line(line_id, name or display_name, timestamp_ns, first, first + len(events)), events


def _stat_name(data: Data, start: int, end: int) -> tuple[int, str]:
    key, name = 0, ""
    for number, wire, value, behind in fields(data, start, end):
        if (number, wire) == (1, VARINT):
            key = signed(value)
        elif (number, wire) == (2, LENGTH):
            for inner, inner_wire, begin, stop in fields(data, value, behind):
                if (inner, inner_wire) == (2, LENGTH):
                    name = text(data, begin, stop)
    return key, name


def _event_name(data: Data, start: int, end: int, stat_names: dict[int, str]) -> tuple[int, EventName]:
    key, name, display_name = 0, "", ""
    stats: dict[str, Stat] = {}
    for number, wire, value, behind in fields(data, start, end):
        if (number, wire) == (1, VARINT):
            key = signed(value)
        elif (number, wire) == (2, LENGTH):
            for inner, inner_wire, begin, stop in fields(data, value, behind):
                if inner_wire != LENGTH:
                    continue
                if inner == 2:
                    name = text(data, begin, stop)
                elif inner == 4:
                    display_name = text(data, begin, stop)
                elif inner == 5:
                    _put(stats, _stat(data, begin, stop, stat_names))
    return key, EventName(name, display_name, stats)


def _put(stats: dict[str, Stat], found: tuple[str, Stat] | None) -> None:
    if found is not None:
        stats.setdefault(*found)


def _stat(data: Data, start: int, end: int, stat_names: dict[int, str]) -> tuple[str, Stat] | None:
    """Name and value of one stat; ``None`` if it has no value."""
    key, kind = 0, 0
    value: StatValue = None
    place = (0, 0)
    for number, wire, found, behind in fields(data, start, end):
        if (number, wire) == (1, VARINT):
            key = signed(found)
        elif wire == VARINT and number in (UINT64, INT64, REF):
            kind, value = number, signed(found) if number == INT64 else found
        elif wire == FIXED64 and number == DOUBLE:
            kind, value = number, float(np.frombuffer(data[found : found + 8], "<f8")[0])
        elif wire == LENGTH and number in (STR, BYTES, COMPRESSED):
            kind, place = number, (found, behind - found)
            value = text(data, found, behind) if number == STR else None
    if not kind:
        return None
    if kind == REF:
        value = stat_names.get(signed(int(value or 0)), "")
    return stat_names.get(key, f"stat {key}"), Stat(kind, value, *place)


def _dense(ids: NDArray[np.int64], index_of: dict[int, int], plane: Plane, losses: Losses) -> NDArray[np.uint32]:
    """Index into the plane's names for each event; events without one share a nameless entry."""
    found, inverse = distinct(ids)
    nameless = [key for key in found.tolist() if key not in index_of]
    if nameless:
        index_of.update(dict.fromkeys(nameless, len(plane.names)))
        plane.names.append(EventName(""))
        unknown = np.isin(ids, nameless)
        losses.add("name-missing", int(unknown.sum()), f"in {plane.name or 'a plane without name'}")
    table = np.array([index_of[key] for key in found.tolist()], np.uint32)
    return table[inverse] if len(table) else np.empty(0, np.uint32)


def _stat_columns(events: EventColumns, stat_names: dict[int, str]) -> dict[str, StatColumns]:
    """The stats of all events, split by name; within one name in the order of the file."""
    found, code = distinct(events.stat_id)
    if not len(found):
        return {}
    # 16 bits: a radix sort.
    order = np.argsort(code.astype(np.uint16) if len(found) < 1 << 16 else code, kind="stable")
    bounds = np.concatenate(([0], np.cumsum(np.bincount(code, minlength=len(found)))))
    columns: dict[str, StatColumns] = {}
    for index, key in enumerate(found.tolist()):
        rows = order[bounds[index] : bounds[index + 1]]
        name = stat_names.get(key, f"stat {key}")
        made = StatColumns(
            events.stat_event[rows],
            events.stat_kind[rows],
            events.stat_value[rows],
            events.stat_length[rows],
            stat_names,
        )
        columns[name] = columns[name].joined(made) if name in columns else made.first_of_each()
    return columns
