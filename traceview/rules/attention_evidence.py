"""The words and numbers that the attention rules share."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.callers import caller
from traceview.findings import MOST_EVENTS
from traceview.quantities import milliseconds, percent
from traceview.reasons import Role
from traceview.rules.kernel_evidence import together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from traceview.dispatch import Dispatch
    from traceview.rules.base import Facts

_MAX_LINES: Final = 6
_MAX_SIGNATURE: Final = 160


@dataclass(frozen=True, slots=True)
class Cost:
    """Time of a group of dispatches.

    Attributes:
        words: For a title.
        device_ns: As a number.
        where: Places in the code that they were called from, ``""`` if none is recorded.
        event_ids: The first few calls of each dispatch.
    """

    words: str
    device_ns: int
    where: str
    event_ids: tuple[int, ...]


def timing(facts: Facts, rows: Sequence[Dispatch]) -> Cost:
    """Device time and share of ``rows``; on a trace without device work, their host time."""
    device_ns = sum(row.device_ns for row in rows)
    host_ns = sum(row.host_ns or 0 for row in rows)
    busy_ns = facts.table.busy_ns
    if device_ns and busy_ns:
        everywhere = together(facts)
        words = f": {milliseconds(device_ns)} of device time{everywhere}, {percent(device_ns / busy_ns)} of busy time"
    elif host_ns:
        words = f": {host_words(facts, host_ns)}"
    else:
        words = ""
    places = Counter(
        place for row in rows for event_id in row.event_ids[:1] if (place := caller(facts.timeline, event_id))
    )
    events = tuple(itertools.islice((event for row in rows for event in row.event_ids), MOST_EVENTS))
    return Cost(words, device_ns, "; ".join(place for place, _ in places.most_common(3)), events)


def host_words(facts: Facts, host_ns: int) -> str:
    """Host time in words: only a program that has no device and calls none surely computed on the CPU."""
    timeline = facts.timeline
    on_cpu = timeline.devices.is_empty() and timeline.events.filter(pl.col("kind") == "api").is_empty()
    time = milliseconds(host_ns)
    return f"{time} on the CPU" if on_cpu else f"{time} of host time, and no device work of theirs is recorded"


def evidence_lines(rows: Sequence[Dispatch]) -> tuple[str, ...]:
    """One line per dispatch: op, count, what shows it, and the recorded signature."""
    lines = []
    for row in rows[:_MAX_LINES]:
        line = f"{row.count:,} × {row.op or 'op not recorded'}: {row.reasons[0].text}"
        if row.inputs and row.inputs["dims"]:
            signature = f"dims {row.inputs['dims']}, dtypes {row.inputs['dtypes'] or 'not recorded'}"
            line += f" ({signature[:_MAX_SIGNATURE]}{'…' if len(signature) > _MAX_SIGNATURE else ''})"
        lines.append(line)
    if len(rows) > _MAX_LINES:
        lines.append(f"and {len(rows) - _MAX_LINES} more input signatures")
    return tuple(lines)


def why_not_fused(rows: Sequence[Dispatch]) -> tuple[str, ...]:
    """Why PyTorch took no fused backend, one line per set of rules; empty if the rulebook says nothing of the rows."""
    groups: dict[tuple[str, ...], list[Dispatch]] = {}
    for row in rows:
        said = tuple(reason.rule for reason in row.reasons if reason.role in (Role.CAUSE, Role.OPEN, Role.ORDER))
        if said:
            groups.setdefault(said, []).append(row)
    lines = []
    for group in groups.values():
        count = sum(row.count for row in group)
        causes = [reason for reason in group[0].reasons if reason.role is Role.CAUSE]
        if causes:
            refusals = (f"{one.detail.backends[0]} by {one.rule} ({one.detail.facts})" for one in causes)
            why = f"refused: {', '.join(refusals)}"
        elif any(reason.role is Role.OPEN for reason in group[0].reasons):
            if group[0].inputs is None:
                continue
            rules = dict.fromkeys(reason.rule for reason in group[0].reasons if reason.role is Role.OPEN)
            why = f"which rule refused the fused backends cannot be told from what is recorded: {', '.join(rules)}"
        else:
            why = next(reason.text for reason in group[0].reasons if reason.role is Role.ORDER)
        lines.append(f"{count:,} call{'s' if count != 1 else ''}, {why}")
    return tuple(lines[:_MAX_LINES])


def by_cause(rows: Sequence[Dispatch], proven: Callable[[Dispatch], bool]) -> Iterator[tuple[bool, list[Dispatch]]]:
    """The proven rows and the others, each group only if it is not empty."""
    for wanted in (True, False):
        group = [row for row in rows if proven(row) is wanted]
        if group:
            yield wanted, group
