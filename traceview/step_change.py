"""Whether steps take longer or shorter than before, and whether the difference is more than their spread.

Step times are not normal: a step now and then takes twice as long. So the test is the one of Mann and Whitney, which
looks at order alone: of all pairs of a step before and a step after, how many got shorter. The interval of the change
comes with it (Hodges and Lehmann): the pairwise ratios, without as many at either end as chance would put there, at
95 %. With three steps on each side all nine ratios are the interval, which chance leaves once in ten times.

A difference counts where the interval lies wholly on one side of no change. Else the steps are the same only if the
interval leaves no room for more than a small difference; where it does, there is too much noise to tell.

The spread within one recording is not that from run to run: clocks, placement and neighbours differ between runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from math import comb, floor, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from traceview.quantities import percent
from traceview.steps import LEAST_STEPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_CHANGE: Final = 0.01
"""A smaller difference of medians is none: runs of one program differ by as much."""

SAME_WITHIN: Final = 0.05
"""Steps whose interval leaves room for less than this are the same."""

_TAIL: Final = 0.025
"""Chance that the interval leaves to either side."""
_EXACT: Final = 40
"""Up to so many steps on each side the chances are counted out, beyond they are those of the normal distribution."""
_MOST: Final = 2000
"""Of more steps so many stand for all, at even ranks: the pairs would not fit into memory."""


class Verdict(StrEnum):
    """What became of the steps."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class StepSpread:
    """How long the steps of one trace take, ns.

    Attributes:
        count: Number of steps.
        median_ns: Their median.
        mean_ns: Their mean.
        least_ns: The shortest.
        most_ns: The longest.
    """

    count: int
    median_ns: float
    mean_ns: float
    least_ns: int
    most_ns: int


@dataclass(frozen=True, slots=True)
class StepChange:
    """The steps of two traces, compared.

    Attributes:
        phase: Phase of a serving engine, ``None`` for all steps.
        before: Steps of the first trace; ``None`` if it has none.
        after: Steps of the second.
        change: Median after over median before, less one: ``-0.25`` is a quarter less time.
        low: Least change that the interval leaves room for; ``None`` with fewer than three steps on a side.
        high: Most change that it leaves room for.
        verdict: What that means.
        why: The verdict in words, without its figures.
    """

    phase: str | None
    before: StepSpread | None
    after: StepSpread | None
    change: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    why: str

    @property
    def speedup(self) -> float | None:
        """How many times as fast: median before over median after."""
        if self.before is None or self.after is None or not self.after.median_ns:
            return None
        return self.before.median_ns / self.after.median_ns


def spread(walls: NDArray[np.int64]) -> StepSpread | None:
    """How long some steps take; ``None`` for none.

    Args:
        walls: Length of each step, ns.
    """
    if not len(walls):
        return None
    return StepSpread(
        count=len(walls),
        median_ns=float(np.median(walls)),
        mean_ns=float(walls.mean()),
        least_ns=int(walls.min()),
        most_ns=int(walls.max()),
    )


@cache
def outside(first: int, second: int) -> int:
    """How many pairwise ratios lie outside of the interval at either end.

    With so many or fewer pairs in one order, chance alone is to blame at most once in forty times.

    Args:
        first: Number of steps before.
        second: Number of steps after.
    """
    pairs = first * second
    if max(first, second) > _EXACT:
        return max(floor(pairs / 2 - 1.96 * sqrt(pairs * (first + second + 1) / 12)), 0)
    # ways[u]: orders of the steps in which u pairs stand the wrong way round (Mann and Whitney 1947, by recursion).
    ways = [[[1] for _ in range(second + 1)] for _ in range(first + 1)]
    for i in range(1, first + 1):
        for j in range(1, second + 1):
            left, down = ways[i - 1][j], ways[i][j - 1]
            row = [0] * (i * j + 1)
            for at, count in enumerate(left):
                row[at + j] += count
            for at, count in enumerate(down):
                row[at] += count
            ways[i][j] = row
    total, met = comb(first + second, first), 0
    for u, count in enumerate(ways[first][second]):
        met += count
        if met > _TAIL * total:
            return max(u - 1, 0)
    return 0


def interval(before: NDArray[np.int64], after: NDArray[np.int64]) -> tuple[float, float]:
    """Least and most change (ratio less one) that the spread of the steps leaves room for.

    Args:
        before: Length of each step before, ns, all above 0.
        after: After.
    """
    first, second = (_thinned(np.sort(walls)) for walls in (before, after))
    ratios = np.sort((second[None, :] / first[:, None]).reshape(-1))
    cut = min(outside(len(first), len(second)), (len(ratios) - 1) // 2)
    return float(ratios[cut]) - 1, float(ratios[-1 - cut]) - 1


def _thinned(ordered: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(ordered) <= _MOST:
        return ordered
    return ordered[np.linspace(0, len(ordered) - 1, _MOST).round().astype(np.intp)]


def step_change(
    before: NDArray[np.int64], after: NDArray[np.int64], phase: str | None = None, *, marked: bool = True
) -> StepChange:
    """Compare the steps of two traces.

    Args:
        before: Length of each steady step of the first trace, ns.
        after: Of the second.
        phase: Phase of a serving engine that the steps are of.
        marked: Something marks the steps; else each is all that a process recorded.
    """
    first, second = spread(before), spread(after)
    if first is None or second is None or not first.median_ns:
        side = "the first" if first is None or not first.median_ns else "the second"
        return StepChange(
            phase, first, second, None, None, None, Verdict.INCONCLUSIVE, f"{side} trace has no step that takes time"
        )
    change = second.median_ns / first.median_ns - 1
    if min(first.count, second.count) < LEAST_STEPS:
        why = f"fewer than {LEAST_STEPS} steps on a side" if marked else "nothing marks steps that could be compared"
        why += ": the difference cannot be told from noise"
        return StepChange(phase, first, second, change, None, None, Verdict.INCONCLUSIVE, why)
    low, high = interval(np.maximum(before, 1), after)
    verdict, why = _judged(change, low, high)
    chance = 2 / comb(first.count + second.count, first.count) if first.count + second.count < _EXACT else 0.0
    if verdict in {Verdict.FASTER, Verdict.SLOWER} and chance > 2 * _TAIL:
        why += f", though with so few steps chance alone does as much in {percent(chance)} of cases"
    return StepChange(phase, first, second, change, low, high, verdict, why)


def _judged(change: float, low: float, high: float) -> tuple[Verdict, str]:
    apart = high < 0 or low > 0
    if apart and abs(change) >= LEAST_CHANGE:
        return Verdict.FASTER if change < 0 else Verdict.SLOWER, "more than the spread of the steps"
    if apart:
        return Verdict.SAME, f"less than {LEAST_CHANGE:.0%}, as runs of one program differ"
    if max(-low, high) <= SAME_WITHIN:
        return Verdict.SAME, f"the spread of the steps leaves room for less than {SAME_WITHIN:.0%} either way"
    return Verdict.INCONCLUSIVE, "within the spread of the steps, which is too wide to tell"
