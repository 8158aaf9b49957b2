"""Numbers for people: durations, shares and counts with their units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview import quantities
from traceview.findings import CostOf

if TYPE_CHECKING:
    from collections.abc import Iterable

_UNITS: Final = (("ns", 1), ("us", 10**3), ("ms", 10**6), ("s", 10**9))


def duration(ns: int) -> str:
    """A duration with four significant digits in the unit that suits it: ``1.078 s``, ``12.35 us``, ``832 ns``."""
    for unit, size in _UNITS:
        # The next unit starts where four digits of this one would round up to it.
        if abs(ns) < 999.95 * size or unit == "s":
            value = ns / size
            digits = 0 if unit == "ns" else max(0, 4 - len(str(int(abs(value)))))
            return f"{value:,.{digits}f} {unit}"
    raise AssertionError("the last unit takes everything")


def durations(values_ns: Iterable[int | None], *, short: bool = False) -> tuple[str, list[str]]:
    """Durations of one table column in one unit, so that they can be compared at a glance.

    Args:
        values_ns: The column; ``None`` for what is not known.
        short: The values are single kernels: stay with microseconds up to 100 ms.

    Returns:
        The unit, and one text per value.
    """
    values = list(values_ns)
    largest = max((abs(value) for value in values if value is not None), default=0)
    if largest < 10**3:
        unit, size, digits = "ns", 1, 0
    elif largest < 10**6:
        unit, size, digits = "us", 10**3, 3
    elif short and largest < 10**8:
        unit, size, digits = "us", 10**3, 1
    elif largest < 10**11:
        unit, size, digits = "ms", 10**6, 3
    else:
        unit, size, digits = "s", 10**9, 3
    least = 10.0**-digits
    # What rounds to nothing is not nothing.
    small = f"<{least:.{digits}f}"
    return unit, [
        "-" if value is None else small if 0 < abs(value) / size < least / 2 else f"{value / size:,.{digits}f}"
        for value in values
    ]


def percent(share: float | None) -> str:
    """A share of one in per cent; ``<0.1 %`` is said of what would round to nothing, ``-`` of what is not known."""
    return "-" if share is None else quantities.percent(share)


def counted(n: int, noun: str, plural: str = "") -> str:
    """``1 device``, ``2,048 events``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def together(devices: int) -> str:
    """``" on 2 devices together"`` for a sum over devices, so that nobody holds it against a wall time."""
    return f" on {devices:,} devices together" if devices > 1 else ""


def saving(cost_ns: int, cost_of: CostOf, busy_ns: int, span_ns: int = 0) -> str:
    """What a fix can save at most; only device time is set against the busy time, which a host can exceed.

    Args:
        cost_ns: The cost, ns.
        cost_of: Of what kind.
        busy_ns: Busy time of the devices, ns; 0 if it is not to be named.
        span_ns: Their span, ns; 0 if it is not known. It is named where it is longer than the busy time.
    """
    if cost_of is not CostOf.DEVICE:
        return f"at most {duration(cost_ns)} of {cost_of.value} can be saved"
    share = f", {percent(cost_ns / busy_ns)} of the busy time" if busy_ns else ""
    if share and span_ns > busy_ns:
        share += f", {percent(cost_ns / span_ns)} of the span"
    return f"at most {duration(cost_ns)} can be saved{share}"
