"""Why devices stood idle: by cause, by length, and the longest stretches one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from traceview.callers import caller
from traceview.dashboards.views.table import NS_PER_MS, Show, Table, in_ms, yes_no
from traceview.dashboards.views.waterfall import unit_of
from traceview.knowledge.idle_causes import CAUSE_DOCS, Cause
from traceview.render.palette import STAGES, UNATTRIBUTED
from traceview.render.units import duration, percent

if TYPE_CHECKING:
    import altair as alt

    from traceview.gap_report import GapReport
    from traceview.timeline import Timeline

MOST_GAPS: Final = 500
"""Idle stretches in the table, most to win first."""

_BINS_PER_DECADE: Final = 4
_MOST_CAUSES: Final = len(STAGES)
OTHER: Final = "other causes"


def device_label(result: GapReport, device: int | None) -> str:
    """What a device is called; ``host`` where the trace has none."""
    names = {one.device: one.label for one in result.trace.devices}
    return "host" if device is None else names.get(device, f"device {device}")


def causes_table(result: GapReport) -> Table | None:
    """Idle time by cause, all devices together; ``None`` if nothing was idle or nothing is recorded."""
    if result.causes is None or not result.causes.height:
        return None
    whole = result.idle_ns or 1
    longest = pl.col("culprit").sort_by("culprit_ns", descending=True, nulls_last=True).first()
    merged = (
        result.causes.with_columns(pl.col("cause").cast(pl.String), pl.col("confidence").cast(pl.String))
        .group_by("cause", maintain_order=True)
        .agg(
            pl.col("idle_ns").sum(),
            pl.col("stretches").sum().cast(pl.Int64),
            pl.col("recoverable_ns").sum(),
            pl.col("confidence").unique(maintain_order=True).str.join(", "),
            culprit=longest,
            reason=pl.col("reason").drop_nulls().first(),
        )
        .sort("idle_ns", "cause", descending=[True, False])
    )
    frame = merged.select(
        "cause",
        pl.col("idle_ns").truediv(NS_PER_MS).alias("idle ms"),
        pl.col("idle_ns").truediv(whole).alias("of idle"),
        pl.col("recoverable_ns").truediv(NS_PER_MS).alias("to win ms"),
        "stretches",
        pl.col("confidence").alias("known by"),
        pl.coalesce("culprit", "reason", pl.lit("-")).alias("most in"),
        pl.col("cause")
        .replace_strict({cause.value: doc.replace("`", "") for cause, doc in CAUSE_DOCS.items()}, default="")
        .alias("means"),
    )
    return Table(
        frame,
        {"idle ms": Show.MS, "of idle": Show.SHARE, "to win ms": Show.MS, "stretches": Show.COUNT, "means": Show.LONG},
        ("to win: the most that changes on the host can win back; ceilings of several causes do not add up.",),
    )


def histogram(result: GapReport) -> pl.DataFrame:
    """Idle time by length and cause of the stretch: ``bin``, ``from_ns``, ``to_ns``, ``cause``, ``idle_ns``, ``count``.

    A stretch counts whole for the cause that took most of it.
    """
    schema = {
        "bin": pl.Int64,
        "from_ns": pl.Float64,
        "to_ns": pl.Float64,
        "cause": pl.String,
        "idle_ns": pl.Int64,
        "count": pl.Int64,
    }
    if result.gaps is None or not result.gaps.height:
        return pl.DataFrame(schema=schema)
    rows = result.gaps.select(pl.col("dur_ns"), cause=pl.col("cause").cast(pl.String)).filter(pl.col("dur_ns") > 0)
    totals = rows.group_by("cause").agg(pl.col("dur_ns").sum()).sort("dur_ns", "cause", descending=[True, False])
    kept = totals["cause"].to_list()
    if len(kept) > _MOST_CAUSES:
        kept = kept[: _MOST_CAUSES - 1]
    step = _BINS_PER_DECADE
    return (
        rows.with_columns(
            bin=(pl.col("dur_ns").log10() * step + 1e-9).floor().cast(pl.Int64),
            cause=pl.when(pl.col("cause").is_in(kept)).then("cause").otherwise(pl.lit(OTHER)),
        )
        .group_by("bin", "cause")
        .agg(idle_ns=pl.col("dur_ns").sum(), count=pl.len().cast(pl.Int64))
        .with_columns(
            from_ns=pl.lit(10.0).pow(pl.col("bin") / step), to_ns=pl.lit(10.0).pow((pl.col("bin") + 1) / step)
        )
        .select(*schema)
        .sort("bin", "cause")
    )


def cause_colours(causes: list[str]) -> dict[str, str]:
    """A colour for each cause, in the fixed order of causes; grey for what is not known or put together."""
    order = [cause.value for cause in Cause if cause is not Cause.UNKNOWN]
    known = sorted((cause for cause in causes if cause in order), key=order.index)
    colours = {cause: STAGES[at % len(STAGES)] for at, cause in enumerate(known)}
    return {cause: colours.get(cause, UNATTRIBUTED) for cause in causes}


def histogram_chart(frame: pl.DataFrame) -> alt.Chart:
    """Idle time by length of the stretch, on a scale of powers of ten, by cause."""
    import altair as alt

    tallest = frame.group_by("bin").agg(pl.col("idle_ns").sum())["idle_ns"].max() if frame.height else 0
    unit, size = unit_of(float(tallest or 0))  # type: ignore[arg-type]
    drawn = frame.with_columns(
        top=pl.col("idle_ns").cum_sum().over("bin") / size,
        bottom=(pl.col("idle_ns").cum_sum().over("bin") - pl.col("idle_ns")) / size,
        low=pl.col("from_ns") / 1e3,
        high=pl.col("to_ns") / 1e3,
        takes=pl.Series([duration(ns) for ns in frame["idle_ns"]], dtype=pl.String),
        length=pl.Series(
            [
                f"{duration(round(low))} to {duration(round(high))}"
                for low, high in frame.select("from_ns", "to_ns").iter_rows()
            ],
            dtype=pl.String,
        ),
    )
    causes = frame["cause"].unique(maintain_order=True).to_list()
    colours = cause_colours(causes)
    axis = alt.Axis(
        labelExpr="datum.value >= 1e6 ? datum.value / 1e6 + ' s' : datum.value >= 1e3 ? datum.value / 1e3 + "
        "' ms' : datum.value + ' us'",
        tickCount=8,
    )
    drawing: alt.Chart = (
        alt.Chart(drawn)
        .mark_rect()
        .encode(
            x=alt.X("low:Q", title="length of the idle stretch", scale=alt.Scale(type="log", nice=False), axis=axis),
            x2="high:Q",
            y=alt.Y("bottom:Q", title=f"idle time in all, {unit}"),
            y2="top:Q",
            color=alt.Color(
                "cause:N",
                scale=alt.Scale(domain=causes, range=[colours[cause] for cause in causes]),
                legend=alt.Legend(title=None, orient="top", columns=6),
            ),
            tooltip=[
                alt.Tooltip("cause:N", title="cause"),
                alt.Tooltip("length:N", title="stretches of"),
                alt.Tooltip("count:Q", title="how many"),
                alt.Tooltip("takes:N", title="idle"),
            ],
        )
        .properties(height=340)
    )
    return drawing


def gaps_table(result: GapReport) -> Table | None:
    """The idle stretches, most to win first; ``None`` if there is none or nothing is recorded."""
    if result.gaps is None or not result.gaps.height:
        return None
    shown = result.gaps.head(MOST_GAPS)
    devices = shown["device"].to_list()
    columns: dict[str, Any] = {
        "at ms": in_ms(shown["start_ns"]),
        "idle ms": in_ms(shown["dur_ns"]),
        "to win ms": in_ms(shown["recoverable_ns"]),
        "cause": shown["cause"].cast(pl.String),
        "of it": [part / whole if whole else None for part, whole in shown.select("cause_ns", "dur_ns").iter_rows()],
        "step": shown["step"].cast(pl.Int64),
        "held by": [
            culprit or reason or "nothing recorded on the thread"
            for culprit, reason in shown.select(pl.col("culprit").cast(pl.String), "reason").iter_rows()
        ],
        "known by": shown["confidence"].cast(pl.String),
    }
    if len(set(devices)) > 1:
        columns = {"device": [device_label(result, device) for device in devices], **columns}
    remarks = []
    if shown.height < result.gaps.height:
        remarks.append(
            f"{shown.height:,} of {result.gaps.height:,} stretches: those of which most can be won; "
            "traceview gaps --limit lists more."
        )
    shows = {"at ms": Show.MS, "idle ms": Show.MS, "to win ms": Show.MS, "of it": Show.SHARE, "held by": Show.LONG}
    return Table(pl.DataFrame(columns), shows, tuple(remarks))


def gap_story(timeline: Timeline, result: GapReport, at: int) -> list[tuple[str, str]]:
    """What is known of one idle stretch: names and values.

    Args:
        timeline: The trace.
        result: Its gaps.
        at: Row of ``result.gaps``.
    """
    assert result.gaps is not None
    row = result.gaps.row(at, named=True)
    whole = row["dur_ns"]

    def named(key: str) -> str:
        if row[key] is None:
            return ""
        event = timeline.events.row(row[key], named=True)
        return f"{event['name']} ({event['kind']}, {duration(event['dur_ns'])})"

    place = None if row["culprit_id"] is None else caller(timeline, row["culprit_id"])
    cause = row["cause"]
    pairs = [
        (
            "where",
            f"{device_label(result, row['device'])}, at {row['start_ns'] / NS_PER_MS:,.3f} ms, for {duration(whole)}",
        ),
        ("cause", f"{cause}: {duration(row['cause_ns'])}, {percent(row['cause_ns'] / whole if whole else None)} of it"),
        ("it means", CAUSE_DOCS[Cause(cause)].replace("`", "")),
        ("to win", f"at most {duration(row['recoverable_ns'])}" if row["recoverable_ns"] else "nothing that is known"),
        ("held by", named("culprit_id")),
        ("in op", named("op_id") if row["op_id"] != row["culprit_id"] else ""),
        ("in range", named("annotation_id")),
        ("in code", place or ""),
        ("ended by", named("next_id")),
        ("known by", f"{row['confidence']}: {row['reason']}" if row["reason"] else row["confidence"]),
    ]
    return [pair for pair in pairs if pair[1]]


def waits_table(result: GapReport) -> Table | None:
    """Where the host waits; ``None`` if it does not."""
    waits = result.waits
    if not waits.height:
        return None
    frame = waits.select(
        pl.col("name").cast(pl.String).alias("wait"),
        pl.col("op").cast(pl.String).fill_null("-").alias("in op"),
        pl.col("count").cast(pl.Int64),
        pl.col("per_step").alias("per step"),
        pl.col("host_ns").truediv(NS_PER_MS).alias("host ms"),
        pl.col("idle_ns").truediv(NS_PER_MS).alias("device idle ms"),
    )
    return Table(frame, {"count": Show.COUNT, "per step": Show.FEW, "host ms": Show.MS, "device idle ms": Show.MS})


def feeding_table(result: GapReport) -> Table | None:
    """How the devices are fed; ``None`` without launches."""
    if result.devices is None:
        return None
    rows = [row for row in result.devices.iter_rows(named=True) if row["launched"]]
    if not rows:
        return None

    def us(key: str) -> list[float | None]:
        return [None if row[key] is None else row[key] / 1e3 for row in rows]

    frame = pl.DataFrame(
        {
            "device": [device_label(result, row["device"]) for row in rows],
            "launch-bound": [yes_no(row["launch_bound"]) for row in rows],
            "launches": [row["launches"] for row in rows],
            "of graphs": [row["graph_share"] for row in rows],
            "latency p50 us": us("latency_p50_ns"),
            "latency p99 us": us("latency_p99_ns"),
            "pace us": us("pace_ns"),
            "small kernels": [row["too_small_share"] for row in rows],
            "queue": [row["queue_mean"] for row in rows],
            "queue empty": [row["queue_empty_share"] for row in rows],
        },
        schema={
            "device": pl.String,
            "launch-bound": pl.String,
            "launches": pl.Int64,
            "of graphs": pl.Float64,
            "latency p50 us": pl.Float64,
            "latency p99 us": pl.Float64,
            "pace us": pl.Float64,
            "small kernels": pl.Float64,
            "queue": pl.Float64,
            "queue empty": pl.Float64,
        },
    )
    shows = dict.fromkeys(("of graphs", "small kernels", "queue empty"), Show.SHARE)
    shows |= dict.fromkeys(("latency p50 us", "latency p99 us", "pace us"), Show.US)
    shows |= {"launches": Show.COUNT, "queue": Show.FEW}
    remark = (
        "latency: from the call to the start, on an idle device. pace: time between two launches. small kernels: "
        "shorter than that. queue: mean work launched and not started."
    )
    return Table(frame, shows, (remark,))
