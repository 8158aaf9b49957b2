"""A limit on what a comparison may find, for CI: ``slower=5%``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from traceview.comparability import Comparable
from traceview.errors import ExitCode, UsageError
from traceview.quantities import signed_percent
from traceview.step_change import Verdict

if TYPE_CHECKING:
    from traceview.compare import Comparison
    from traceview.step_change import StepChange

_LIMIT: Final = re.compile(r"slower=(\d{1,6}(?:\.\d{1,6})?)\s*%")


@dataclass(frozen=True, slots=True)
class SlowdownLimit:
    """A step may get so much slower.

    Attributes:
        share: Of the time of a step before, 0 or more.
    """

    share: float

    @property
    def text(self) -> str:
        """As it is written."""
        return f"slower={self.share * 100:g}%"


@dataclass(frozen=True, slots=True)
class LimitResult:
    """Whether a limit holds: exit code and reason."""

    code: ExitCode
    why: str


def read_limit(text: str) -> SlowdownLimit:
    """Read a limit.

    Raises:
        UsageError: it is not of the form.
    """
    match = _LIMIT.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            "no-limit",
            where=f"--fail-if {text}",
            why="that is no limit.",
            next_step="Write slower=PERCENT%: slower=5%.",
        )
    return SlowdownLimit(float(match[1]) / 100)


def judge_limit(limit: SlowdownLimit, found: Comparison) -> LimitResult:
    """Whether steps got slower by more than a limit.

    It does not hold if the median is above the limit and the difference is more than the spread of the steps. It holds
    if neither the median nor what the spread leaves room for is above it. Else nobody can tell, nor can anybody from
    traces that cannot be compared.

    Args:
        limit: The limit.
        found: The comparison.
    """
    if found.comparable is Comparable.NO:
        return LimitResult(ExitCode.INCONCLUSIVE, found.why)
    results = [_judged(limit, one) for one in found.phases or (found.step,)]
    for code in (ExitCode.VIOLATED, ExitCode.INCONCLUSIVE):
        for one in results:
            if one.code is code:
                return one
    return results[0]


def _judged(limit: SlowdownLimit, step: StepChange) -> LimitResult:
    if step.change is None or step.low is None or step.high is None:
        return LimitResult(ExitCode.INCONCLUSIVE, step.why)
    of = f"of {step.phase} " if step.phase else ""
    change = f"the median {of}changed by {signed_percent(step.change)}"
    if step.verdict is Verdict.SLOWER and step.change > limit.share:
        return LimitResult(ExitCode.VIOLATED, f"{change}, more than the {limit.share * 100:g} % that are allowed")
    room = f"the spread of the steps leaves room for {signed_percent(step.high)}"
    if step.change <= limit.share and step.high <= limit.share:
        return LimitResult(ExitCode.OK, f"{change}; {room}")
    return LimitResult(ExitCode.INCONCLUSIVE, f"{change}, but {room}")
