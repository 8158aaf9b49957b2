"""Level of detail for traces with more events than a browser should hold: the server merges, the browser draws.

Inside the window shown the events of each row are merged where they are narrower than a pixel; outside it the rest of
the trace stays at hand in coarse cells, so that something is there while finer ones are on their way. A cell keeps how
many events it stands for, their summed time and the stage that most of that time has. Only a cell of one event has its
name and id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import schema
from traceview.dashboards.timeline.lanes import NO_STAGE, NONE
from traceview.schema import Column, FrameSchema

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from traceview.dashboards.timeline.lanes import Drawing

    Columns = dict[str, NDArray[np.float64]]
    """Columns of ``drawn``, each of its own number type."""

MOST_EVENTS: Final = 1_000_000
"""Up to here the browser gets every event."""

MOST_CELLS: Final = 20_000
"""About as many cells are sent at a time."""

_COARSE: Final = 200
"""Cells over the whole trace and row, outside the window."""

_FINE: Final = 1_000
"""Cells over the window and row, to begin with."""

CELLS: Final = FrameSchema(
    "cells",
    "Merged events of a window, in the order of the rows, then by start.",
    (
        Column("start", pl.Float64, "ns", "start of the first event"),
        Column("dur", pl.Float64, "ns", "until the end of the last event"),
        Column("name", pl.UInt32, "", "index into `Drawing.names`; of the first event if there are several"),
        Column("stage", pl.UInt8, "", "stage with most of the summed time; 255: none"),
        Column("kind", pl.UInt8, "", "kind with most of the summed time; where a stage is known, of the first event"),
        Column("id", pl.UInt32, "", "id of the only event; 0 if there are several"),
        Column("launch", pl.UInt32, "", "as in `drawn`, of the only event"),
        Column("op", pl.UInt32, "", "as in `drawn`, of the only event"),
        Column("count", pl.UInt32, "", "events merged"),
        Column("total", pl.Float64, "ns", "sum of their durations"),
    ),
)


def cells(
    drawing: Drawing, start_ns: int, end_ns: int, lanes: Collection[str] | None = None, most: int = MOST_CELLS
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Merge the events of a timeline for a window.

    Args:
        drawing: The whole timeline.
        start_ns: Left edge of the window.
        end_ns: Right edge.
        lanes: Keys of the lanes to refine; ``None``: all.
        most: About so many cells at most.

    Returns:
        :data:`CELLS`, and all rows of the picture as :data:`traceview.dashboards.timeline.lanes.ROWS` with their place
        in that frame. The counts of a row's cells add up to its number of events.
    """
    columns = {name: drawing.events[name].to_numpy() for name in drawing.events.columns}
    fine = np.array([lanes is None or lane.key in lanes for lane in drawing.lanes], np.bool_)
    steps = _FINE
    while True:
        starts, row_of = _boundaries(drawing, columns, fine, start_ns, max(end_ns, start_ns + 1), steps)
        if len(starts) <= most or steps <= 8:
            break
        steps //= 2
    counts = np.diff(np.append(starts, drawing.events.height)).astype(np.uint32)
    made = _merged(columns, starts, counts)
    rows = drawing.rows
    held = np.bincount(row_of, minlength=rows.height).astype(np.uint32)
    return made, rows.with_columns(
        first=pl.Series(np.cumsum(held) - held, dtype=pl.UInt32), count=pl.Series(held, dtype=pl.UInt32)
    )


def _boundaries(
    drawing: Drawing,
    columns: Columns,
    fine: NDArray[np.bool_],
    low: int,
    high: int,
    steps: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each cell begins among the events, and its row."""
    begins, owners = [], []
    span = max(drawing.end_ns, 1)
    coarse = span / _COARSE
    step = (high - low) / steps
    for number, (lane, _, first, count) in enumerate(drawing.rows.iter_rows()):
        start = columns["start"][first : first + count]
        length = columns["dur"][first : first + count]
        # Events ascend, so those of one bucket lie together; the window is numbered apart from what is around it.
        bucket = np.floor(start / coarse)
        width = np.full(count, coarse)
        if fine[lane]:
            at = slice(int(np.searchsorted(start + length, low, "left")), int(np.searchsorted(start, high, "left")))
            bucket[at] = span + np.floor((start[at] - low) / step)
            bucket[at.stop :] += 4 * span
            width[at] = step
        new = np.ones(count, np.bool_)
        # An event that fills its bucket stands alone, and so does whoever comes after it.
        long = length >= width
        new[1:] = (bucket[1:] != bucket[:-1]) | long[1:] | long[:-1]
        mine = np.flatnonzero(new)
        begins.append(mine + first)
        owners.append(np.full(len(mine), number, np.int64))
    nothing = np.empty(0, np.int64)
    return np.concatenate([nothing, *begins]), np.concatenate([nothing, *owners])


def _merged(columns: Columns, starts: NDArray[np.int64], counts: NDArray[np.uint32]) -> pl.DataFrame:
    if not len(starts):
        return CELLS.empty()
    ends = np.maximum.reduceat(columns["start"] + columns["dur"], starts)
    total = np.add.reduceat(columns["dur"], starts)
    single = counts == 1
    stage, kind = columns["stage"][starts].copy(), columns["kind"][starts].copy()
    several = np.flatnonzero(~single)
    if len(several):
        stage[several], kind[several] = _dominant(columns, starts[several], counts[several])
    begin = columns["start"][starts]
    return pl.DataFrame(
        {
            "start": begin,
            "dur": ends - begin,
            "name": columns["name"][starts],
            "stage": stage,
            "kind": kind,
            "id": np.where(single, columns["id"][starts], 0),
            "launch": np.where(single, columns["launch"][starts], NONE),
            "op": np.where(single, columns["op"][starts], NONE),
            "count": counts,
            "total": total,
        },
        schema=CELLS.dtypes,
    )


def _dominant(
    columns: Columns, starts: NDArray[np.int64], counts: NDArray[np.uint32]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Stage and kind with most time in each cell. Instants count as a little, so that they decide where all are."""
    which = np.repeat(np.arange(len(starts)), counts)
    offset = np.arange(len(which)) - np.repeat(np.cumsum(counts, dtype=np.int64) - counts, counts)
    events = starts[which] + offset
    # Without a stage the kind is the colour, so each kind without a stage is a colour of its own.
    stage = columns["stage"][events]
    kind = columns["kind"][events]
    code = np.where(stage == NO_STAGE, NO_STAGE + 1 + kind.astype(np.int64), stage)
    used = np.flatnonzero(np.bincount(code))
    compact = np.zeros(NO_STAGE + 1 + len(schema.KINDS), np.int64)
    compact[used] = np.arange(len(used))
    weight = np.bincount(
        which * len(used) + compact[code], weights=columns["dur"][events] + 1e-3, minlength=len(starts) * len(used)
    )
    chosen = used[weight.reshape(len(starts), len(used)).argmax(axis=1)]
    return (
        np.where(chosen > NO_STAGE, NO_STAGE, chosen).astype(np.uint8),
        np.where(chosen > NO_STAGE, chosen - NO_STAGE - 1, columns["kind"][starts]).astype(np.uint8),
    )
