"""Stages, kernels and the import as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.count_words import count_words
from traceview.dashboards.views.table import Show, Table, in_ms
from traceview.render.names import UNATTRIBUTED, stage_name

if TYPE_CHECKING:
    from traceview.report import KernelUse, Report
    from traceview.report_parts import ImportSummary
    from traceview.stage_table import StageTable
    from traceview.timeline import Timeline

MOST_KERNELS: Final = 200


def stages_table(table: StageTable) -> Table | None:
    """Every stage with its parts under it; ``None`` if no stage is known.

    The outermost stages and the time in none add up to the wall time.
    """
    stages = table.stages
    if stages is None:
        return None
    names = [
        "\u2003" * depth + stage_name(path.rsplit("/", 1)[-1], 60)
        for path, depth in stages.select("stage", "depth").iter_rows()
    ]
    wall = table.wall_ns or 1
    frame = pl.DataFrame(
        {
            "stage": [*names, UNATTRIBUTED],
            "wall ms": in_ms([*stages["wall_ns"], table.unattributed_ns]),
            "share": [*stages["share"], table.unattributed_ns / wall],
            "works ms": in_ms([*stages["device_busy_ns"], table.unattributed_busy_ns]),
            "waits or idle ms": in_ms([*stages["idle_ns"], table.unattributed_idle_ns]),
            "p50 ms": in_ms([*stages["p50_ns"], None]),
            "p99 ms": in_ms([*stages["p99_ns"], None]),
            "kernels": [*stages["kernels"], None],
            "at most, if 2x as fast": [*stages["speedup_if_2x"], None],
            "at most, if gone": [*stages["speedup_if_removed"], None],
        },
        schema_overrides={"p50 ms": pl.Float64, "p99 ms": pl.Float64, "at most, if gone": pl.Float64},
    )
    shows = {name: Show.MS for name in frame.columns if name.endswith(" ms")}
    shows |= {"share": Show.SHARE, "kernels": Show.COUNT, "stage": Show.MEDIUM}
    shows |= {name: Show.FACTOR for name in frame.columns if name.startswith("at most")}
    if not any(frame["works ms"]):
        # No device worked in the steps, so there is no waiting for one either.
        frame = frame.drop("works ms", "waits or idle ms", "kernels")
    remark = (
        "Sums over all counted steps and devices; parts stand under what they are parts of. p50 and p99 are per step "
        "or per call. Ceilings of several stages do not add up."
    )
    return Table(frame, shows, (remark,))


def kernels_table(kernels: tuple[KernelUse, ...]) -> Table:
    """The kernels that took most device time."""
    shown = kernels[:MOST_KERNELS]
    frame = pl.DataFrame(
        {
            "share": [one.share for one in shown],
            "total ms": in_ms(one.total_ns for one in shown),
            "count": [one.count for one in shown],
            "mean us": [one.mean_ns / 1e3 for one in shown],
            "family": [one.family for one in shown],
            "implementation": [one.implementation or "" for one in shown],
            "tensor cores": [{True: "yes", False: "no", None: "-"}[one.tensor_core] for one in shown],
            "kernel": [one.name for one in shown],
        },
        schema_overrides={"share": pl.Float64, "total ms": pl.Float64, "mean us": pl.Float64},
    )
    shows = {
        "share": Show.SHARE,
        "total ms": Show.MS,
        "count": Show.COUNT,
        "mean us": Show.US,
        "kernel": Show.LONG,
    }
    more = len(kernels) - len(shown)
    return Table(frame, shows, (f"{more:,} more kernels: traceview kernels lists all.",) if more else ())


def longest_run(timeline: Timeline, name: str) -> int | None:
    """Id of the longest run of a kernel; ``None`` if the trace has none of that name."""
    work = timeline.device_work
    runs = work.filter(pl.col("name").cast(pl.String) == name).sort("dur_ns", "id", descending=[True, False])
    return int(runs["id"][0]) if runs.height else None


def import_table(summary: ImportSummary) -> Table | None:
    """What the import counted; ``None`` if nothing."""
    counts = sorted(summary.counts.items())
    if not counts:
        return None
    frame = pl.DataFrame(
        {
            "what": [count_words(kind) for kind, _ in counts],
            "count": [count.n for _, count in counts],
            "first example": [count.example for _, count in counts],
        }
    )
    return Table(frame, {"what": Show.LONG, "count": Show.COUNT})


def xprof_table(report: Report) -> Table | None:
    """The figures that XProf's own pages show; ``None`` for other traces."""
    from traceview.render.units import duration, percent

    figures = report.xprof
    if figures is None:
        return None
    rows = [
        ("total time, all cores", duration(figures.total_ps // 1000)),
        ("device idle", percent(figures.idle_share)),
        ("duty cycle", percent(figures.duty_cycle)),
        ("busy time that is waiting", duration(figures.wait_ps // 1000)),
        *([("operations (FLOP)", f"{figures.flops:,}")] if figures.flops is not None else []),
    ]
    frame = pl.DataFrame(rows, schema=["figure", "value"], orient="row")
    return Table(frame, {}, ("Waiting counts as busy here, unlike everywhere else on these pages.",))
