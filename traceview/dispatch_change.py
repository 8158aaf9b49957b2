"""Where something else ran than before: one family of work, in one stage, before and after.

Rows of two dispatch tables are set side by side by what they compute and in which stage, never by the op that asked:
unfused attention is asked for by matrix products, and its fused replacement by one op.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.dispatch import DispatchTable

LEAST_SHIFT: Final = 0.05
"""A mix of implementations is another one if this part of the calls runs something else."""

LEAST_SHARE: Final = 0.005
"""Families that take less of the device time on both sides are not looked at."""

_NO_DISPATCH: Final = ("memcpy", "memset", "other")
"""Device work that nothing chooses an implementation for, or whose name does not say what it is."""

UNNAMED: Final = "not named"
"""An implementation that the name of the kernel does not tell."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What ran for one family in one stage, per step.

    Attributes:
        family: What is computed.
        direction: ``forward`` or ``backward``.
        stage: In which stage; ``None`` for none.
        implementation: What ran.
        op: Who asked, ``None`` if not recorded.
        count: Calls per step (for families other than attention: kernels).
        device_ns: Device time per step, ns.
        share: Of the device time of the whole trace.
        verdict: ``ok``, ``slow`` or ``unknown``.
    """

    family: str
    direction: str
    stage: str | None
    implementation: str
    op: str | None
    count: float
    device_ns: float
    share: float
    verdict: str


@dataclass(frozen=True, slots=True)
class Mix:
    """One implementation in a mix: calls and device time per step, and who asked."""

    implementation: str
    count: float
    device_ns: float
    share: float
    verdict: str
    ops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DispatchChange:
    """Where something else ran than before.

    Attributes:
        family: What is computed.
        direction: ``forward`` or ``backward``.
        stage: In which stage; ``None`` for none, or where the traces have other stages.
        before: What ran before, by falling number of calls.
        after: What runs now.
    """

    family: str
    direction: str
    stage: str | None
    before: tuple[Mix, ...]
    after: tuple[Mix, ...]

    @property
    def before_ns(self) -> float:
        """Device time per step before, ns."""
        return sum(one.device_ns for one in self.before)

    @property
    def after_ns(self) -> float:
        """Device time per step now, ns."""
        return sum(one.device_ns for one in self.after)


def ran(table: DispatchTable, steps: int) -> tuple[Ran, ...]:
    """The rows of a dispatch table per step; inputs make no difference.

    Args:
        table: Of a timeline with stages.
        steps: Number of steps in it, warm-up included.
    """
    return tuple(
        Ran(
            family=row.family,
            direction=row.direction,
            stage=row.stage,
            implementation=row.implementation or UNNAMED,
            op=row.op,
            count=row.count / steps,
            device_ns=row.device_ns / steps,
            share=row.share or 0.0,
            verdict=row.verdict,
        )
        for row in table.dispatches
        if row.family not in _NO_DISPATCH
    )


def dispatch_changes(before: Sequence[Ran], after: Sequence[Ran]) -> tuple[DispatchChange, ...]:
    """Where something else ran than before; attention first, then by difference of device time.

    Where the two traces do not have the same stages for a family, it is looked at as a whole.

    Args:
        before: Rows of the first trace.
        after: Rows of the second.
    """
    found = []
    families = dict.fromkeys((one.family, one.direction) for one in (*before, *after))
    for family, direction in families:
        own = [[one for one in rows if (one.family, one.direction) == (family, direction)] for rows in (before, after)]
        timed = any(one.device_ns for one in (*before, *after))
        if timed and max(sum(one.share for one in rows) for rows in own) < LEAST_SHARE:
            continue
        places: list[set[str | None]] = [{one.stage for one in rows} for rows in own]
        if places[0] == places[1]:
            for stage in places[0]:
                mixes = [_mix(one for one in rows if one.stage == stage) for rows in own]
                if _differ(*mixes):
                    found.append(DispatchChange(family, direction, stage, *mixes))
        else:
            mixes = [_mix(rows) for rows in own]
            if _differ(*mixes):
                found.append(DispatchChange(family, direction, None, *mixes))
    return tuple(
        sorted(
            found,
            key=lambda one: (
                one.family != "attention", -abs(one.after_ns - one.before_ns), one.family, one.direction,
                one.stage or "",
            ),
        )
    )  # fmt: skip


def _mix(rows: Iterable[Ran]) -> tuple[Mix, ...]:
    chosen: dict[str, list[Ran]] = {}
    for one in rows:
        chosen.setdefault(one.implementation, []).append(one)
    mixes = []
    for name, own in chosen.items():
        asked: Counter[str] = Counter()
        for one in own:
            if one.op is not None:
                asked[one.op] += round(one.count * 1000)
        mixes.append(
            Mix(
                implementation=name,
                count=sum(one.count for one in own),
                device_ns=sum(one.device_ns for one in own),
                share=sum(one.share for one in own),
                verdict=_worst(one.verdict for one in own),
                ops=tuple(op for op, _ in asked.most_common(3)),
            )
        )
    return tuple(sorted(mixes, key=lambda one: (-one.count, one.implementation)))


def _worst(verdicts: Iterable[str]) -> str:
    order = ("ok", "unknown", "slow")
    return max(verdicts, key=lambda one: order.index(one) if one in order else 0, default="ok")


def _differ(before: tuple[Mix, ...], after: tuple[Mix, ...]) -> bool:
    """Whether another part of the calls is served by something else."""
    if not before or not after:
        return True
    shares = []
    for mixes in (before, after):
        total = sum(one.count for one in mixes)
        shares.append({one.implementation: one.count / total for one in mixes if total})
    names = shares[0].keys() | shares[1].keys()
    return sum(abs(shares[0].get(name, 0.0) - shares[1].get(name, 0.0)) for name in names) / 2 >= LEAST_SHIFT
