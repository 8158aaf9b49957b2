"""What traceview found, for the tracks of a viewer: stages, findings, and what each kernel is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import polars as pl

from traceview.gate import check
from traceview.kernels import identify
from traceview.stages import assign_stages

if TYPE_CHECKING:
    from traceview.findings import Finding
    from traceview.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Mark:
    """A slice on a track of traceview's own, with its facts."""

    track: str
    name: str
    start_ns: int
    end_ns: int
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Marks:
    """Everything that is added to the events.

    Attributes:
        stages: Stage of each event, by position; null where none is known.
        kernels: Names of device work with ``family`` and ``implementation``.
        marks: Slices of own tracks, by start; longer first.
    """

    stages: pl.Series
    kernels: pl.DataFrame
    marks: tuple[Mark, ...]


def find_marks(timeline: Timeline) -> Marks:
    """Ask for stages and findings.

    Args:
        timeline: With launches linked.
    """
    staging = assign_stages(timeline)
    staged = staging.timeline
    work = staged.device_work
    kernels = identify(work["name"]).select(
        pl.col("name").cast(pl.String), pl.col("family").cast(pl.String), pl.col("implementation").cast(pl.String)
    )
    marks = [
        Mark("stages", row["stage"], row["start_ns"], row["end_ns"], {"source": row["source"]})
        for row in staging.ranges.iter_rows(named=True)
    ]
    for device, name in timeline.devices.select("device", "ordinal").iter_rows():
        marks += _device_stages(work.filter(pl.col("device") == device), f"stages on device {name}")
    marks += [_finding_mark(finding, timeline) for finding in check(replace(timeline)).findings]
    ordered = sorted(marks, key=lambda mark: (mark.start_ns, -mark.end_ns))
    return Marks(staged.events["stage"].cast(pl.String), kernels, tuple(ordered))


def no_marks(timeline: Timeline) -> Marks:
    """The events alone."""
    empty = pl.DataFrame(schema={"name": pl.String, "family": pl.String, "implementation": pl.String})
    return Marks(timeline.events["stage"].cast(pl.String), empty, ())


def _device_stages(work: pl.DataFrame, track: str) -> list[Mark]:
    """Work of one stage in succession as one slice: a stage comes back in every step."""
    runs = (
        work.select(
            "start_ns", (pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns"), pl.col("stage").cast(pl.String)
        )
        .with_columns(pl.col("stage").rle_id().alias("run"))
        .group_by("run", maintain_order=True)
        .agg(pl.col("stage").first(), pl.col("start_ns").min(), pl.col("end_ns").max())
        .filter(pl.col("stage").is_not_null())
    )
    return [Mark(track, row["stage"], row["start_ns"], row["end_ns"]) for row in runs.iter_rows(named=True)]


def events_of(finding: Finding, timeline: Timeline) -> pl.DataFrame:
    """Where a finding is in the timeline.

    Args:
        finding: What was found.
        timeline: Where it was found.

    Returns:
        The rows of ``timeline.events`` that the finding speaks of: those that the rule named, else those whose name
        is its place. No row if it speaks of the recording as a whole.
    """
    events = timeline.events
    if finding.event_ids:
        return events[sorted(set(finding.event_ids))]
    return events.filter(pl.col("name").cast(pl.String) == finding.where)


def _finding_mark(finding: Finding, timeline: Timeline) -> Mark:
    """From the first to the last event that it speaks of; over the whole trace if there is none."""
    found = events_of(finding, timeline)
    spanned = found if found.height else timeline.events
    start = int(spanned["start_ns"].min() or 0)  # type: ignore[arg-type]  # Int64, so an int
    end = int((spanned["start_ns"] + spanned["dur_ns"]).max() or 0)  # type: ignore[arg-type]
    cost = {"cost_ns": str(finding.cost_ns)} if finding.cost_ns is not None else {}
    facts = {
        "severity": finding.severity.value, "where": finding.where, "evidence": "\n".join(finding.evidence),
        "fix": finding.fix, "wrong if": finding.false_alarm_if, "confidence": finding.confidence.value, **cost,
    }  # fmt: skip
    return Mark("findings", f"{finding.code}: {finding.title}", start, end, facts)
