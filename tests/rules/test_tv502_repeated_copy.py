"""The same copies in each step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from authored_timeline import Event, kernel, launch
from rules.rule_case import judged, on_device, step

if TYPE_CHECKING:
    from traceview.timeline import Timeline


def trace(copies_per_step: int, steps: int, size: int | None = 4 << 20) -> Timeline:
    events: list[Event] = []
    for number in range(steps):
        events.append(step(number, 1000 * number, 1000 * number + 900))
        for i in range(copies_per_step):
            at, correlation = 1000 * number + 10 * i, 100 * number + i
            events.append(launch(at + 1, correlation, name="cudaMemcpyAsync"))
            events.append(kernel("Memcpy HtoD (Pinned -> Device)", at + 3, at + 9, correlation, kind="memcpy"))
    built = on_device(*events)
    sizes = pl.when(pl.col("kind") == "memcpy").then(pl.lit(size, pl.Int64))
    return replace(built, events=built.events.with_columns(bytes=sizes))


def test_positive_eight_large_copies_in_each_steady_step() -> None:
    (finding,) = judged("TV502", trace(8, 3))
    assert finding.title == "The same 8 copies to the device came back in each of 2 steps: 0.096 ms"
    assert finding.cost_ns == 96_000


def test_negative_a_batch_or_small_copies() -> None:
    assert judged("TV502", trace(3, 3)) == []
    assert judged("TV502", trace(8, 3, size=1000)) == []


def test_not_recorded_bytes_or_steps() -> None:
    assert judged("TV502", trace(8, 3, size=None)) == []
    assert judged("TV502", trace(8, 2)) == []
