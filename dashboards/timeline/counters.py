"""Values over time that a trace records: memory in use, and whatever counters its recorder wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.render.names import plain
from traceview.schema import Column, FrameSchema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from traceview.timeline import Timeline

MOST_SERIES: Final = 24
"""Counters that are drawn; those that change most often come first."""

MOST_POINTS: Final = 2_000
"""Samples of one counter that a browser is given; of each stretch the lowest and the highest are kept."""

SAMPLES: Final = FrameSchema(
    "samples",
    "Values of counters, by counter, then by time; a value holds until the next one.",
    (
        Column("series", pl.UInt32, "", "index into the counters"),
        Column("at", pl.Float64, "ns", "time from the trace's origin"),
        Column("value", pl.Float64, "", "value, in the unit of the counter"),
    ),
)

_MEMORY: Final = {"Total Allocated": "allocated", "Total Reserved": "reserved", "bytes_allocated": "allocated"}
"""Totals of an allocator: the first two of PyTorch's profiler, the last of XProf, each after the event."""

_WHOSE: Final = ("Device Id", "index_on_host")
"""Arguments that say of which device the memory is; a negative one is the host."""

_NO_VALUES: Final = {
    "Addr", "Bytes", "Device Id", "Device Type", "Ev Idx", "addr", "allocation_bytes", "bytes_available",
    "bytes_reserved", "data_type", "fragmentation", "id", "index_on_host", "peak_bytes_in_use", "region_type",
    "requested_bytes", "s", "step_id",
}  # fmt: skip
"""Arguments of counter events that are no value over time, or say again what another one says."""


@dataclass(frozen=True, slots=True)
class Counter:
    """One value over time.

    Attributes:
        label: Name for a person.
        unit: ``"bytes"``, or ``""`` where the file does not say.
        least: Lowest value.
        most: Highest value.
        events: Samples recorded.
    """

    label: str
    unit: str
    least: float
    most: float
    events: int


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of a trace.

    Attributes:
        series: What they are.
        samples: :data:`SAMPLES`.
        drawn: Counter events that have a sample in one of them.
    """

    series: tuple[Counter, ...]
    samples: pl.DataFrame
    drawn: int


NONE_RECORDED: Final = Counters((), SAMPLES.empty(), 0)


def counters(timeline: Timeline) -> Counters:
    """Find every counter with a value that changes, most samples first.

    Args:
        timeline: The trace; its events of kind ``counter`` are the samples, their values are details.
    """
    events = timeline.events.filter((pl.col("kind") == "counter") & (pl.col("dur_ns") == 0))
    events = events.select("id", "start_ns", "process", "name")
    found = sorted(_series(timeline, events), key=lambda one: (-one[2].height, one[0])) if events.height else []
    series, frames = [], []
    drawn: set[int] = set()
    for number, (label, unit, rows) in enumerate(found[:MOST_SERIES]):
        values = rows["value"].to_numpy()
        series.append(Counter(label, unit, float(values.min()), float(values.max()), rows.height))
        drawn.update(rows["id"].to_list())
        frames.append(
            _thinned(rows.sort("start_ns")).select(
                series=pl.lit(number, pl.UInt32), at=pl.col("start_ns").cast(pl.Float64), value="value"
            )
        )
    return Counters(tuple(series), pl.concat(frames) if frames else SAMPLES.empty(), len(drawn))


def _series(timeline: Timeline, events: pl.DataFrame) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """Label, unit and rows of each counter whose value changes."""
    details = timeline.details
    whose = next((details[name] for name in _WHOSE if name in details), None)
    named = {row["process"]: _process(row) for row in timeline.processes.iter_rows(named=True)}
    if len(named) < 2:
        named = {}
    memory = [key for key in _MEMORY if key in details]
    others = sorted(key for key in set(details) - set(memory) if key.removesuffix(" (text)") not in _NO_VALUES)
    for key in [*memory, *others]:
        # A value that is no integer stands there as JSON; what is no number has none.
        rows = (
            details[key]
            .join(events, on="id")
            .with_columns(pl.col("value").cast(pl.String).cast(pl.Float64, strict=False))
        )
        rows = rows.drop_nulls("value").filter(pl.col("value").is_finite())
        if not rows.height:
            continue
        if key in _MEMORY and whose is not None:
            rows = rows.join(
                whose.select("id", which=pl.col("value").cast(pl.Int64, strict=False)), on="id", how="left"
            )
        else:
            rows = rows.with_columns(which=pl.lit(None, pl.Int64))
        by = ["process", "which"] if key in _MEMORY else ["process", "name"]
        for group, part in rows.group_by(by, maintain_order=True):
            if part["value"].n_unique() < 2:
                continue
            label = _label(key, str(group[1]) if group[1] is not None else None)
            process = named.get(group[0]) if isinstance(group[0], int) else None
            yield f"{process} · {label}" if process else label, "bytes" if key in _MEMORY else "", part


def _label(key: str, what: str | None) -> str:
    if key not in _MEMORY:
        return plain(key if what is None or what == key else f"{what} · {key}")
    if what is None:
        return f"memory · {_MEMORY[key]}"
    return f"host memory · {_MEMORY[key]}" if int(what) < 0 else f"device {what} memory · {_MEMORY[key]}"


def _process(row: Mapping[str, object]) -> str:
    return f"rank {row['rank']}" if row["rank"] is not None else f"process {row['pid']}"


def _thinned(rows: pl.DataFrame) -> pl.DataFrame:
    """Of many samples the lowest and the highest of each stretch of time, so that no peak is lost."""
    if rows.height <= MOST_POINTS:
        return rows
    low, high = int(rows["start_ns"][0]), int(rows["start_ns"][-1])
    stretch = max((high - low) // (MOST_POINTS // 2) + 1, 1)
    at = pl.int_range(pl.len())
    kept = (
        rows.with_columns(at=at, stretch=(pl.col("start_ns") - low) // stretch)
        .group_by("stretch")
        .agg(
            lowest=pl.col("at").get(pl.col("value").arg_min()),
            highest=pl.col("at").get(pl.col("value").arg_max()),
            last=pl.col("at").last(),
        )
    )
    # The last one of a stretch holds until the next stretch that has any.
    numbers = pl.concat([kept["lowest"], kept["highest"], kept["last"]]).unique().sort()
    return rows[numbers]
