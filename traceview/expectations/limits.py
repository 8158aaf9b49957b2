"""The keys of ``[limits]``: what each measures, and how it is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.busy import busy
from traceview.expectations.model import Judgement, Limit, Verdict
from traceview.expectations.words import time
from traceview.quantities import percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.busy import DeviceBusy
    from traceview.expectations.pieces import Pieces
    from traceview.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Measure:
    """What a limit is about, as measured: ``value`` is ``None`` if the trace does not tell; ``words`` say it all."""

    value: float | None
    words: str


@dataclass(frozen=True, slots=True)
class LimitKind:
    """One key of ``[limits]``.

    Attributes:
        doc: What is measured, one line.
        is_share: The value is a share of one; otherwise a whole number.
        measure: Measures it.
    """

    doc: str
    is_share: bool
    measure: Callable[[Pieces], Measure]


def judge_limit(limit: Limit, pieces: Pieces) -> Judgement:
    """Judge one key of ``[limits]``; what cannot be measured is inconclusive, never kept silently."""
    measure = LIMITS[limit.key].measure(pieces)
    if measure.value is None:
        return Judgement(Verdict.INCONCLUSIVE, measure.words)
    return Judgement(Verdict.FAIL if measure.value > limit.most else Verdict.PASS, measure.words)


def _of_span(part: Callable[[DeviceBusy], int], words: str) -> Callable[[Pieces], Measure]:
    """A share of each device's span; the worst device counts."""

    def measure(pieces: Pieces) -> Measure:
        devices = [one for one in busy(pieces.timeline) if one.span_ns]
        if not devices:
            return Measure(None, "no device work is recorded, so there is no span to measure")
        worst = max(devices, key=lambda one: part(one) / one.span_ns)
        share = part(worst) / worst.span_ns
        name = _device_name(pieces.timeline, worst.device)
        which = f"{name}, the worst of {len(devices)}, was" if len(devices) > 1 else "the device was"
        of = f"{time(part(worst))} of {time(worst.span_ns)}"
        return Measure(share, f"{which} {words} for {percent(share)} of its span ({of})")

    return measure


def _device_name(timeline: Timeline, device: int) -> str:
    """``device 1``, or ``rank 3 device 0`` where several ranks are on one timeline."""
    rows = timeline.devices.filter(pl.col("device") == device).to_dicts()
    if not rows:
        return f"device {device}"
    rank = timeline.runs[rows[0]["run"]].rank
    name = f"device {rows[0]['ordinal']}"
    return name if rank is None else f"rank {rank} {name}"


def _unidentified(pieces: Pieces) -> Measure:
    total = sum(piece.device_ns for piece in pieces.kernels)
    if not total:
        return Measure(None, "no device work is recorded")
    share = pieces.table.unknown_ns / total
    words = f"{percent(share)} of device time is in kernels that no signature knows"
    if pieces.table.unknown_names:
        words += f" (such as {pieces.table.unknown_names[0][:80]})"
    return Measure(share, words)


def _not_yet(what: str) -> Callable[[Pieces], Measure]:
    return lambda _: Measure(None, f"this version of traceview does not analyse {what}")


LIMITS: Final[dict[str, LimitKind]] = {
    "idle_share": LimitKind(
        "time in which a device ran nothing, between its first and last work, over that span",
        is_share=True,
        measure=_of_span(lambda one: one.idle_ns, "idle"),
    ),
    "exposed_communication_share": LimitKind(
        "time in which a device did nothing but communicate, over its span",
        is_share=True,
        measure=_of_span(lambda one: one.exposed_communication_ns, "held up by communication"),
    ),
    "exposed_copy_share": LimitKind(
        "time in which a device did nothing but copy, over its span",
        is_share=True,
        measure=_of_span(lambda one: one.exposed_memcpy_ns, "held up by copies"),
    ),
    "unidentified_share": LimitKind(
        "device time in kernels that no signature knows, over all device time",
        is_share=True,
        measure=_unidentified,
    ),
    "host_gap_share": LimitKind(
        "device idle time whose cause is the host, over the span; not judged by this version",
        is_share=True,
        measure=_not_yet("the causes of idle time"),
    ),
    "recompiles_after_warmup": LimitKind(
        "number of recompilations after warm-up; not judged by this version",
        is_share=False,
        measure=_not_yet("recompilations"),
    ),
}
"""Every key, in the order of the documentation."""
