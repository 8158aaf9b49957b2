"""XSpace files written by hand: planes, lines, events and programs in, the bytes of an ``.xplane.pb`` out.

Source of the field numbers: tsl/profiler/protobuf/xplane.proto and xla/service/hlo.proto. Times are in nanoseconds,
with fractions where a picosecond is meant.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

Value = int | float | str | bytes


@dataclass(frozen=True)
class Unsigned:
    """A number that is written as uint64."""

    value: int


@dataclass(frozen=True)
class Interned:
    """A text that is written once and referred to."""

    text: str


def varint(value: int) -> bytes:
    """A number in the variable-length form; negative ones take ten bytes, as int64 does."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(key: int, value: int) -> bytes:
    """A field that is a number; zero is left out, as proto3 does."""
    return varint(key << 3) + varint(value) if value else b""


def blob(key: int, value: bytes | str) -> bytes:
    """A field that is text, bytes or a message; nothing is left out if it is empty."""
    data = value.encode() if isinstance(value, str) else value
    return varint(key << 3 | 2) + varint(len(data)) + data if data else b""


@dataclass
class Plane:
    """One plane."""

    name: str
    id: int = 0
    stats: dict[str, Any] = field(default_factory=dict)
    _lines: list[tuple[int, str, int, list[bytes]]] = field(default_factory=list)
    _names: dict[tuple[str, str, str], int] = field(default_factory=dict)
    _name_bodies: list[bytes] = field(default_factory=list)
    _stat_names: dict[str, int] = field(default_factory=dict)

    def line(self, name: str, id: int = 0, *, timestamp_ns: int = 0) -> Line:  # noqa: A002  # the format's own word
        """Begin a line."""
        events: list[bytes] = []
        self._lines.append((id, name, timestamp_ns, events))
        return Line(self, events)

    def name_id(self, name: str, display_name: str = "", stats: dict[str, Any] | None = None) -> int:
        """Number of an event name, with what holds for all its events."""
        key = (name, display_name, repr(stats))
        if key not in self._names:
            number_of = self._names[key] = len(self._names) + 1
            inner = number(1, number_of) + blob(2, name) + blob(4, display_name) + self.stat_fields(5, stats or {})
            self._name_bodies.append(number(1, number_of) + blob(2, inner))
        return self._names[key]

    def stat_fields(self, key: int, stats: dict[str, Any]) -> bytes:
        """Stats as repeated fields."""
        return b"".join(blob(key, self._stat(name, value)) for name, value in stats.items())

    def _stat_id(self, name: str) -> int:
        return self._stat_names.setdefault(name, len(self._stat_names) + 1)

    def _stat(self, name: str, value: Any) -> bytes:
        head = number(1, self._stat_id(name))
        if isinstance(value, Unsigned):
            return head + varint(3 << 3) + varint(value.value)
        if isinstance(value, Interned):
            return head + varint(7 << 3) + varint(self._stat_id(value.text))
        if isinstance(value, bool | int):
            return head + varint(4 << 3) + varint(int(value))
        if isinstance(value, float):
            return head + varint(2 << 3 | 1) + struct.pack("<d", value)
        data = value.encode() if isinstance(value, str) else value
        return head + varint((5 if isinstance(value, str) else 6) << 3 | 2) + varint(len(data)) + data

    def encode(self) -> bytes:
        """The body of the plane, its fields in the order in which protobuf writes them."""
        own_stats = self.stat_fields(6, self.stats)
        lines = b"".join(
            blob(3, number(1, id_) + blob(2, name) + number(3, timestamp) + b"".join(blob(4, e) for e in events))
            for id_, name, timestamp, events in self._lines
        )
        names = b"".join(blob(4, body) for body in self._name_bodies)
        stats = b"".join(
            blob(5, number(1, id_) + blob(2, number(1, id_) + blob(2, name))) for name, id_ in self._stat_names.items()
        )
        return number(1, self.id) + blob(2, self.name) + lines + names + stats + own_stats


@dataclass
class Line:
    """One line of a plane."""

    plane: Plane
    events: list[bytes]

    def event(
        self,
        name: str,
        start_ns: float,
        dur_ns: float,
        *,
        display_name: str = "",
        of_name: dict[str, Any] | None = None,
        **stats: Any,
    ) -> None:
        """An event; ``of_name`` are stats of its name, keywords are its own."""
        body = number(1, self.plane.name_id(name, display_name, of_name))
        body += number(2, round(start_ns * 1000)) + number(3, round(dur_ns * 1000))
        self.events.append(body + self.plane.stat_fields(4, stats))


@dataclass
class Space:
    """A whole file."""

    planes: list[Plane] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def plane(self, name: str, id: int = 0, **stats: Any) -> Plane:  # noqa: A002  # the format's own word
        """Begin a plane with facts about itself."""
        self.planes.append(Plane(name, id, stats))
        return self.planes[-1]

    def encode(self) -> bytes:
        """The bytes of the file."""
        return (
            b"".join(blob(1, plane.encode()) for plane in self.planes)
            + b"".join(blob(2, text) for text in self.errors)
            + b"".join(blob(3, text) for text in self.warnings)
        )


@dataclass
class Instruction:
    """One HLO instruction."""

    name: str
    opcode: str
    dims: tuple[int, ...] = ()
    operands: tuple[str, ...] = ()
    op_name: str = ""
    called: str = ""
    target: str = ""
    precision: int = 0
    parameter: int = 0
    type: int = 11
    fusion_kind: str = ""


def program(name: str, computations: dict[str, list[Instruction]], *, entry: str) -> bytes:
    """An ``HloProto``; the last instruction of each computation is its result."""
    numbers = {one.name: index for index, one in enumerate((i for body in computations.values() for i in body), 1)}
    computation_ids = {key: index for index, key in enumerate(computations, 1)}
    bodies = b""
    for key, body in computations.items():
        inner = blob(1, key)
        for one in body:
            shape = number(2, one.type) + b"".join(number(3, extent) for extent in one.dims)
            text = blob(1, one.name) + blob(2, one.opcode) + blob(3, shape) + blob(7, blob(2, one.op_name))
            text += (
                number(9, one.parameter)
                + blob(11, one.fusion_kind)
                + blob(28, one.target)
                + number(35, numbers[one.name])
            )
            text += b"".join(number(36, numbers[operand]) for operand in one.operands)
            text += number(38, computation_ids[one.called]) if one.called else b""
            text += blob(51, number(1, one.precision)) if one.precision else b""
            inner += blob(2, text)
        inner += number(5, computation_ids[key]) + number(6, numbers[body[-1].name])
        bodies += blob(3, inner)
    return blob(1, blob(1, name) + blob(2, entry) + bodies + number(6, computation_ids[entry]))
