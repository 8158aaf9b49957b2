"""The last step of loading: tie events to each other and mark what only the whole trace can tell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from traceview import launches, profiler_steps
from traceview.kernels import identify
from traceview.memory import large_blocks_apart, release_free

if TYPE_CHECKING:
    from traceview.timeline import Timeline


def finish(timeline: Timeline) -> Timeline:
    """Mark collectives, link launches, ops and parents, and mark steps.

    Args:
        timeline: One file, or several merged into one.
    """
    with large_blocks_apart():
        linked = launches.link(mark_collectives(timeline))
    release_free()
    return profiler_steps.mark_steps(linked)


def mark_collectives(timeline: Timeline) -> Timeline:
    """Make communication kernels of kind ``collective``: formats record them as ordinary kernels."""
    events = timeline.events
    is_kernel = pl.col("kind") == "kernel"
    names = events.filter(is_kernel)["name"].unique().cast(pl.String)
    collectives = identify(names).filter(pl.col("family") == "collective")["name"]
    if not len(collectives):
        return timeline
    kind = (
        pl.when(is_kernel & pl.col("name").is_in(collectives.cast(pl.Categorical).implode()))
        .then(pl.lit("collective", events.schema["kind"]))
        .otherwise(pl.col("kind"))
    )
    return replace(timeline, events=events.with_columns(kind.alias("kind")))
