"""The events of one line of an XSpace as columns: compiled where a C compiler was, vectorised in NumPy elsewhere.

Both ways give the same columns for the same bytes, damaged ones included: an event whose bytes are no message is left
out and counted, and so is a stat, without its event.

Source of the field numbers: tsl/profiler/protobuf/xplane.proto (XLine, XEvent, XStat).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .wire import FIXED32, FIXED64, LENGTH, VARINT, WireError, fields, varint, varints

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

    from .wire import Data, Positions

_wire: ModuleType | None
try:
    _wire = import_module(f"{__package__}._wire")
except ImportError:  # Installed where no C compiler was.
    _wire = None

COMPILED: Final = _wire is not None

DOUBLE, UINT64, INT64, STR, BYTES, REF, COMPRESSED = 2, 3, 4, 5, 6, 7, 8
"""Field numbers of the values of an XStat, which serve as their kinds."""

_EVENT_FIELD: Final = 4
_EVENT_TAG: Final = _EVENT_FIELD << 3 | LENGTH
_CHUNK: Final = 1 << 18
_WIRE_OF_KIND: Final = {DOUBLE: FIXED64, UINT64: VARINT, INT64: VARINT, STR: LENGTH, BYTES: LENGTH, REF: VARINT,
                        COMPRESSED: LENGTH}  # fmt: skip
_MOST_LENGTH: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class EventColumns:
    """Some events, and their stats in the same order.

    Attributes:
        metadata_id: Key into the plane's event metadata, int64.
        offset_ps: Start after the line's own time, ps.
        duration_ps: Duration, ps; negative where the file has a number beyond int64.
        stat_event: For each stat the index of its event.
        stat_id: Key into the plane's stat metadata, int64.
        stat_kind: Field number of the value, see :data:`DOUBLE` and the following; 0: no value.
        stat_value: The bits of the number; for texts and bytes their position in the file.
        stat_length: For texts and bytes their length, else 0.
        lost_events: Events that are no message.
        lost_stats: Stats that are no message.
        aggregated: Events left out because they have a number of occurrences instead of a time.
    """

    metadata_id: NDArray[np.int64]
    offset_ps: NDArray[np.int64]
    duration_ps: NDArray[np.int64]
    stat_event: NDArray[np.uint32]
    stat_id: NDArray[np.int64]
    stat_kind: NDArray[np.uint8]
    stat_value: NDArray[np.uint64]
    stat_length: NDArray[np.uint32]
    lost_events: int = 0
    lost_stats: int = 0
    aggregated: int = 0

    def __len__(self) -> int:
        return len(self.metadata_id)


@dataclass(frozen=True, slots=True)
class LineContent:
    """What is in a line: its own fields, as :func:`.wire.fields` yields them, and its events."""

    own: tuple[tuple[int, int, int, int], ...]
    events: EventColumns


def read_line(data: Data, octets: NDArray[np.uint8], start: int, end: int) -> LineContent:
    """Everything in a line.

    Args:
        data: The file.
        octets: The same as an array.
        start: Where the body of the line begins.
        end: Where it ends.

    Raises:
        WireError: the line is no sequence of fields.
    """
    if _wire is None:
        return read_line_portable(data, octets, start, end)
    return _read_line_compiled(_wire, octets, start, end)


def _read_line_compiled(wire: ModuleType, octets: NDArray[np.uint8], start: int, end: int) -> LineContent:
    events, stats, own, damage = wire.count(octets, start, end)
    if damage >= 0:
        raise WireError(damage, "a line is damaged")
    metadata_id, offset_ps, duration_ps = (np.empty(events, np.int64) for _ in range(3))
    stat_event, stat_id = np.empty(stats, np.uint32), np.empty(stats, np.int64)
    stat_kind, stat_value, stat_length = (
        np.empty(stats, np.uint8),
        np.empty(stats, np.uint64),
        np.empty(stats, np.uint32),
    )
    kept, kept_stats, lost, lost_stats, aggregated = wire.fill(
        octets, start, end, metadata_id, offset_ps, duration_ps, stat_event, stat_id, stat_kind, stat_value, stat_length
    )
    columns = EventColumns(
        metadata_id[:kept], offset_ps[:kept], duration_ps[:kept], stat_event[:kept_stats], stat_id[:kept_stats],
        stat_kind[:kept_stats], stat_value[:kept_stats], stat_length[:kept_stats], lost, lost_stats, aggregated,
    )  # fmt: skip
    return LineContent(own, columns)


def read_line_portable(data: Data, octets: NDArray[np.uint8], start: int, end: int) -> LineContent:
    """The same as :func:`read_line` without the compiled scanner."""
    from array import array

    own: list[tuple[int, int, int, int]] = []
    parts: list[EventColumns] = []
    starts, ends = array("q"), array("q")
    at = start
    while at < end:
        if data[at] == _EVENT_TAG:
            try:
                size, body = varint(data, at + 1, end)
            except WireError:
                raise WireError(at, "a line is damaged") from None
            if size > end - body:
                raise WireError(at, "a line is damaged")
            starts.append(body)
            at = body + size
            ends.append(at)
            if len(starts) == _CHUNK:
                parts.append(_events(octets, starts, ends))
                starts, ends = array("q"), array("q")
            continue
        try:
            field = next(fields(data, at, end))
        except WireError:
            raise WireError(at, "a line is damaged") from None
        # The tag of an event may be written with more bytes than it needs.
        if field[:2] == (_EVENT_FIELD, LENGTH):
            starts.append(field[2])
            ends.append(field[3])
        else:
            own.append(field)
        at = field[3]
    parts.append(_events(octets, starts, ends))
    return LineContent(tuple(own), concatenated(parts))


def concatenated(parts: list[EventColumns]) -> EventColumns:
    """Several stretches of events as one."""
    if len(parts) == 1:
        return parts[0]
    shifts = np.cumsum([0, *(len(part) for part in parts)])
    stat_event = [part.stat_event + np.uint32(shift) for part, shift in zip(parts, shifts, strict=False)]
    return EventColumns(
        _together([part.metadata_id for part in parts], np.int64),
        _together([part.offset_ps for part in parts], np.int64),
        _together([part.duration_ps for part in parts], np.int64),
        _together(stat_event, np.uint32),
        _together([part.stat_id for part in parts], np.int64),
        _together([part.stat_kind for part in parts], np.uint8),
        _together([part.stat_value for part in parts], np.uint64),
        _together([part.stat_length for part in parts], np.uint32),
        sum(part.lost_events for part in parts),
        sum(part.lost_stats for part in parts),
        sum(part.aggregated for part in parts),
    )


def _together(arrays: list[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype)


def _events(octets: NDArray[np.uint8], starts: object, ends: object) -> EventColumns:
    at = np.frombuffer(starts, np.int64).copy() if len(starts) else np.empty(0, np.int64)  # type: ignore[arg-type, call-overload]
    stop = np.frombuffer(ends, np.int64).copy() if len(ends) else np.empty(0, np.int64)  # type: ignore[arg-type, call-overload]
    scalars, found, sound = _messages(octets, at, stop, scalar=(1, 2, 3, 5), nested=4)
    aggregated = sound & scalars.seen[5]
    keep = sound & ~aggregated
    position = np.cumsum(keep) - 1
    owner, stat_start, stat_end = found
    mine = keep[owner]
    owner, stat_start, stat_end = position[owner[mine]], stat_start[mine], stat_end[mine]
    stat_id, kind, value, length, whole = _stats(octets, stat_start, stat_end)
    return EventColumns(
        scalars.value[1][keep].view(np.int64),
        scalars.value[2][keep].view(np.int64),
        scalars.value[3][keep].view(np.int64),
        owner[whole].astype(np.uint32),
        stat_id[whole].view(np.int64),
        kind[whole],
        value[whole],
        length[whole],
        int((~sound).sum()),
        int((~whole).sum()),
        int(aggregated.sum()),
    )


@dataclass(frozen=True, slots=True)
class _Scalars:
    value: dict[int, NDArray[np.uint64]]
    seen: dict[int, NDArray[np.bool_]]


def _messages(
    octets: NDArray[np.uint8], at: Positions, end: Positions, *, scalar: tuple[int, ...], nested: int
) -> tuple[_Scalars, tuple[Positions, Positions, Positions], NDArray[np.bool_]]:
    """Many messages at once, one field of each in a round: numbers of some fields, and where one nested field lies."""
    count = len(at)
    scalars = _Scalars({n: np.zeros(count, np.uint64) for n in scalar}, {n: np.zeros(count, np.bool_) for n in scalar})
    sound = np.ones(count, np.bool_)
    places: list[tuple[Positions, Positions, Positions]] = []
    for rows, number, wire, value, start, behind in _rounds(octets, at, end, sound):
        for wanted in scalar:
            hit = (number == wanted) & (wire == VARINT)
            scalars.value[wanted][rows[hit]] = value[hit]
            scalars.seen[wanted][rows[hit]] = True
        hit = (number == nested) & (wire == LENGTH)
        if hit.any():
            places.append((rows[hit], start[hit], behind[hit]))
    if not places:
        empty = np.empty(0, np.int64)
        return scalars, (empty, empty, empty), sound
    owner, start, behind = (np.concatenate([place[i] for place in places]) for i in range(3))
    # Rounds come by position within the message, so a stable sort by owner restores the order of the file.
    order = np.argsort(owner, kind="stable")
    return scalars, (owner[order], start[order], behind[order]), sound


def _rounds(octets: NDArray[np.uint8], at: Positions, end: Positions, sound: NDArray[np.bool_]):  # type: ignore[no-untyped-def]  # noqa: ANN202  # six arrays a round
    """Each round yields the next field of every message that has one more; ``sound`` is cleared where it is damaged."""
    rows = np.flatnonzero(at < end)
    at, end = at[rows], end[rows]
    while len(rows):
        tag, behind, good = varints(octets, at, end)
        number, wire = (tag >> np.uint64(3)).astype(np.int64), (tag & np.uint64(7)).astype(np.int64)
        good &= number > 0
        value = np.zeros(len(rows), np.uint64)
        start = behind.copy()
        numeric = np.flatnonzero(good & ((wire == VARINT) | (wire == LENGTH)))
        value[numeric], start[numeric], fine = varints(octets, behind[numeric], end[numeric])
        good[numeric] &= fine
        size = np.zeros(len(rows), np.int64)
        long = wire == LENGTH
        room = end - start
        good &= ~long | (value <= np.maximum(room, 0).astype(np.uint64))
        size[long & good] = value[long & good].astype(np.int64)
        size[wire == FIXED64], size[wire == FIXED32] = 8, 4
        good &= (wire == VARINT) | long | (wire == FIXED64) | (wire == FIXED32)
        good &= size <= room
        stop = start + size
        sound[rows[~good]] = False
        yield rows[good], number[good], wire[good], value[good], start[good], stop[good]
        more = good & (stop < end)
        rows, at, end = rows[more], stop[more], end[more]


def _stats(
    octets: NDArray[np.uint8], at: Positions, end: Positions
) -> tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.uint64], NDArray[np.uint32], NDArray[np.bool_]]:
    count = len(at)
    stat_id, value = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    kind, length = np.zeros(count, np.uint8), np.zeros(count, np.uint32)
    sound = np.ones(count, np.bool_)
    for rows, number, wire, number_value, start, behind in _rounds(octets, at, end, sound):
        hit = (number == 1) & (wire == VARINT)
        stat_id[rows[hit]] = number_value[hit]
        for wanted, its_wire in _WIRE_OF_KIND.items():
            hit = (number == wanted) & (wire == its_wire)
            if not hit.any():
                continue
            where = rows[hit]
            kind[where] = wanted
            length[where] = 0
            if its_wire == VARINT:
                value[where] = number_value[hit]
            elif its_wire == LENGTH:
                value[where] = start[hit].astype(np.uint64)
                size = behind[hit] - start[hit]
                length[where] = np.minimum(size, _MOST_LENGTH).astype(np.uint32)
            else:
                spots = start[hit][:, None] + np.arange(8)
                value[where] = octets[spots].astype("<u1").reshape(-1, 8).view("<u8").ravel()
    return stat_id, kind, value, length, sound
