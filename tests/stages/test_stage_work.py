"""The device work of stages and their parts, held to a plain filter."""

from __future__ import annotations

import numpy as np
import polars as pl

from traceview import intervals
from traceview.stage_work import StageWork

PATHS = ["a", "a-b", "a/b", "a/b/c", "a/bc", "a b", "ab", "b", "b/a", "z"]


def test_each_stage_has_the_work_of_its_parts_and_of_no_other():
    random = np.random.default_rng(5)
    n = 400
    work = pl.DataFrame(
        {
            "stage": random.choice([path for path in PATHS if path not in ("b", "z")], n),
            "device": random.integers(0, 3, n, dtype=np.uint32),
            "launch_id": pl.Series(random.integers(0, 60, n)).replace(0, None).cast(pl.UInt32),
            "start_ns": random.integers(0, 5_000, n),
            "dur_ns": random.integers(0, 90, n),
            "device_ns": pl.Series(random.integers(0, 90, n)).replace(5, None),
            "floor_ns": pl.Series(random.integers(0, 9, n)).replace(5, None),
        }
    )
    found = StageWork(work, PATHS)
    for path in PATHS:
        own = work.filter((pl.col("stage") == path) | pl.col("stage").str.starts_with(f"{path}/"))
        union = sum(
            intervals.total(rows["start_ns"].to_numpy(), (rows["start_ns"] + rows["dur_ns"]).to_numpy())
            for _, rows in own.group_by("device")
        )
        assert found.pieces(path) == own.height
        assert found.launches(path) == own["launch_id"].drop_nulls().n_unique()
        assert found.union_ns(path) == union
        assert found.floors(path) == tuple(own[name].sum() for name in ("dur_ns", "device_ns", "floor_ns"))
    assert found.pieces("b") == found.pieces("b/a") > 0
    assert found.pieces("z") == found.union_ns("z") == 0


def test_no_work_at_all():
    schema = {"stage": pl.String, "device": pl.UInt32, "launch_id": pl.UInt32}
    schema |= dict.fromkeys(("start_ns", "dur_ns", "device_ns", "floor_ns"), pl.Int64)
    assert StageWork(pl.DataFrame(schema=schema), ["a"]).union_ns("a") == 0
