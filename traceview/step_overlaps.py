"""Ranges of steps that cannot all be steps: those inside one of the same name, and those of several threads at once.

A step is one iteration of a process, so at each moment there is at most one. Where the ranges say otherwise, the ones
that are left out are counted in words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.host_calls import innermost

if TYPE_CHECKING:
    from traceview.timeline import Timeline

_NOTICEABLE: Final = 0.01
"""Ranges whose ends are rounded overlap by less of the shorter one."""


def repeated_inside(timeline: Timeline, steps: pl.DataFrame, ranges: pl.DataFrame) -> list[str]:
    """A remark on ranges that lie inside a step of the same name: the same step, recorded more than once.

    Args:
        timeline: With launches linked.
        steps: Ranges of steps, none inside another.
        ranges: All annotated ranges, ``name`` as text.
    """
    alike = ranges.filter(pl.col("name").is_in(steps["name"].unique().implode()))
    alike = alike.join(steps.select("id"), on="id", how="anti", maintain_order="left")
    around = innermost(timeline, alike["id"], steps["id"])
    outer = alike.with_columns(around=around).join(steps.select(around="id", outer="name"), on="around")
    count = outer.filter(pl.col("outer") == pl.col("name")).height
    if not count:
        return []
    are = "range of a step lies" if count == 1 else "ranges of steps lie"
    return [f"{count:,} {are} inside another of the same name: the same step recorded again, which counts once"]


def one_thread(steps: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Of steps that several threads of a process mark at the same time, those of the thread that marks most.

    Threads that take turns are all kept.

    Args:
        steps: Ranges of steps: columns of the events.

    Returns:
        The ranges that stay, by process and time, and what was left out, in words.
    """
    kept: list[pl.DataFrame] = []
    threads = left_out = 0
    for _, own in steps.group_by("process", maintain_order=True):
        if own["thread"].n_unique() < 2 or not _overlaps(own.sort("start_ns", "id")):
            kept.append(own)
            continue
        held = own.group_by("thread").agg(count=pl.len(), ns=pl.col("dur_ns").sum(), first=pl.col("start_ns").min())
        held = held.sort("count", "ns", "first", "thread", descending=[True, True, False, False])
        kept.append(own.filter(pl.col("thread") == held["thread"][0]))
        threads += held.height - 1
        left_out += own.height - kept[-1].height
    if not left_out:
        return steps, []
    who = "another thread marks" if threads == 1 else f"{threads:,} other threads mark"
    lost = f"{left_out:,} of {steps.height:,} ranges are left out"
    return pl.concat(kept), [
        f"{who} steps at the same time: {lost}, the thread of each process that marks most steps counts"
    ]


def overlapping(steps: pl.DataFrame) -> list[str]:
    """A remark on steps that begin before the one before them has ended.

    Args:
        steps: Ranges of steps: columns of the events.
    """
    count = sum(_overlaps(own.sort("start_ns", "id")) for _, own in steps.group_by("process"))
    if not count:
        return []
    begin = "begins" if count == 1 else "begin"
    early = f"{count:,} of {steps.height:,} steps {begin} before the one before has ended"
    return [f"{early}: the time that they share counts for the earlier one, so the lengths are doubtful"]


def _overlaps(own: pl.DataFrame) -> int:
    """How many ranges begin noticeably before an earlier one ends; by start."""
    end = pl.col("start_ns") + pl.col("dur_ns")
    before = end.cum_max().shift(1).fill_null(pl.col("start_ns"))
    shared = pl.min_horizontal(end, before) - pl.col("start_ns")
    shorter = pl.min_horizontal("dur_ns", pl.col("dur_ns").shift(1))
    return int(own.select(((shared > 0) & (shared > _NOTICEABLE * shorter)).sum()).item())
