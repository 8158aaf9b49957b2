"""Is this an XSpace, or a viewer file that was made of one? Told from the first bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .wire import LENGTH, VARINT, WireError, text, varint

if TYPE_CHECKING:
    from traceview.formats import Probe

_PLANE_NAME: Final = re.compile(r"^(/(host|device|virtualdevice):|#Chip|Task Environment$)")
_PROCESS: Final = re.compile(rb'"name"\s*:\s*"/(device:[A-Za-z_ ]+:\d+|host:(CPU|metadata))')


def looks_like_xspace(probe: Probe) -> bool:
    """Whether the first field is a plane whose first fields are its id and a name that XProf gives.

    Source: tsl/profiler/protobuf/xplane.proto (XSpace.planes = 1; XPlane.id = 1, XPlane.name = 2).
    """
    data, end = probe.text, len(probe.text)
    try:
        tag, at = varint(data, 0, end)
        if tag != 1 << 3 | LENGTH:
            return False
        _, at = varint(data, at, end)
        while at < end:
            tag, at = varint(data, at, end)
            if tag == 1 << 3 | VARINT:
                _, at = varint(data, at, end)
            elif tag == 2 << 3 | LENGTH:
                size, at = varint(data, at, end)
                return bool(_PLANE_NAME.match(text(data, at, min(at + size, end, at + 256))))
            else:
                return False
    except WireError:
        pass
    return False


def looks_like_viewer_json(probe: Probe) -> bool:
    """Whether it is Chrome JSON whose processes are planes of XProf."""
    start = probe.text.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return start == b"{" and b'"traceEvents"' in probe.text and bool(_PROCESS.search(probe.text))
