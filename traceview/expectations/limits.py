"""The keys of ``[limits]``: what each measures, and how it is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from traceview.busy import busy
from traceview.device_labels import device_labels
from traceview.expectations import fault_limits
from traceview.expectations.host_gaps import steady_idle, why_unreliable
from traceview.expectations.judging import incomplete
from traceview.expectations.measure import Measure
from traceview.expectations.model import Judgement, Limit, Verdict
from traceview.expectations.words import calls, time
from traceview.knowledge.idle_causes import Cause
from traceview.quantities import percent
from traceview.recompiles import (
    after_warm_up,
    compilations,
    compile_spans,
    shows_compilation,
    unplaced,
    why_compilation_hidden,
)
from traceview.steady_state import find_steady_state
from traceview.timeline import Trust

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.busy import DeviceBusy
    from traceview.expectations.pieces import Pieces
    from traceview.timeline import Timeline

_MOST_STEPS: Final = 8


@dataclass(frozen=True, slots=True)
class LimitKind:
    """One key of ``[limits]``.

    Attributes:
        doc: What is measured, one line.
        is_share: The value is a share of one; otherwise a whole number, or the place of a word in ``words``.
        measure: Measures it.
        words: What can be stated instead of a number, best first.
    """

    doc: str
    is_share: bool
    measure: Callable[[Pieces], Measure]
    words: tuple[str, ...] = ()


def judge_limit(limit: Limit, pieces: Pieces) -> Judgement:
    """Judge one key of ``[limits]``; what cannot be measured is inconclusive, never kept silently."""
    measure = LIMITS[limit.key].measure(pieces)
    if measure.value is None:
        return Judgement(Verdict.INCONCLUSIVE, measure.words)
    if measure.value > limit.most:
        return Judgement(Verdict.FAIL, measure.words)
    if measure.doubt is not None and (measure.at_most is None or measure.at_most > limit.most):
        return Judgement(Verdict.INCONCLUSIVE, f"{measure.words}; {measure.doubt}")
    return Judgement(Verdict.PASS, measure.words)


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
    return device_labels(timeline).get(device, f"device {device}")


def _unidentified(pieces: Pieces) -> Measure:
    total = sum(piece.device_ns for piece in pieces.kernels)
    if not total:
        return Measure(None, "no device work is recorded")
    share = pieces.table.unknown_ns / total
    words = f"{percent(share)} of device time is in kernels that no signature knows"
    if pieces.table.unknown_names:
        words += f" (such as {pieces.table.unknown_names[0][:80]})"
    return Measure(share, words)


def _host_gaps(pieces: Pieces) -> Measure:
    timeline = pieces.timeline
    if not timeline.device_work.height:
        return Measure(None, "no device work is recorded, so there is no span to measure")
    unreliable = why_unreliable(timeline) or incomplete(timeline)
    if unreliable:
        return Measure(None, f"idle time cannot be relied on: {unreliable}")
    steady = find_steady_state(timeline)
    devices = steady_idle(timeline, steady)
    if not devices:
        where = "linked to a launch in the steps after the first" if steady else "of any length"
        return Measure(None, f"no device work {where} is recorded, so there is no span to measure")
    worst = max(devices, key=lambda one: one.idle_ns / one.span_ns)
    share = worst.idle_ns / worst.span_ns
    name = _device_name(timeline, worst.device)
    which = f"{name}, the worst of {len(devices)}, was" if len(devices) > 1 else "the device was"
    part = "the steps after the first" if steady else "the whole trace, without two profiler steps,"
    words = f"{which} idle for {percent(share)} of {part} ({time(worst.idle_ns)} of {time(worst.span_ns)})"
    left_out = timeline.device_work["device"].n_unique() - len(devices)
    if left_out:
        words += f", {calls(left_out, 'device')} without work in that part left out"
    return Measure(share, f"{words}; causes are not told apart, so waiting for data counts too")


def _recompiles(pieces: Pieces) -> Measure:
    timeline = pieces.timeline
    recorded = compilations(timeline, compile_spans(timeline)).count
    if not recorded:
        if not shows_compilation(timeline):
            return Measure(None, why_compilation_hidden(timeline))
        return Measure(0, "nothing was compiled", incomplete(timeline))
    steady = find_steady_state(timeline)
    if steady is None:
        words = f"{calls(recorded, 'compilation')} recorded, but fewer than two profiler steps"
        return Measure(None, f"{words}, so warm-up and recompilation cannot be told apart")
    late = after_warm_up(timeline, steady)
    words = f"{calls(late.count, 'compilation')} after the first recorded step"
    if late.steps:
        more = ", ..." if len(late.steps) > _MOST_STEPS else ""
        plural = "s" if len(late.steps) > 1 else ""
        words += f", in step{plural} {', '.join(map(str, late.steps[:_MOST_STEPS]))}{more}"
    outside = unplaced(timeline, steady).count
    doubt = f"{outside:,} more cannot be placed before or after the warm-up" if outside else incomplete(timeline)
    return Measure(late.count, words, doubt)


def _trust(pieces: Pieces) -> Measure:
    report = pieces.timeline.report
    reasons = [note.text for note in report.notes if note.trust is report.trust and note.trust is not Trust.GOOD]
    why = f": {reasons[0].rstrip('.')}" if reasons else ""
    return Measure(list(Trust).index(report.trust), f"the trust of the trace is {report.trust.value}{why}")


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
        "time in which a device ran nothing, from the first to the last work of the steps after the first, over that "
        "span; causes are not told apart",
        is_share=True,
        measure=_host_gaps,
    ),
    "recompiles_after_warmup": LimitKind(
        "number of compilations in the recorded steps after the first",
        is_share=False,
        measure=_recompiles,
    ),
    "sync_idle_share": LimitKind(
        "time in which a device stood idle because the host had waited for it (TV401), over its span",
        is_share=True,
        measure=fault_limits.idle_for(fault_limits.WAITING, "after waits of the host"),
    ),
    "host_late_share": LimitKind(
        "time in which a device stood idle because the host launched late (TV404: launching, host work, data loading, "
        "...), over its span",
        is_share=True,
        measure=fault_limits.idle_for(fault_limits.HOST_LATE, "for late launches"),
    ),
    "data_loading_share": LimitKind(
        "time in which a device stood idle while the host fetched data, over its span",
        is_share=True,
        measure=fault_limits.idle_for((Cause.DATA_LOADING,), "for data"),
    ),
    "collective_wait_share": LimitKind(
        "time in which a device waited in collectives for a late rank (TV405), over its span",
        is_share=True,
        measure=fault_limits.waiting_ranks,
    ),
    "pageable_copy_share": LimitKind(
        "time in which a device did nothing but copy pageable memory (TV501), over its span",
        is_share=True,
        measure=fault_limits.pageable_copies,
    ),
    "repeated_copies_per_step": LimitKind(
        "copies to the device of a mebibyte or more that come back in each step past the warm-up (TV502)",
        is_share=False,
        measure=fault_limits.copied_again,
    ),
    "allocator_share": LimitKind(
        "time of the steps past the warm-up in calls that allocate or free device memory (TV503)",
        is_share=True,
        measure=fault_limits.allocating,
    ),
    "graph_captures_after_warmup": LimitKind(
        "captures of device graphs in the steps past the warm-up (TV303)",
        is_share=False,
        measure=fault_limits.captures,
    ),
    "trust": LimitKind(
        "the worst grade that the import may leave the trace with (TV9xx)",
        is_share=False,
        measure=_trust,
        words=tuple(grade.value for grade in Trust),
    ),
}
"""Every key, in the order of the documentation."""
