"""From a set of device work to a finding: its cost, its words, its evidence lines and its place in the code."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypedDict

import polars as pl

from traceview.callers import caller
from traceview.findings import MOST_EVENTS, Confidence, Finding, Severity
from traceview.quantities import milliseconds, percent
from traceview.rules.device_work import union_ns

if TYPE_CHECKING:
    from traceview.rules.base import Facts

WORTH_SHARE: Final = 0.02
"""Less than this share of the busy time is not worth a line: a perfect fix would save less than run-to-run noise."""

HINT_SHARE: Final = 0.05
"""The same for hints whose fix is uncertain: they must promise more to be worth reading."""

_MAX_LINES: Final = 5
_MAX_NAME: Final = 110
_PLACES_LOOKED_AT: Final = 40


@dataclass(frozen=True, slots=True)
class Advice:
    """The fixed words of a rule's findings."""

    code: str
    fix: str
    false_alarm_if: str


def share_of_busy(facts: Facts, work: pl.DataFrame) -> float:
    """Union of the rows' time over the busy time of all devices; 0 without device work."""
    return union_ns(work) / facts.table.busy_ns if facts.table.busy_ns else 0.0


def together(facts: Facts) -> str:
    """``" on 2 devices together"`` for a time that is a sum over devices; nothing where there is one."""
    devices = facts.work["device"].n_unique()
    return f" on {devices:,} devices together" if devices > 1 else ""


def on_the_host(calls: pl.DataFrame) -> str:
    """``"on the host"``, or of how many processes together a host time is the sum (column ``process``)."""
    processes = calls["process"].n_unique()
    return "on the host" if processes <= 1 else f"on the hosts of {processes:,} processes together"


def plural(count: int, noun: str, several: str = "") -> str:
    """``"3 kernels"``; ``several`` is the plural where it is not the noun with an ``s``."""
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def shortened(name: str, length: int = _MAX_NAME) -> str:
    """A kernel name without what every name shares, cut to ``length`` characters."""
    short = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    return short if len(short) <= length else short[: length - 1] + "…"


def kernel_lines(work: pl.DataFrame) -> tuple[str, ...]:
    """One line per kernel name and op, longest first: count, time, op, and recorded dims where there is one set."""
    groups = (
        work.group_by("name", "op")
        .agg(pl.len().alias("count"), pl.col("dur_ns").sum(), _most_frequent("dims"), pl.col("dtypes").first())
        .sort(["dur_ns", "name", "op"], descending=[True, False, False])
    )
    lines = []
    for row in groups.head(_MAX_LINES).iter_rows(named=True):
        asked = f" for {row['op']}" if row["op"] else ""
        dims = f", dims {shortened(row['dims'], 80)}" if row["dims"] else ""
        lines.append(f"{row['count']:,} × {shortened(row['name'])}{asked}: {milliseconds(row['dur_ns'])}{dims}")
    if groups.height > _MAX_LINES:
        rest = groups.slice(_MAX_LINES)
        lines.append(f"and {rest.height:,} more: {milliseconds(int(rest['dur_ns'].sum()))}")
    return tuple(lines)


def _most_frequent(column: str) -> pl.Expr:
    """The most frequent value; of several the first in order, so that every run says the same."""
    return pl.col(column).drop_nulls().cast(pl.String).mode().sort().first()


def places(facts: Facts, event_ids: pl.Series) -> str:
    """Where most of the events were called from: user code if stacks were recorded."""
    found = Counter(
        place for event_id in event_ids.head(_PLACES_LOOKED_AT) if (place := caller(facts.timeline, event_id))
    )
    return "; ".join(place for place, _ in found.most_common(3)) or "no call stack recorded"


class Located(TypedDict):
    """The fields of a finding that say where it is."""

    where: str
    event_ids: tuple[int, ...]


def located(facts: Facts, event_ids: pl.Series) -> Located:
    """Where a finding is: the places in the code, and the events themselves.

    Args:
        facts: The trace.
        event_ids: Events concerned, those that matter most first.
    """
    return {"where": places(facts, event_ids), "event_ids": tuple(event_ids.drop_nulls().head(MOST_EVENTS).to_list())}


def cost_words(facts: Facts, cost_ns: int) -> str:
    """``"1.234 ms of device time, 5.0 % of busy time"``; of several devices it says that they are taken together."""
    share = f", {percent(cost_ns / facts.table.busy_ns)} of busy time" if facts.table.busy_ns else ""
    return f"{milliseconds(cost_ns)} of device time{together(facts)}{share}"


def kernel_finding(
    facts: Facts,
    work: pl.DataFrame,
    title: str,
    advice: Advice,
    *,
    severity: Severity,
    confidence: Confidence = Confidence.MEASURED,
    saved_share: float = 1.0,
    remarks: tuple[str, ...] = (),
) -> Finding:
    """A finding about some device work.

    Args:
        facts: The trace.
        work: Rows of ``facts.work`` concerned.
        title: What they are, to which the time is added.
        advice: The rule's words.
        severity: How bad.
        confidence: How known.
        saved_share: The most of their time that a fix can save.
        remarks: Evidence lines that come before the kernels.
    """
    device_ns = union_ns(work)
    longest = work.sort("dur_ns", descending=True)["id"]
    return Finding(
        code=advice.code,
        severity=severity,
        title=f"{title}: {cost_words(facts, device_ns)}",
        **located(facts, longest),
        evidence=(*remarks, *kernel_lines(work)),
        cost_ns=round(device_ns * saved_share),
        confidence=confidence,
        fix=advice.fix,
        false_alarm_if=advice.false_alarm_if,
    )
