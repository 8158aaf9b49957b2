from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl

from authored_timeline import kernel, op, timeline
from traceview import load
from traceview.dashboards.timeline.detail import CELLS, cells
from traceview.dashboards.timeline.lanes import NO_STAGE, draw
from traceview.stages import assign_stages


def test_short_events_of_the_window_are_merged_and_long_ones_stand_alone():
    drawing = draw(
        timeline(kernel("long", 0, 500), *(kernel(f"k{i}", 500 + i, 500.5 + i) for i in range(400)), op("end", 0, 1000))
    )
    found, rows = cells(drawing, 0, drawing.end_ns, most=40)
    CELLS.validate(found)
    assert found["count"].sum() == drawing.events.height
    assert found["total"].sum() == drawing.events["dur"].sum()
    alone = found.filter(pl.col("count") == 1)
    assert {"long", "end"} <= {drawing.names[code] for code in alone["name"]}
    assert found.height <= 42
    assert rows["count"].sum() == found.height


def test_close_up_every_event_is_itself():
    drawing = draw(timeline(*(kernel(f"k{i}", i, i + 0.5) for i in range(1000))))
    found, _ = cells(drawing, 500_000, 510_000)
    near = found.filter((pl.col("start") >= 500_000) & (pl.col("start") < 510_000))
    assert [drawing.names[code] for code in near["name"]] == [f"k{i}" for i in range(500, 510)]
    assert near["count"].to_list() == [1] * 10
    assert found["count"].sum() == 1000
    assert found.height < 1000


def test_a_lane_that_is_not_asked_for_stays_coarse():
    drawing = draw(timeline(*(kernel(f"k{i}", i, i + 0.5, stream=i % 2) for i in range(2000))))
    found, rows = cells(drawing, 0, 100_000, lanes=["p0d0s0"])
    fine, coarse = (found[first : first + count] for first, count in rows.select("first", "count").iter_rows())
    assert fine.filter(pl.col("start") < 100_000)["count"].to_list() == [1] * 50
    assert coarse.filter(pl.col("start") < 100_000)["count"].min() > 1


def test_the_colour_of_a_cell_is_that_of_most_of_its_time():
    drawing = draw(timeline(*(kernel(f"k{i}", i, i + 0.001 * (i + 1)) for i in range(4)), op("end", 0, 100_000)))
    codes = pl.Series([7, 7, 3, 5], dtype=pl.UInt8)
    work = drawing.events["lane"] == 0
    drawing = dataclasses.replace(
        drawing,
        stages=tuple(f"s{i}" for i in range(8)),
        events=drawing.events.with_columns(stage=pl.concat([codes, pl.Series([NO_STAGE], dtype=pl.UInt8)])),
    )
    assert work.to_list() == [True] * 4 + [False]
    found, _ = cells(drawing, 0, 100_000_000)
    first = found.row(0, named=True)
    # 3 ns are of stage 7, 3 of stage 3 and 4 of stage 5.
    assert (first["count"], first["stage"]) == (4, 5)


def test_the_windows_of_a_real_trace_lose_nothing(corpus):
    drawing = draw(assign_stages(load(str(corpus / "pytorch" / "owlv2-large-h100.json.gz"))).timeline)
    for low, high in ((0, drawing.end_ns), (300_000_000, 301_000_000), (drawing.end_ns - 10, drawing.end_ns)):
        found, rows = cells(drawing, low, high)
        assert found["count"].sum() == drawing.events.height
        assert found["total"].sum() == drawing.events["dur"].sum()
        assert found.height <= 20_000
        for first, count in rows.select("first", "count").iter_rows():
            assert np.all(np.diff(found["start"][first : first + count].to_numpy()) >= 0)
