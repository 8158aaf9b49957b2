"""One row per stage: what it takes, what of that is idle, how it repeats, and what a change of it can win."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals
from traceview.amdahl import speedup, speedup_by
from traceview.floors import work_floors
from traceview.host_needs import host_needs
from traceview.partition import Partition, partition
from traceview.quantities import percent
from traceview.schema import Column, FrameSchema
from traceview.stage_repeats import call_times
from traceview.stage_work import StageWork
from traceview.stages import Staging, assign_stages
from traceview.steps import LEAST_STEPS, StepTable, find_steps, percentiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from traceview.stages import StagePattern
    from traceview.timeline import Timeline

STAGES: Final = FrameSchema(
    "stages",
    "One row per stage, longest first within its parent, parents before their parts.",
    (
        Column("stage", pl.String, "", "path: `denoise/attention` is a part of `denoise`"),
        Column("depth", pl.Int64, "", "0 for outermost stages"),
        Column("count", pl.Int64, "", "host ranges that opened it in the steps; null: it has none", nullable=True),
        Column("wall_ns", pl.Int64, "ns", "wall time of the steps that is its, parts included"),
        Column("own_wall_ns", pl.Int64, "ns", "the same without its parts; all rows add up to all attributed time"),
        Column("device_busy_ns", pl.Int64, "ns", "of `wall_ns`, the time in which the device worked for it"),
        Column("idle_ns", pl.Int64, "ns", "of `wall_ns`, the time in which the device was idle or waited"),
        Column("overlapped_ns", pl.Int64, "ns", "its device work that other work hides; not part of `wall_ns`"),
        Column("host_ns", pl.Int64, "ns", "length of its host ranges in the steps: when its work was asked for"),
        Column("share", pl.Float64, "", "`wall_ns` over the wall time of the steps"),
        Column("share_of_attributed", pl.Float64, "", "`wall_ns` over the time that is in some stage"),
        Column("repeats", pl.String, "", "what the percentiles are over: `steps` or `calls`", nullable=True),
        Column(
            "p50_ns",
            pl.Float64,
            "ns",
            "median wall time per step in which it takes any, or device time per call",
            nullable=True,
        ),
        Column("p99_ns", pl.Float64, "ns", "99th percentile of the same", nullable=True),
        Column("kernels", pl.Int64, "", "pieces of device work in the steps"),
        Column("launches", pl.Int64, "", "host calls that launched them"),
        Column(
            "speedup_if_removed", pl.Float64, "", "of the whole, if it took no time; null: unbounded", nullable=True
        ),
        Column("speedup_if_2x", pl.Float64, "", "of the whole, if it were twice as fast"),
        Column(
            "speedup_at_floor", pl.Float64, "", "of the whole, if its work of known floor took only that", nullable=True
        ),
        Column(
            "floor_known_share",
            pl.Float64,
            "",
            "part of its device time whose floor is known; null below a tenth",
            nullable=True,
        ),
    ),
)
"""The frame of :class:`StageTable`."""

LEAST_KNOWN: Final = 0.1
"""A floor that is known for less of a stage's device time than this says nothing about the stage."""

WEAK_SHARE: Final = 0.2
"""With more of the time in no stage the stages are a weak answer, and the notes say so."""


@dataclass(frozen=True, slots=True)
class StageTable:
    """Where the time of the steady steps went, by stage.

    ``sum of own_wall_ns + unattributed_busy_ns + unattributed_idle_ns = wall_ns``, exactly.

    Attributes:
        stages: Frame of :data:`STAGES`; ``None`` if no stage is known.
        wall_ns: Wall time of the steps; a step counts once for each device that its process uses.
        unattributed_busy_ns: Device work in no stage, ns.
        unattributed_idle_ns: Idle time in no stage, ns.
        sources: What the stages come from.
        steps: The steps, warm-up included.
        counted: Number of steps counted.
        devices: Number of devices counted.
        lanes: How many steps of one device ``wall_ns`` is added up over: a step counts once for each device.
        notes: What limits the answer, in words.
        host_needs: :func:`traceview.host_needs.host_needs` of the stages.
    """

    stages: pl.DataFrame | None
    wall_ns: int
    unattributed_busy_ns: int
    unattributed_idle_ns: int
    sources: tuple[str, ...]
    steps: StepTable
    counted: int
    devices: int
    lanes: int
    notes: tuple[str, ...]
    host_needs: Mapping[str, int] = field(default_factory=dict)

    @property
    def unattributed_ns(self) -> int:
        """Time in no stage, ns."""
        return self.unattributed_busy_ns + self.unattributed_idle_ns


def stage_table(
    timeline: Timeline,
    given: Sequence[StagePattern] = (),
    *,
    staging: Staging | None = None,
    steps: StepTable | None = None,
) -> StageTable:
    """Find the stages and what each takes.

    Args:
        timeline: With launches linked.
        given: Stages of the user.
        staging: The stages, if they are known already.
        steps: The steps, if they are known already.
    """
    staging = staging or assign_stages(timeline, given)
    steps = steps or find_steps(timeline)
    cut = partition(staging, steps.steady)
    busy, idle = cut.busy.sum(axis=1), cut.idle.sum(axis=1)
    wall = int(cut.walls.sum())
    why_none = staging.why_none
    table = None if why_none else _table(staging, steps, cut)
    if table is not None and not table.height:
        table, why_none = None, "; ".join(("no stage of the trace takes time in the counted steps", *staging.notes))
    notes = [*staging.notes, *steps.notes]
    if why_none:
        notes.insert(0, f"no stage is known: {why_none}")
    elif wall and (busy[-1] + idle[-1]) > WEAK_SHARE * wall:
        share = percent(float(busy[-1] + idle[-1]) / wall)
        notes.append(f"{share} of the time is in no stage: mark the rest to learn more")
    return StageTable(
        stages=table,
        wall_ns=wall,
        unattributed_busy_ns=int(busy[-1]),
        unattributed_idle_ns=int(idle[-1]),
        sources=() if table is None else tuple(source.value for source in staging.sources),
        steps=steps,
        counted=len(set(cut.steps.tolist())),
        devices=len({device for device in cut.devices if device is not None}),
        lanes=len(cut.walls),
        notes=tuple(notes),
        host_needs={} if table is None else host_needs(staging, steps),
    )


def _table(staging: Staging, steps: StepTable, cut: Partition) -> pl.DataFrame:
    paths = _with_parents(cut.stages)
    busy, idle = _inclusive(paths, cut.stages, cut.busy), _inclusive(paths, cut.stages, cut.idle)
    wall = busy + idle
    total = int(cut.walls.sum())
    ranges = _in_steps(staging.ranges, steps.steady)
    work = _work_in_steps(staging.timeline, steps.steady)
    work = work.join(work_floors(staging.timeline), on="id", how="left", maintain_order="left")
    calls = call_times(staging, ranges, work) if steps.steady.height < LEAST_STEPS else {}
    own_wall = (cut.busy + cut.idle).sum(axis=1)
    attributed = total - int(own_wall[-1])
    by_path = dict(zip(cut.stages, own_wall[:-1].tolist(), strict=True))
    mine = StageWork(work, paths)
    opened = set(staging.ranges["stage"].unique())
    on_host = {
        stage: (count, host_ns)
        for stage, count, host_ns in ranges.group_by("stage")
        .agg(count=pl.len(), host_ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
        .iter_rows()
    }
    rows = []
    for at, path in enumerate(paths):
        count, host_ns = on_host.get(path, (0, 0))
        busy_ns, wall_ns = int(busy[at].sum()), int(wall[at].sum())
        p50, p99, repeats = _repeats(wall[at], cut, calls.get(path))
        saved, known = _saving(*mine.floors(path))
        share = wall_ns / total if total else 0.0
        rows.append(
            {
                "stage": path,
                "depth": path.count("/"),
                "count": count if path in opened else None,
                "wall_ns": wall_ns,
                "own_wall_ns": by_path.get(path, 0),
                "device_busy_ns": busy_ns,
                "idle_ns": wall_ns - busy_ns,
                "overlapped_ns": max(mine.union_ns(path) - busy_ns, 0),
                "host_ns": host_ns,
                "share": share,
                "share_of_attributed": wall_ns / attributed if attributed else 0.0,
                "repeats": repeats,
                "p50_ns": p50,
                "p99_ns": p99,
                "kernels": mine.pieces(path),
                "launches": mine.launches(path),
                "speedup_if_removed": speedup(share, inf),
                "speedup_if_2x": speedup(share, 2.0),
                "speedup_at_floor": None if known is None else speedup_by(total, min(saved, busy_ns)),
                "floor_known_share": known,
            }
        )
    frame = pl.DataFrame(rows, schema=STAGES.dtypes).filter((pl.col("wall_ns") > 0) | (pl.col("kernels") > 0))
    return _in_order(frame)


def _with_parents(paths: Sequence[str]) -> list[str]:
    """All paths and the paths around them, each once."""
    found = {"/".join(path.split("/")[: at + 1]) for path in paths for at in range(path.count("/") + 1)}
    return sorted(found)


def _inclusive(paths: list[str], stages: tuple[str, ...], table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Per path and step the time of the stage with all its parts."""
    found = np.zeros((len(paths), table.shape[1]), np.int64)
    number = {path: at for at, path in enumerate(paths)}
    for at, stage in enumerate(stages):
        parts = stage.split("/")
        for depth in range(len(parts)):
            found[number["/".join(parts[: depth + 1])]] += table[at]
    return found


def _in_steps(ranges: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """The ranges that open in the host range of a counted step."""
    spans = steps.select("process", "host_start_ns", "host_end_ns").sort("host_start_ns")
    placed = ranges.sort("start_ns").join_asof(
        spans,
        left_on="start_ns",
        right_on="host_start_ns",
        by="process",
        strategy="backward",
        check_sortedness=False,
    )
    return placed.filter(pl.col("start_ns") < pl.col("host_end_ns")).drop("host_start_ns", "host_end_ns").sort("id")


def _work_in_steps(timeline: Timeline, steps: pl.DataFrame) -> pl.DataFrame:
    """Device work with a stage that runs, wholly or partly, while counted steps last."""
    work = timeline.device_work.filter(pl.col("stage").is_not_null()).select(
        "id", "device", "launch_id", "op_id", "start_ns", "dur_ns", stage=pl.col("stage").cast(pl.String)
    )
    starts = work["start_ns"].to_numpy()
    windows = (steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy())
    ends = starts + np.maximum(work["dur_ns"].to_numpy(), 1)
    return work.filter(pl.Series(intervals.covered(starts, ends, windows) > 0))


def _repeats(
    wall: NDArray[np.int64], cut: Partition, calls: NDArray[np.int64] | None
) -> tuple[float | None, float | None, str | None]:
    """Median and 99th percentile: per step where there are enough of them, else per call of the stage.

    Steps without the stage say nothing about how long it takes, so they do not count.
    """
    if len(set(cut.steps.tolist())) >= LEAST_STEPS:
        p50, p99 = percentiles(wall[wall > 0], (50, 99))
        return p50, p99, None if p50 is None else "steps"
    if calls is not None and len(calls) >= LEAST_STEPS:
        p50, p99 = percentiles(calls, (50, 99))
        return p50, p99, "calls"
    return None, None, None


def _saving(total: int, known: int, floor: int) -> tuple[int, float | None]:
    """What work would save at its floor, ns, and for which part of it that is known; ``None``: for too little."""
    if not total or known < LEAST_KNOWN * total:
        return 0, None
    return known - floor, min(known / total, 1.0)


def _in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Longest first, and each stage followed by its parts."""
    wall = dict(frame.select("stage", "wall_ns").iter_rows())

    def key(path: str) -> tuple[tuple[int, str], ...]:
        parts = path.split("/")
        outer = ["/".join(parts[: at + 1]) for at in range(len(parts))]
        return tuple((-wall.get(one, 0), one) for one in outer)

    order = sorted(range(frame.height), key=lambda at: key(frame["stage"][at]))
    return frame[order]
