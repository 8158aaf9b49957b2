"""A profile that JAX wrote, without the name of the machine that it ran on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_HOST_NAMES: Final = 4
"""Field ``hostnames`` of an XSpace (tsl/profiler/protobuf/xplane.proto)."""
_LENGTH_DELIMITED: Final = 2


def write_without_host(source: Path, target: Path) -> None:
    """Copy an XSpace without the names of hosts; nothing else is changed. What is not understood is kept as it is."""
    data = source.read_bytes()
    with open(target, "wb") as out:
        at = 0
        while at < len(data):
            start = at
            tag, at = _varint(data, at)
            size, at = _varint(data, at)
            if tag & 7 != _LENGTH_DELIMITED or at + size > len(data):
                out.write(data[start:])
                return
            at += size
            if tag >> 3 != _HOST_NAMES:
                out.write(data[start:at])


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and the position behind it."""
    value = shift = 0
    while at < len(data) and shift < 70:
        octet = data[at]
        at += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            break
        shift += 7
    return value, at
