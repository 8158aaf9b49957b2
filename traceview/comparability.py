"""Whether two traces can be compared at all: the same hardware, the same work, recorded alike.

A figure beside another means something only under one contract: one thing was changed and nothing else. Each condition
is looked at and named with what follows from it. What is not recorded is said, never taken for equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from traceview.quantities import percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traceview.compared_setting import Setting, Work
    from traceview.report_parts import TraceInfo

SAME_WORK: Final = 0.8
"""So many of the shapes of one trace are found in the other where both do the same work."""
OTHER_WORK: Final = 0.3
"""With fewer of them in common they do different work."""
NO_COMMON: Final = 0.05
"""Traces without shapes whose kernels have less than this of their time in common may be anything."""
SAME_CALLS: Final = 1.25
"""Calls of the same shapes per step may differ by as much, e.g. where a projection was merged."""


class Comparable(StrEnum):
    """How far two traces can be compared."""

    YES = "comparable"
    """Nothing that is recorded differs but the results."""
    LIMITED = "limited"
    """Something differs or is not known that may be part of the difference."""
    NO = "not comparable"
    """A difference of times says nothing about a change of the program."""


class Effect(StrEnum):
    """What a condition means for the comparison."""

    HOLDS = "holds"
    UNKNOWN = "unknown"
    """Not recorded; not counted against the comparison."""
    LIMITS = "limits"
    FORBIDS = "forbids"


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that must be alike.

    Attributes:
        what: Its name.
        before: As it is in the first trace, ``None`` if not recorded.
        after: As it is in the second.
        effect: What that means.
        consequence: The same in words; empty where it holds.
    """

    what: str
    before: str | None
    after: str | None
    effect: Effect
    consequence: str = ""


def conditions(before: Setting, after: Setting) -> tuple[Condition, ...]:
    """What must be alike in two traces, each with what follows from it; what forbids first."""
    found = [
        _same_files(before.trace, after.trace),
        _devices(before.trace, after.trace),
        _count(before.trace, after.trace),
        _work(before.work, after.work),
        _calls(before.work, after.work),
        *_tokens(before.work, after.work),
        _steps(before, after),
        _producer(before.trace, after.trace),
        *_versions(before.versions, after.versions),
        _flags(before.flags, after.flags),
        _trust(before.trace, after.trace),
    ]
    order = list(Effect)
    return tuple(sorted((one for one in found if one is not None), key=lambda one: -order.index(one.effect)))


def overall(found: tuple[Condition, ...]) -> Comparable:
    """How far two traces can be compared, by their worst condition."""
    effects = {one.effect for one in found}
    if Effect.FORBIDS in effects:
        return Comparable.NO
    return Comparable.LIMITED if Effect.LIMITS in effects else Comparable.YES


def _same_files(before: TraceInfo, after: TraceInfo) -> Condition | None:
    if before.files != after.files:
        return None
    name = PurePath(before.files[0]).name
    return Condition("traces", name, name, Effect.LIMITS, "both are the same file")


def _used(trace: TraceInfo) -> list[Any]:
    return [one for one in trace.devices if one.used]


def _devices(before: TraceInfo, after: TraceInfo) -> Condition | None:
    texts = []
    for trace in (before, after):
        used = _used(trace)
        names = sorted({one.name or one.architecture or "" for one in used})
        texts.append(None if not used or "" in names else ", ".join(names))
    first, second = texts
    if not _used(before) and not _used(after):
        return Condition(
            "device", "none", "none", Effect.LIMITS, "no device work is recorded: only the host can be compared"
        )
    if not _used(before) or not _used(after):
        have = ["none" if not _used(trace) else text or "not named" for trace, text in zip((before, after), texts,
                                                                                            strict=True)]  # fmt: skip
        return Condition("device", have[0], have[1], Effect.FORBIDS, "only one trace has device work")
    if first is None or second is None:
        return Condition(
            "device", first, second, Effect.LIMITS, "the product is not recorded, so it may not be the same hardware"
        )
    if first != second:
        return Condition("device", first, second, Effect.FORBIDS, "a difference may be that of the hardware")
    if first in {"TPU", "GPU"}:
        return Condition(
            "device", first, second, Effect.LIMITS, "the generation is not recorded, so it may not be the same hardware"
        )
    return Condition("device", first, second, Effect.HOLDS)


def _count(before: TraceInfo, after: TraceInfo) -> Condition | None:
    first, second = len(_used(before)), len(_used(after))
    if not first or not second:
        return None
    if first != second:
        return Condition(
            "number of devices", str(first), str(second), Effect.LIMITS, "each device may have another part of the work"
        )
    return Condition("number of devices", str(first), str(second), Effect.HOLDS)


def _work(before: Work, after: Work) -> Condition:
    shapes, others = before.shapes_beside(after), after.shapes_beside(before)
    if shapes and others:
        common = shapes.keys() & others.keys()
        part = len(common) / min(len(shapes), len(others))
        texts = (f"{len(shapes):,} distinct shapes", f"{len(others):,}, {len(common):,} of them the same")
        if part >= SAME_WORK:
            return Condition("input shapes", texts[0], texts[1], Effect.HOLDS)
        first = max(shapes.keys() - common, key=lambda key: (shapes[key], key), default="")
        if part < OTHER_WORK:
            only = f", e.g. {first[:80]} is in the first alone" if first else ""
            return Condition(
                "input shapes", texts[0], texts[1], Effect.FORBIDS, f"the traces compute different things{only}"
            )
        return Condition(
            "input shapes",
            texts[0],
            texts[1],
            Effect.LIMITS,
            f"part of the work differs, e.g. {first[:80]} is in the first alone",
        )
    return _work_by_name(before, after)


def _work_by_name(before: Work, after: Work) -> Condition:
    """Without shapes: what the kernels and stages are called."""
    common = before.names.keys() & after.names.keys()
    stages = before.stages & after.stages
    parts = [
        sum(work.names[name] for name in common) / total if (total := sum(work.names.values())) else None
        for work in (before, after)
    ]
    told = [None if part is None else f"{percent(part)} of device time in kernels of both" for part in parts]
    if not stages and all(part is not None and part < NO_COMMON for part in parts):
        return Condition(
            "work",
            told[0],
            told[1],
            Effect.FORBIDS,
            "the traces have no stage and hardly a kernel in common: other programs",
        )
    if not before.names and not after.names and before.stages and after.stages and not stages:
        return Condition("work", None, None, Effect.FORBIDS, "the traces have no stage in common: other programs")
    return Condition(
        "work",
        told[0],
        told[1],
        Effect.LIMITS,
        "shapes are not recorded in both, so batch and lengths may not be the same",
    )


def _calls(before: Work, after: Work) -> Condition | None:
    shapes, others = before.shapes_beside(after), after.shapes_beside(before)
    common = shapes.keys() & others.keys()
    if not common:
        return None
    first, second = (sum(one[key] for key in common) for one in (shapes, others))
    texts = (f"{first:,.4g}", f"{second:,.4g}")
    if max(first, second) > SAME_CALLS * min(first, second):
        return Condition(
            "calls of those shapes per step",
            texts[0],
            texts[1],
            Effect.LIMITS,
            "a step may do more or less work than before",
        )
    return Condition("calls of those shapes per step", texts[0], texts[1], Effect.HOLDS)


def _tokens(before: Work, after: Work) -> list[Condition]:
    """What a step of a serving engine has to do."""
    found = []
    for name in sorted(before.tokens.keys() & after.tokens.keys()):
        first, second = before.tokens[name], after.tokens[name]
        what, texts = f"{name.replace('_', ' ')} per step", (f"{first:,.4g}", f"{second:,.4g}")
        alike = max(first, second) <= SAME_CALLS * min(first, second)
        effect = Effect.HOLDS if alike else Effect.LIMITS
        found.append(Condition(what, texts[0], texts[1], effect, "" if alike else "a step has another amount of work"))
    return found


def _steps(before: Setting, after: Setting) -> Condition:
    texts = [
        f"{one.steps[1]:,} steady, by {one.steps[0]}" + ("" if one.warmup else ", warm-up not told")
        for one in (before, after)
    ]
    if before.steps[0] != after.steps[0]:
        return Condition(
            "steps", texts[0], texts[1], Effect.FORBIDS, "what counts as a step differs, so do their times"
        )
    if before.steps[0] == "the whole trace":
        return Condition(
            "steps",
            texts[0],
            texts[1],
            Effect.LIMITS,
            "without step marks whole recordings are compared, whatever each holds",
        )
    if before.warmup != after.warmup:
        return Condition("steps", texts[0], texts[1], Effect.LIMITS, "warm-up may be left in on one side")
    return Condition("steps", texts[0], texts[1], Effect.HOLDS)


def _producer(before: TraceInfo, after: TraceInfo) -> Condition:
    if before.producer != after.producer:
        return Condition(
            "recorded by", before.producer, after.producer, Effect.LIMITS, "profilers differ in what they cost and see"
        )
    texts = [one.producer + (f" {one.producer_version}" if one.producer_version else "") for one in (before, after)]
    if before.producer_version and after.producer_version and texts[0] != texts[1]:
        return Condition(
            "recorded by", texts[0], texts[1], Effect.LIMITS, "a part of the difference may be that of the versions"
        )
    return Condition("recorded by", texts[0], texts[1], Effect.HOLDS)


def _versions(before: Mapping[str, str], after: Mapping[str, str]) -> list[Condition]:
    if not before or not after:
        return [Condition("versions", None, None, Effect.UNKNOWN, "they may differ")]
    found = [
        Condition(
            f"{name} version", before[name], after[name], Effect.LIMITS,
            "a part of the difference may be that of the versions",
        )
        for name in sorted(before.keys() & after.keys())
        if before[name] != after[name]
    ]  # fmt: skip
    if found:
        return found
    same = ", ".join(f"{name} {before[name]}" for name in sorted(before.keys() & after.keys()))
    return [Condition("versions", same, same, Effect.HOLDS)] if same else []


def _flags(before: frozenset[str], after: frozenset[str]) -> Condition:
    texts = [", ".join(sorted(one)) or "nothing more" for one in (before, after)]
    if before != after:
        return Condition(
            "also recorded",
            texts[0],
            texts[1],
            Effect.LIMITS,
            "what a profiler records costs time on the host, most so stacks",
        )
    return Condition("also recorded", texts[0], texts[1], Effect.HOLDS)


def _trust(before: TraceInfo, after: TraceInfo) -> Condition:
    texts = (before.trust, after.trust)
    if "poor" in texts:
        return Condition(
            "trust", texts[0], texts[1], Effect.FORBIDS, "so much of a trace is missing that times are lower bounds"
        )
    if "limited" in texts:
        return Condition(
            "trust", texts[0], texts[1], Effect.LIMITS, "something of a trace is missing; its import notes say what"
        )
    return Condition("trust", texts[0], texts[1], Effect.HOLDS)
