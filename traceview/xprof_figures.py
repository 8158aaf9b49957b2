"""The figures that XProf shows for a TPU, by XProf's own definitions, to compare with its pages.

They are not traceview's: XProf counts a core as busy while it waits for its own copies. Definitions read in
openxla/xprof (``op_metrics_db_utils``, ``op_profile``, ``device_op_metrics``) and checked against xprof 2.24.2 to the
digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals
from traceview.xla import XLA_KINDS, self_ns, waits_for_host

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceview.timeline import Timeline

_NS_PS: Final = 1000

DEVICE_CLOCK: Final = ("device_offset_ps", "device_duration_ps")
"""Details with the times of an op by the clock of the device; those of the timeline are brought to the host's."""


@dataclass(frozen=True, slots=True)
class XprofFigures:
    """Figures of all TPU cores of a profile together.

    Attributes:
        total_ps: Sum over cores of the time from the first to the last op, ps (XProf: total time).
        idle_share: One less the self time of all ops over the total; waits count as ops.
        duty_cycle: Union of the ops that do not wait for the host, over the span of ops and modules.
        flops: Operations of every run of every op, ``None`` if none is recorded.
        wait_ps: Self time of ops that only wait, which XProf counts as busy, ps.
    """

    total_ps: int
    idle_share: float
    duty_cycle: float
    flops: int | None
    wait_ps: int


def xprof_figures(timeline: Timeline) -> XprofFigures | None:
    """The figures of a profile of TPUs; ``None`` for anything else."""
    if not any(run.format == "xprof" for run in timeline.runs):
        return None
    tpus = timeline.devices.filter(pl.col("vendor") == "google")["device"]
    events = timeline.events.filter(pl.col("device").is_in(tpus.implode()))
    lanes = events.filter(pl.col("kind").is_in(list(XLA_KINDS))).select("device", "stream").unique()
    ops = events.join(lanes, on=["device", "stream"], how="semi", maintain_order="left")
    if not ops.height:
        return None
    start_ps, duration_ps = _exact(timeline, ops)
    end_ps = start_ps + duration_ps
    self_ps = _self_ps(ops, start_ps, duration_ps)
    devices = ops["device"].to_numpy()
    off_duty = ops["id"].is_in(waits_for_host(timeline, ops)["id"].implode()).to_numpy()
    modules = events.filter(pl.col("kind") == "xla_module")
    total_ps = busy_ns = span_ns = 0
    for device in np.unique(devices).tolist():
        mine = devices == device
        total_ps += int(end_ps[mine].max() - start_ps[mine].min())
        starts = ops["start_ns"].to_numpy()[mine]
        ends = starts + ops["dur_ns"].to_numpy()[mine]
        runs = modules.filter(pl.col("device") == device)
        run_starts = runs["start_ns"].to_numpy()
        on_duty = mine & ~off_duty
        on = ops["start_ns"].to_numpy()[on_duty]
        busy_ns += intervals.total(on, on + ops["dur_ns"].to_numpy()[on_duty])
        span_ns += intervals.span(
            np.concatenate([starts, run_starts]), np.concatenate([ends, run_starts + runs["dur_ns"].to_numpy()])
        )
    waits = (ops["kind"] == "async_wait").to_numpy()
    flops = ops["flops"].drop_nulls()
    return XprofFigures(
        total_ps=total_ps,
        idle_share=1 - int(self_ps.sum()) / total_ps if total_ps else 0.0,
        duty_cycle=busy_ns / span_ns if span_ns else 0.0,
        flops=int(flops.sum()) if len(flops) else None,
        wait_ps=int(self_ps[waits].sum()),
    )


def _exact(timeline: Timeline, ops: pl.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Start and duration of each op, ps: by the clock of the device where it is recorded, as XProf does."""
    ids = ops.select("id")
    start, duration = (_detail(timeline, ids, key) for key in DEVICE_CLOCK)
    if start.null_count() or duration.null_count():
        start = ops["start_ns"] * _NS_PS + _detail(timeline, ids, "start_ps").fill_null(0)
        duration = _detail(timeline, ids, "duration_ps").fill_null(ops["dur_ns"] * _NS_PS)
    return start.to_numpy(), duration.to_numpy()


def _detail(timeline: Timeline, ids: pl.DataFrame, key: str) -> pl.Series:
    """An integer detail of each event, null where it is not recorded."""
    detail = timeline.details.get(key)
    if detail is None or detail.schema["value"] != pl.Int64:
        return pl.Series(key, [None], dtype=pl.Int64).new_from_index(0, ids.height)
    return ids.join(detail, on="id", how="left", maintain_order="left")["value"]


def _self_ps(ops: pl.DataFrame, start_ps: NDArray[np.int64], duration_ps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Duration of each op less that of the ops within it, ps."""
    exact = ops.select("device", "stream", kind=pl.lit("xla_op")).with_columns(
        start_ns=pl.Series(start_ps), dur_ns=pl.Series(duration_ps)
    )
    return self_ns(exact).to_numpy()
