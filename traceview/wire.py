"""Protocol-buffer wire format, just enough to recognise XProf and Perfetto files from their first bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.formats import Probe

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2
FIXED32: Final = 5

REPLACEMENT: Final = "\ufffd".encode()


def fields(data: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int, int, int]]:
    """Walk the fields of a message; stops where the bytes run out.

    Yields:
        ``(field number, wire type, start of the value, end of the value)``. The end may lie beyond ``data``,
        which may be only the head of a file.

    Raises:
        ValueError: the bytes are no protocol-buffer message.
    """
    limit = len(data) if end is None else min(end, len(data))
    at = start
    while at < limit:
        tag, at = _varint(data, at, limit)
        number, wire = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise ValueError("field number out of range")
        if wire == VARINT:
            begin = at
            _, at = _varint(data, at, limit)
            yield number, wire, begin, at
        elif wire == LENGTH:
            size, at = _varint(data, at, limit)
            yield number, wire, at, at + size
            at += size
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
            yield number, wire, at, at + size
            at += size
        else:
            raise ValueError("wire type that no current message uses")


def _varint(data: bytes, at: int, limit: int) -> tuple[int, int]:
    value = shift = 0
    while at < limit:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            break
    raise ValueError("not a varint")


def looks_like_xplane(probe: Probe) -> bool:
    """Whether the file is an ``XSpace``: its first field is a plane whose name is one of XProf's.

    Source: tsl/profiler/protobuf/xplane.proto (XSpace.planes = 1; XPlane.id = 1, XPlane.name = 2).
    """
    data = probe.text
    try:
        number, wire, start, end = next(fields(data), (0, 0, 0, 0))
        if (number, wire) != (1, LENGTH):
            return False
        for number, wire, begin, stop in fields(data, start, end):
            if (number, wire) == (2, LENGTH):
                name = data[begin:stop]
                return name.startswith((b"/host:", b"/device:")) or name == b"Task Environment"
            if (number, wire) != (1, VARINT):
                return False
    except ValueError:
        pass
    return False


def looks_like_perfetto(probe: Probe) -> bool:
    """Whether the file is a sequence of ``TracePacket``.

    Source: perfetto protos/perfetto/trace (Trace.packet = 1; TracePacket.trusted_packet_sequence_id = 10).
    """
    data = probe.text
    packets = marked = 0
    try:
        for number, wire, start, end in fields(data):
            if (number, wire) != (1, LENGTH):
                return False
            packets += 1
            if end <= len(data):
                marked += any(field[:2] == (10, VARINT) for field in fields(data, start, end))
            if packets == 32:
                break
    except ValueError:
        if packets < 3:
            return False
    return packets >= 1 and marked >= 1


def was_stored_as_text(probe: Probe) -> bool:
    """Whether the file was an ``XSpace`` until something decoded it as UTF-8 and replaced what was not."""
    data = probe.text
    if not data.startswith(b"\x0a") or data.count(REPLACEMENT) < 16:
        return False
    if b"/device:" not in data and b"/host:" not in data:
        return False
    try:
        data[: len(data) - 4].decode()
    except UnicodeDecodeError as error:
        # The cut at the end of the head may split a character; anything earlier is binary data.
        return error.start > len(data) - 16
    return True
