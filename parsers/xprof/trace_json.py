"""Viewer files of XProf (``trace.json.gz``): what is left when the XSpace is gone, brought into the same shape.

They hold less: no programs, no floating-point operations, no flows, no facts about devices, and at most a fixed number
of events, dropped without a word. Source: openxla/xla ``xplane_to_trace_events.cc``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview.errors import UnreadableTraceError
from traceview.parsers.kineto.reader import read as read_chrome_json
from traceview.timeline import Note, Trust

from .columns import INT64, REF
from .space import EventName, Line, Losses, Plane, Space
from .stats import StatColumns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray


CAPS: Final = (1_000_000, 5_000_000)
"""Most events that the viewer file holds: until mid-2026 and after (openxla/xla pull request 44702)."""


@dataclass(frozen=True, slots=True)
class ViewerFile:
    """A viewer file as a space, with what must be said of it."""

    space: Space
    notes: tuple[Note, ...]
    truncated: bool


def read_viewer_file(path: Path, *, progress: Callable[[float], None] | None) -> ViewerFile:
    """Read a viewer file.

    Raises:
        UnreadableTraceError: it holds nothing of a trace.
    """
    raw = read_chrome_json(path, progress=progress)
    events = raw.events.frame()
    names = _names(events, raw.text_args)
    spans = events.with_row_index("row").filter(pl.col("ph").cast(pl.String) == "X")
    if not events.height:
        raise UnreadableTraceError("no-events", where=str(path), why="there is no event in this XProf viewer file.")
    space = Space(
        losses=Losses({kind: (count.n, count.example) for kind, count in raw.counts.items() if kind != "lost-event"})
    )
    int_args = dict(raw.int_args)
    text_args = {key: frame for key, frame in raw.text_args.items() if key != "sort_index"}
    for (pid,), rows in sorted(spans.group_by("pid", maintain_order=True), key=lambda pair: _order(pair[0][0])):
        space.planes.append(_plane(pid, rows, names, int_args, text_args))
    notes = [
        Note(
            "viewer-file",
            "This is XProf's viewer file: without compiled programs, operation counts, launches and facts about the "
            "devices. The xplane.pb of the same run holds them.",
            Trust.LIMITED,
        )
    ]
    capped = spans.height in CAPS
    if capped:
        last_ns = int((spans["ts_ns"]).max() or 0)  # type: ignore[arg-type]  # Int64, so an int
        notes.append(
            Note(
                "viewer-file-capped",
                f"The file holds exactly {spans.height:,} events, the most that XProf writes into it: everything after "
                f"{last_ns / 1e6:,.3f} ms is missing. Read the xplane.pb instead.",
                Trust.POOR,
            )
        )
    return ViewerFile(space, tuple(notes), raw.truncated or capped)


def _order(pid: object) -> int:
    return pid if isinstance(pid, int) else 0


def _names(events: pl.DataFrame, text_args: Mapping[str, pl.DataFrame]) -> dict[tuple[str, int, int], str]:
    """``(process_name | thread_name, pid, tid)`` to the name."""
    if "name" not in text_args:
        return {}
    named = text_args["name"]
    rows = events[named["row"]].with_columns(named["value"]).filter(pl.col("ph").cast(pl.String) == "M")
    found: dict[tuple[str, int, int], str] = {}
    for what, pid, tid, value in rows.select("name", "pid", "tid", "value").iter_rows():
        if pid is not None:
            found.setdefault((what, pid, tid if what == "thread_name" and tid is not None else 0), _unquoted(value))
    return found


def _unquoted(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, str) else text


def _plane(
    pid: object,
    rows: pl.DataFrame,
    names: dict[tuple[str, int, int], str],
    int_args: Mapping[str, pl.DataFrame],
    text_args: Mapping[str, pl.DataFrame],
) -> Plane:
    number = pid if isinstance(pid, int) else 0
    plane = Plane(id=number, name=names.get(("process_name", number, 0), f"process {number}"))
    rows = rows.sort("tid", "row", nulls_last=False)
    first = 0
    for tid, count in rows.group_by("tid", maintain_order=True).len().iter_rows():
        name = names.get(("thread_name", number, tid or 0), "")
        plane.lines.append(Line(tid or 0, name, 0, first, first + count))
        first += count
    distinct = rows["name"].fill_null(pl.lit("", pl.Categorical)).cast(pl.String)
    table = distinct.unique(maintain_order=True)
    plane.names = [EventName(name) for name in table]
    codes = distinct.replace_strict(
        table, pl.int_range(len(table), dtype=pl.UInt32, eager=True), return_dtype=pl.UInt32
    )
    plane.name_of = codes.to_numpy()
    plane.offset_ps = rows["ts_ns"].fill_null(0).to_numpy() * 1000
    plane.duration_ps = rows["dur_ns"].fill_null(0).to_numpy() * 1000
    place = pl.DataFrame({"row": rows["row"], "at": pl.int_range(rows.height, dtype=pl.UInt32, eager=True)})
    for key, frame in text_args.items():
        found = frame.join(place, on="row", how="inner").sort("at")
        if found.height:
            plane.columns[key] = _texts(found)
    for key, frame in int_args.items():
        found = frame.join(place, on="row", how="inner").sort("at")
        if found.height:
            made = _column(found["at"].to_numpy(), INT64, found["value"].cast(pl.Int64).to_numpy().view(np.uint64), {})
            plane.columns[key] = plane.columns[key].joined(made) if key in plane.columns else made
    return plane


def _texts(found: pl.DataFrame) -> StatColumns:
    distinct = found["value"].unique(maintain_order=True)
    codes = (
        found["value"]
        .cast(pl.String)
        .replace_strict(
            distinct.cast(pl.String), pl.int_range(len(distinct), dtype=pl.UInt64, eager=True), return_dtype=pl.UInt64
        )
    )
    interned = {index: _unquoted(text) for index, text in enumerate(distinct.cast(pl.String))}
    return _column(found["at"].to_numpy(), REF, codes.to_numpy(), interned)


def _column(row: NDArray[np.uint32], kind: int, value: NDArray[np.uint64], interned: dict[int, str]) -> StatColumns:
    return StatColumns(row, np.full(len(row), kind, np.uint8), value, np.zeros(len(row), np.uint32), interned)
