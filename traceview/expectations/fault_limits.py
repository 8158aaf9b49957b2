"""Limits on what the rules look for: idle time by cause, waiting ranks, copies, allocations and graph captures."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview import intervals
from traceview.allocations import allocator_calls
from traceview.busy import COPY_KINDS
from traceview.device_labels import device_labels
from traceview.expectations.host_gaps import why_unreliable
from traceview.expectations.judging import incomplete
from traceview.expectations.measure import Measure
from traceview.expectations.words import calls, time
from traceview.host_calls import host_union_ns
from traceview.knowledge.idle_causes import Cause
from traceview.other_compilations import graph_captures
from traceview.quantities import percent
from traceview.rules.tv404_host_late import LATE
from traceview.rules.tv502_repeated_copy import repeated_copies
from traceview.transfers import copies

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from traceview.expectations.pieces import Pieces

NO_DEVICE_WORK: Final = "no device work is recorded, so there is no span to measure"
NO_STEPS: Final = "fewer than two profiler steps are recorded, so the warm-up cannot be told apart"
NO_CALLS: Final = "no runtime call is recorded, so it could not be seen"

WAITING: Final = (Cause.SYNC, Cause.COPY_TO_HOST)
"""What rule TV401 takes for waits of the host."""


def idle_for(causes: Sequence[Cause], words: str) -> Callable[[Pieces], Measure]:
    """Idle time of some causes over the span of each device; the worst device counts.

    Args:
        causes: The causes.
        words: What they are, after ``idle``.
    """

    def measure(pieces: Pieces) -> Measure:
        spans = _spans(pieces)
        if not spans:
            return Measure(None, NO_DEVICE_WORK)
        doubt = why_unreliable(pieces.timeline) or incomplete(pieces.timeline)
        if doubt:
            return Measure(None, f"idle time cannot be relied on: {doubt}")
        lengths = pieces.facts.idle.with_columns(ns=pl.col("end_ns") - pl.col("start_ns"))
        own = _by_device(lengths.filter(pl.col("cause").cast(pl.String).is_in([cause.value for cause in causes])))
        untold = _by_device(lengths.filter(pl.col("cause") == Cause.UNKNOWN.value))
        most = max((own.get(device, 0) + untold.get(device, 0)) / span for device, span in spans.items())
        measure = _worst(pieces, spans, own, f"idle {words}")
        doubt = "the cause of more idle time is not told" if any(untold.values()) else None
        return Measure(measure.value, measure.words, doubt, most)

    return measure


def waiting_ranks(pieces: Pieces) -> Measure:
    """Waiting in collectives for a late rank, while nothing else ran, over the span of each device."""
    spans = _spans(pieces)
    if not spans:
        return Measure(None, NO_DEVICE_WORK)
    skew = pieces.facts.skew
    if not skew.recorded:
        return Measure(0, "no collective is recorded", incomplete(pieces.timeline))
    if skew.why_none:
        return Measure(None, f"waiting for other ranks cannot be told: {skew.why_none}")
    own = dict(skew.waits.group_by("device").agg(pl.col("exposed_ns").sum()).iter_rows())
    measure = _worst(pieces, spans, own, "waiting in collectives for a late rank")
    left = skew.recorded - skew.waits.height
    doubt = f"{calls(left, 'collective')} could not be matched between ranks" if left else incomplete(pieces.timeline)
    return Measure(measure.value, measure.words, doubt)


def pageable_copies(pieces: Pieces) -> Measure:
    """Copies of pageable memory that no computation hides, over the span of each device."""
    spans = _spans(pieces)
    if not spans:
        return Measure(None, NO_DEVICE_WORK)
    rows = copies(pieces.timeline).filter(pl.col("device").is_not_null())
    between = rows.filter(pl.col("kind").is_in(["HtoD", "DtoH"]))
    work = pieces.timeline.device_work.filter(~pl.col("kind").is_in(list(COPY_KINDS)))
    own = {}
    for (device,), mine in between.filter(pl.col("pageable").fill_null(value=False)).group_by("device"):
        alone = intervals.subtract(_intervals(mine), _intervals(work.filter(pl.col("device") == device)))
        own[device] = intervals.total(*alone)
    measure = _worst(pieces, spans, own, "copying pageable memory beside no computation")
    untold = between["pageable"].null_count()
    doubt = f"of {calls(untold, 'copy', 'copies')} the kind of memory is not recorded" if untold else None
    return Measure(measure.value, measure.words, doubt or incomplete(pieces.timeline))


def allocating(pieces: Pieces) -> Measure:
    """Calls that allocate or free memory of the device, over the host's time of the steady steps."""
    steady = pieces.facts.steady
    if not _calls_recorded(pieces):
        return Measure(None, NO_CALLS)
    if steady is None:
        return Measure(None, NO_STEPS)
    rows = steady.within(allocator_calls(pieces.timeline))
    ns = host_union_ns(rows)
    share = min(ns / steady.span_ns, 1.0) if steady.span_ns else 0.0
    words = f"{calls(rows.height, 'allocator call')} past the warm-up: {percent(share)} of the steps ({time(ns)})"
    return Measure(share, words, incomplete(pieces.timeline))


def captures(pieces: Pieces) -> Measure:
    """Captures of device graphs in the steady steps."""
    if not _calls_recorded(pieces):
        return Measure(None, NO_CALLS)
    found = graph_captures(pieces.timeline)
    steady = pieces.facts.steady
    if not found.height:
        return Measure(0, "no graph was captured", incomplete(pieces.timeline))
    if steady is None:
        return Measure(None, f"{calls(found.height, 'graph capture')} recorded, but {NO_STEPS}")
    late = steady.within(found)
    return Measure(late.height, f"{calls(late.height, 'graph capture')} past the warm-up", incomplete(pieces.timeline))


def copied_again(pieces: Pieces) -> Measure:
    """Large copies to the device that come back in the same sizes in each step past the warm-up."""
    steady = pieces.facts.steady
    if steady is None:
        return Measure(None, NO_STEPS)
    if not pieces.timeline.device_work.height and not (pieces.timeline.events["kind"] == "op").any():
        return Measure(None, "neither device work nor ops are recorded, so copies cannot be seen")
    again = repeated_copies(pieces.facts)
    if again is None:
        return Measure(None, "fewer than two steps past the warm-up are recorded, so what repeats cannot be told")
    per_step = ceil(again.rows.height / again.steps)
    words = f"{calls(per_step, 'copy', 'copies')} of a mebibyte or more came back in each of {again.steps:,} steps"
    unsized = steady.within(copies(pieces.timeline).filter(pl.col("kind") == "HtoD"))["bytes"].null_count()
    doubt = f"the size of {calls(unsized, 'copy', 'copies')} is not recorded" if unsized else None
    return Measure(per_step, words, doubt or incomplete(pieces.timeline))


def _spans(pieces: Pieces) -> dict[int, int]:
    """First to last work of each device, ns; devices whose work takes no time are left out."""
    spans = {work.device: intervals.total(*work.window) for work in pieces.facts.works if work.device is not None}
    return {device: span for device, span in spans.items() if span}


def _by_device(rows: pl.DataFrame) -> dict[int, int]:
    return dict(rows.group_by("device").agg(pl.col("ns").sum()).iter_rows())


def _worst(pieces: Pieces, spans: dict[int, int], own: dict[int, int], words: str) -> Measure:
    """The device with the largest share."""
    worst = max(spans, key=lambda device: own.get(device, 0) / spans[device])
    ns, span = own.get(worst, 0), spans[worst]
    name = device_labels(pieces.timeline).get(worst, f"device {worst}")
    which = f"{name}, the worst of {len(spans)}, was" if len(spans) > 1 else "the device was"
    return Measure(ns / span, f"{which} {words} for {percent(ns / span)} of its span ({time(ns)} of {time(span)})")


def _calls_recorded(pieces: Pieces) -> bool:
    return bool((pieces.timeline.events["kind"] == "api").any())


def _intervals(rows: pl.DataFrame) -> intervals.IntervalSet:
    starts = rows["start_ns"].to_numpy()
    return starts, starts + rows["dur_ns"].to_numpy()


HOST_LATE: Final = LATE
"""What rule TV404 takes for a late host."""
