"""Warm-up until steady: nothing compiles any more, and a call takes the same time as the ones before it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_CALLS: Final = 30
"""Warm-up ends after so many calls, steady or not."""

MOST_NS: Final = 60 * 10**9
"""And after so long, ns; a call that runs is not cut off."""

_ALIKE: Final = 1.1
"""Two calls in a row whose times differ by no more than this factor are steady."""

_ALIKE_MEDIANS: Final = 1.25
"""Of short calls, whose times scatter: the medians of the last three and of the three before."""


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What the warm-up was: how many calls, and whether the last ones were steady (``None``: not looked at)."""

    calls: int
    steady: bool | None


def warm_up(
    call: Callable[[], object],
    *,
    calls: int | None,
    compilations: Callable[[], int],
    clock: Callable[[], int] = time.perf_counter_ns,
) -> WarmUp:
    """Call until steady, or a given number of times.

    Args:
        call: What to call; it must wait for the work that it asks a device for.
        calls: So many calls; ``None``: until steady, at most :data:`MOST_CALLS` and :data:`MOST_NS`.
        compilations: How much was compiled so far; only whether it changes matters.
        clock: Nanoseconds.
    """
    if calls is not None:
        for _ in range(calls):
            call()
        return WarmUp(calls, None)
    begin = clock()
    times: list[int] = []
    before = compilations()
    while len(times) < MOST_CALLS:
        start = clock()
        call()
        end = clock()
        now = compilations()
        # What compiled is no measure, and what went before it is none either.
        times = [*([0] * len(times)), 0] if now != before else [*times, end - start]
        before = now
        if is_steady(times):
            return WarmUp(len(times), steady=True)
        if end - begin >= MOST_NS:
            break
    return WarmUp(len(times), steady=False)


def is_steady(times: list[int]) -> bool:
    """Whether the last calls took the same time; 0 stands for a call that is no measure."""
    last, earlier = times[-3:], times[-6:-3]
    if len(last) >= 2 and all(last[-2:]) and max(last[-2:]) <= _ALIKE * min(last[-2:]) and len(times) > 2:
        return True
    if len(earlier) < 3 or not all(last) or not all(earlier):
        return False
    old, new = median(earlier), median(last)
    return max(old, new) <= _ALIKE_MEDIANS * min(old, new)
