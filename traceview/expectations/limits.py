"""The keys of ``[limits]``: what each measures, and how it is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from traceview.busy import busy
from traceview.expectations.model import Judgement, Verdict
from traceview.expectations.words import percent, time

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.busy import DeviceBusy
    from traceview.dispatch import DispatchTable
    from traceview.timeline import Timeline


@dataclass(frozen=True, slots=True)
class LimitKind:
    """One key of ``[limits]``.

    Attributes:
        doc: What is measured, one line.
        is_share: The value is a share of one; otherwise a whole number.
        judge: Timeline, dispatch table and the highest value allowed to a judgement.
    """

    doc: str
    is_share: bool
    judge: Callable[[Timeline, DispatchTable, float], Judgement]


def _per_device(part: Callable[[DeviceBusy], int], words: str) -> Callable[[Timeline, DispatchTable, float], Judgement]:
    """A share of each device's span; every device must keep the limit."""

    def judge(timeline: Timeline, table: DispatchTable, most: float) -> Judgement:
        devices = [one for one in busy(timeline) if one.span_ns]
        if not devices:
            return Judgement(Verdict.INCONCLUSIVE, "no device work is recorded, so there is no span to measure")
        worst = max(devices, key=lambda one: part(one) / one.span_ns)
        share = part(worst) / worst.span_ns
        of = f"device {worst.device}, the worst of {len(devices)}, was" if len(devices) > 1 else "the device was"
        observed = f"{of} {words} for {percent(share)} of its span ({time(part(worst))} of {time(worst.span_ns)})"
        return Judgement(Verdict.FAIL if share > most else Verdict.PASS, observed)

    return judge


def _unidentified(timeline: Timeline, table: DispatchTable, most: float) -> Judgement:
    total = sum(kernel.device_ns for row in table.dispatches for kernel in row.kernels)
    if not total:
        return Judgement(Verdict.INCONCLUSIVE, "no device work is recorded")
    share = table.unknown_ns / total
    observed = f"{percent(share)} of device time is in kernels that no signature knows"
    if table.unknown_names:
        observed += f" (such as {table.unknown_names[0][:80]})"
    return Judgement(Verdict.FAIL if share > most else Verdict.PASS, observed)


def _not_yet(what: str) -> Callable[[Timeline, DispatchTable, float], Judgement]:
    def judge(timeline: Timeline, table: DispatchTable, most: float) -> Judgement:
        return Judgement(Verdict.INCONCLUSIVE, f"this version of traceview does not analyse {what}")

    return judge


LIMITS: Final[dict[str, LimitKind]] = {
    "idle_share": LimitKind(
        "time in which a device ran nothing, between its first and last work, over that span",
        is_share=True,
        judge=_per_device(lambda one: one.idle_ns, "idle"),
    ),
    "exposed_communication_share": LimitKind(
        "time in which a device did nothing but communicate, over its span",
        is_share=True,
        judge=_per_device(lambda one: one.exposed_communication_ns, "held up by communication"),
    ),
    "exposed_copy_share": LimitKind(
        "time in which a device did nothing but copy, over its span",
        is_share=True,
        judge=_per_device(lambda one: one.exposed_memcpy_ns, "held up by copies"),
    ),
    "unidentified_share": LimitKind(
        "device time in kernels that no signature knows, over all device time",
        is_share=True,
        judge=_unidentified,
    ),
    "host_gap_share": LimitKind(
        "device idle time whose cause is the host, over the span; not judged by this version",
        is_share=True,
        judge=_not_yet("the causes of idle time"),
    ),
    "recompiles_after_warmup": LimitKind(
        "number of recompilations after warm-up; not judged by this version",
        is_share=False,
        judge=_not_yet("recompilations"),
    ),
}
"""Every key, in the order of the documentation."""
