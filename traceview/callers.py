"""Where in the user's code an event comes from, when the trace was recorded with stacks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

    from traceview.timeline import Timeline

_MODULE: Final = re.compile(r"^nn\.Module: (?P<name>.+)$")
_INSTANCE: Final = re.compile(r"_\d+$")
_LIBRARY: Final = re.compile(r"(^|/)(torch|threading|contextlib|asyncio|concurrent|runpy)[/.]|^<")
_FRAME: Final = re.compile(r"^.+\(\d+\): .+$")
_MAX_DEPTH: Final = 512


def caller(timeline: Timeline, event_id: int) -> str | None:
    """The nearest module and source line around an event, e.g. ``"Owlv2Attention, modeling_owlv2.py(338): forward"``.

    Frames inside PyTorch and the interpreter's own machinery are passed over. A device event is looked up at its
    launch. ``None`` if no stack was recorded.

    Args:
        timeline: Linked timeline.
        event_id: Host or device event.
    """
    events = timeline.events
    names, kinds, parents = events["name"], events["kind"], events["parent_id"]
    start = event_id if events["device"][event_id] is None else events["launch_id"][event_id]
    module: str | None = None
    frame: str | None = None
    for current in _ancestors(start, parents):
        if kinds[current] != "python":
            continue
        name = names[current]
        found = _MODULE.match(name)
        if found:
            module = module or _INSTANCE.sub("", found["name"])
        elif frame is None and _FRAME.match(name) and not _LIBRARY.search(name):
            frame = name
        if module and frame:
            break
    return ", ".join(part for part in (module, frame) if part) or None


def _ancestors(event_id: int | None, parents: pl.Series) -> list[int]:
    found: list[int] = []
    while event_id is not None and len(found) < _MAX_DEPTH:
        found.append(event_id)
        event_id = parents[event_id]
    return found
