"""What the browser is given to draw, and what it says is selected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from traceview import schema
from traceview.dashboards.timeline.lanes import NO_STAGE
from traceview.render.names import plain
from traceview.render.palette import OTHERS, STAGES, UNATTRIBUTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from traceview.dashboards.timeline.lanes import Drawing

COLUMNS: Final = ("start", "dur", "name", "stage", "kind", "id", "launch", "op")
"""Columns of :data:`traceview.dashboards.timeline.lanes.DRAWN` that are sent; lane and row follow from the rows."""

KIND_COLOURS: Final = {
    "kernel": "#0072B2", "xla_op": "#0072B2", "graph": "#0072B2", "collective": "#CC79A7", "memcpy": "#56B4E9",
    "memset": "#56B4E9", "sync": "#E69F00", "async_wait": "#E69F00", "op": "#009E73", "api": "#5B3FD0",
    "python": OTHERS, "annotation": "#8ECF7C", "xla_module": "#8ECF7C", "compile": "#7A5A1E",
}  # fmt: skip
"""Colours of events where no stage is known. Where stages are, what lies in none is grey."""

_LEGEND: Final = (
    ("kernel, XLA op, graph", ("kernel", "xla_op", "graph")),
    ("communication", ("collective",)),
    ("copy, fill", ("memcpy", "memset")),
    ("wait", ("sync", "async_wait")),
    ("host op", ("op",)),
    ("runtime call", ("api",)),
    ("Python", ("python",)),
    ("range, XLA module", ("annotation", "xla_module")),
    ("compilation", ("compile",)),
    ("other", ("overhead", "counter", "other")),
)


MOST_NAME: Final = 4_000
"""Characters of a name that are shown and searched; longer ones are no name that a compiler makes."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A stretch worth a look, marked above the lanes.

    Attributes:
        kind: ``"gap"`` or ``"finding"``.
        label: One sentence.
        start_ns: Where it begins.
        end_ns: Where it ends.
        device: Key into ``devices`` of the lanes concerned; ``None``: all.
    """

    kind: str
    label: str
    start_ns: int
    end_ns: int
    device: int | None = None


@dataclass(frozen=True, slots=True)
class Area:
    """A selected stretch of time in some lanes.

    Attributes:
        start_ns: Its start.
        end_ns: Its end, exclusive.
        lanes: Keys of the lanes.
    """

    start_ns: int
    end_ns: int
    lanes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """What the timeline shows and what is selected in it.

    Attributes:
        start_ns: Left edge.
        end_ns: Right edge.
        search: Text that is searched for, ``""`` for none.
        event: Id of the selected event.
        area: Selected area.
    """

    start_ns: int
    end_ns: int
    search: str = ""
    event: int | None = None
    area: Area | None = None


def payload(
    drawing: Drawing,
    *,
    trace: str,
    colours: Mapping[str, str] | None = None,
    flags: Sequence[Flag] = (),
    shown: Selection | None = None,
    cells: tuple[pl.DataFrame, pl.DataFrame, str] | None = None,
    matches: tuple[str, int, Sequence[int]] | None = None,
) -> dict[str, Any]:
    """Everything the browser needs to draw.

    Args:
        drawing: What there is.
        trace: Names the trace; another one starts afresh.
        colours: Colours that stages have elsewhere, as ``#rrggbb``; the others get what is left.
        flags: Stretches to mark.
        shown: What to show and select at first.
        cells: Merged events instead of all of them, their rows, and a text that names this choice
            (:mod:`traceview.dashboards.timeline.detail`).
        matches: The text searched for, how many events have it in their names and where the first ones start, ns; for
            merged events, among which the browser cannot search.
    """
    events, rows, token = cells or (drawing.events.select(COLUMNS), drawing.rows, trace)
    kinds = _kinds(drawing)
    coloured = stage_colours(drawing.stages, colours or {})
    data: dict[str, Any] = {
        "trace": trace,
        "token": token,
        "events": events,
        "rows": rows.rows(),
        "names": list(map(shown_name, drawing.names)),
        "groups": [{"label": plain(group.label), "open": group.open} for group in drawing.groups],
        "lanes": [
            {
                "key": lane.key, "label": plain(lane.label), "group": lane.group, "rows": lane.rows,
                "device": lane.device, "open": lane.open,
            }
            for lane in drawing.lanes
        ],
        "stages": [{"name": plain(name), "colour": colour} for name, colour in coloured.items()],
        "kinds": kinds,
        "legend": _legend(drawing, coloured),
        "counters": [
            {"label": one.label, "unit": one.unit, "least": one.least, "most": one.most, "events": one.events}
            for one in drawing.counters.series
        ],
        "samples": drawing.counters.samples,
        "flags": [
            {"kind": f.kind, "label": plain(f.label), "t0": f.start_ns, "t1": f.end_ns, "device": f.device}
            for f in flags
        ],
        "end": max(drawing.end_ns, 1),
        "total": drawing.events.height,
        "note": _note(drawing, merged=cells is not None),
    }  # fmt: skip
    if shown is not None:
        data["view"] = _shown(shown)
    if matches is not None:
        data["matches"] = {"q": matches[0], "total": matches[1], "starts": list(matches[2])}
    return data


def shown_name(name: str) -> str:
    """A name as the timeline shows and searches it: what would be obeyed is written out, what never ends is cut."""
    return plain(name[:MOST_NAME] + "…" if len(name) > MOST_NAME else name)


def stage_colours(stages: Sequence[str], elsewhere: Mapping[str, str]) -> dict[str, str]:
    """A colour for each stage: the one that it has elsewhere, else one that is left, in the order given.

    Args:
        stages: Their names, most device time first.
        elsewhere: Colours by name.
    """
    kept = {name: elsewhere[name] for name in stages if name in elsewhere}
    free = iter([colour for colour in STAGES if colour not in kept.values()])
    return {name: kept[name] if name in kept else next(free, OTHERS) for name in stages}


def _shown(shown: Selection) -> dict[str, Any]:
    area = shown.area
    return {
        "t0": shown.start_ns,
        "t1": shown.end_ns,
        "q": shown.search,
        "id": shown.event,
        "area": {"t0": area.start_ns, "t1": area.end_ns, "lanes": list(area.lanes)} if area else None,
    }


def _kinds(drawing: Drawing) -> list[dict[str, str]]:
    grey = bool(drawing.stages)
    return [
        {"name": kind.replace("_", " "), "colour": UNATTRIBUTED if grey else KIND_COLOURS.get(kind, UNATTRIBUTED)}
        for kind in schema.KINDS
    ]


def _legend(drawing: Drawing, coloured: Mapping[str, str]) -> list[tuple[str, str]]:
    """Colour and words of each entry."""
    if drawing.stages:
        first = [(colour, plain(name)) for name, colour in coloured.items() if colour != OTHERS]
        more = len(drawing.stages) - len(first)
        rest = [(OTHERS, f"{more} more {'stage' if more == 1 else 'stages'}, named when pointed at")] if more else []
        none = [(UNATTRIBUTED, "no stage")] if (drawing.events["stage"] == NO_STAGE).any() else []
        return [*first, *rest, *none]
    present = {schema.KINDS[code] for code in drawing.events["kind"].unique().to_list()}
    return [
        (KIND_COLOURS.get(kinds[0], UNATTRIBUTED), words) for words, kinds in _LEGEND if present.intersection(kinds)
    ]


def _note(drawing: Drawing, *, merged: bool) -> str:
    """What is not drawn, in words."""
    parts = []
    if merged:
        parts.append(
            f"The trace has {drawing.events.height:,} events; short ones are merged, with their number kept, until you "
            "zoom in. No arrows are drawn between calls and what they launched; a selected event says what launched it."
        )
    for kind, count in drawing.left_out.items():
        parts.append(f"{count:,} {kind} {'event has' if count == 1 else 'events have'} no length and no lane here.")
    return " ".join(parts)


def selection(state: Any, drawing: Drawing, trace: str) -> Selection | None:
    """What the browser reports, checked: it may be of another trace, or made up.

    Returns:
        ``None`` if it is nothing that this trace can show.
    """
    if not isinstance(state, dict) or state.get("trace") != trace:
        return None
    start, end = _time(state.get("t0"), drawing), _time(state.get("t1"), drawing)
    if start is None or end is None or end < start:
        return None
    search, event = state.get("q"), state.get("id")
    return Selection(
        start_ns=start,
        end_ns=end,
        search=search[:MOST_SEARCH] if isinstance(search, str) else "",
        event=event if isinstance(event, int) and event >= 0 else None,
        area=_area(state.get("area"), drawing),
    )


MOST_SEARCH: Final = 500
"""Characters of a search text that are kept."""


def _time(value: Any, drawing: Drawing) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:  # noqa: PLR0124 - NaN
        return None
    return int(min(max(value, 0), max(drawing.end_ns, 1)))


def _area(value: Any, drawing: Drawing) -> Area | None:
    if not isinstance(value, dict) or not isinstance(value.get("lanes"), list):
        return None
    start, end = _time(value.get("t0"), drawing), _time(value.get("t1"), drawing)
    known = {lane.key for lane in drawing.lanes}
    lanes = tuple(key for key in value["lanes"] if isinstance(key, str) and key in known)
    return Area(start, end, lanes) if start is not None and end is not None and end > start and lanes else None
