"""Measure `report` on a timeline of many events: the events of one real trace, repeated in memory.

The trace is read and repeated first; the clock runs from there to the finished text and JSON. One process, so that the
peak of memory is that of the whole.

    python benchmarks/report.py trace.json.gz --events 10000000
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

import traceview

if TYPE_CHECKING:
    from traceview.timeline import Timeline


class Repeated(Mapping[str, pl.DataFrame]):
    """Details of a repeated timeline; each is repeated when it is asked for."""

    def __init__(self, details: Mapping[str, pl.DataFrame], times: int, height: int) -> None:
        self._details = details
        self._times = times
        self._height = height

    def __getitem__(self, key: str) -> pl.DataFrame:
        frame = self._details[key]
        shifted = (frame.with_columns(pl.col("id") + pl.lit(self._height * at, pl.UInt32)) for at in range(self._times))
        return pl.concat(shifted)

    def __iter__(self) -> Iterator[str]:
        return iter(self._details)

    def __len__(self) -> int:
        return len(self._details)


def repeat(timeline: Timeline, times: int) -> Timeline:
    """The events of a timeline several times, one after the other; ids and correlations are counted on."""
    events = timeline.events
    span = int((events["start_ns"] + events["dur_ns"]).max()) + 1_000_000  # type: ignore[arg-type]
    numbers = int(events["correlation"].max() or 0) + 1  # type: ignore[arg-type]
    ids = ("id", "launch_id", "op_id", "parent_id")
    parts = (
        events.with_columns(
            pl.col("start_ns") + at * span,
            pl.col("correlation") + at * numbers,
            *(pl.col(name) + pl.lit(at * events.height, pl.UInt32) for name in ids),
        )
        for at in range(times)
    )
    return replace(
        timeline, events=pl.concat(parts, rechunk=True), details=Repeated(timeline.details, times, events.height)
    )


def main() -> None:
    """Run it and print one row of a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--events", type=int, default=10_000_000)
    arguments = parser.parse_args()
    loaded = traceview.load(arguments.trace)
    timeline = repeat(loaded, -(-arguments.events // loaded.events.height))
    timeline.validate()

    from traceview.render.documents import dumps
    from traceview.render.page import Page
    from traceview.render.report_document import report_document
    from traceview.render.report_text import write_report
    from traceview.report import report

    wall, cpu = time.perf_counter(), time.process_time()
    result = report(timeline)
    write_report(result, Page(io.StringIO()))
    dumps(report_document(result))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print("| file | events | wall s | CPU s | peak RSS MB | load average |")
    print("|---|---|---|---|---|---|")
    print(
        f"| {arguments.trace.name} repeated | {timeline.events.height:,} | {wall:.1f} | {cpu:.1f} | {peak / 1e6:.0f} "
        f"| {load} |"
    )


if __name__ == "__main__":
    main()
