"""How long each call of a stage took."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from traceview import intervals
from traceview.stage_sources.found import HostTree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceview.stages import Staging


def call_times(staging: Staging, ranges: pl.DataFrame, work: pl.DataFrame) -> dict[str, NDArray[np.int64]]:
    """For each stage the time of each of its calls, ns.

    A call is one host range. Its time is the union of the device work that was launched in it; where nothing of the
    stage runs on a device, its length on the host.

    Args:
        staging: The stages.
        ranges: The ranges to look at, as :attr:`traceview.stages.Staging.ranges`.
        work: Device work with ``launch_id``, ``device``, ``start_ns``, ``dur_ns``.
    """
    host = {
        stage: (own["end_ns"] - own["start_ns"]).to_numpy()
        for (stage,), own in ranges.group_by("stage", maintain_order=True)
    }
    launched = work.filter(pl.col("launch_id").is_not_null())
    if not launched.height or not ranges.height:
        return host
    tree = HostTree(staging.timeline)
    ids = staging.ranges["id"].to_numpy()
    innermost = tree.nearest(ids)[launched["launch_id"].to_numpy()]
    outer = dict(zip(ids.tolist(), tree.nearest(ids, strict=True)[ids].tolist(), strict=True))
    stage_of = dict(staging.ranges.select("id", "stage").iter_rows())
    found: dict[str, list[tuple[int, int]]] = {}
    for row, call in enumerate(innermost.tolist()):
        inner: str | None = None
        while call >= 0:
            stage = stage_of[call]
            # A stage inside itself is one call.
            if stage != inner:
                found.setdefault(stage, []).append((row, call))
            inner = stage
            call = outer[call]
    starts = launched["start_ns"].to_numpy()
    ends = starts + launched["dur_ns"].to_numpy()
    device = launched["device"].to_numpy().astype(np.int64)
    times = dict(host)
    wanted = set(ranges["id"])
    for stage, pairs in found.items():
        rows = np.array([row for row, call in pairs if call in wanted], np.intp)
        calls = np.array([call for _, call in pairs if call in wanted], np.int64)
        if not len(rows):
            continue
        # Devices that work for one call at the same time count each.
        _, group = np.unique(np.stack([calls, device[rows]], axis=1), axis=0, return_inverse=True)
        per_lane = intervals.grouped_total(group.reshape(-1), starts[rows], ends[rows])
        _, first = np.unique(group, return_index=True)
        _, of_call = np.unique(calls[first], return_inverse=True)
        busy = np.zeros(int(of_call.max()) + 1, np.int64)
        np.add.at(busy, of_call, per_lane)
        # A call that launched nothing took no device time, but it was a call.
        silent = max(len(host.get(stage, busy)) - len(busy), 0)
        times[stage] = np.concatenate([busy, np.zeros(silent, np.int64)])
    return times
