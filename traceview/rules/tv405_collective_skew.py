"""Ranks waited in collectives for one that came late.

What it finds
    Collectives that took longer on some ranks than on the last one to come, together 5 % or more of the recorded span
    and while the waiting devices had nothing else to do.

Why it costs
    A collective ends for nobody before everybody is there. All devices of the group then run at the pace of the slowest
    rank, and what looks like slow communication is a rank that loads data, computes more, or was launched late.

Evidence it needs
    Collective kernels of at least two ranks, which agree in order, name and size. Only durations are compared: the
    shortest of a collective is the transfer, what others took longer is waiting. So the clocks of hosts do not matter.

When it is wrong
    The slow rank may be one whose trace was not given: then the wait is longer than it seems. In a broadcast, a reduce
    or a gather not every rank has to wait. A link that is slower for one rank only looks the same.

Fix
    Look at the late rank: its idle time and its work before the collective. Give ranks equal work (lengths of
    sequences, sizes of batches), and read data ahead on every rank.

Scope and sources
    NCCL, RCCL and XLA collectives, no sends and receives. That ranks which come early wait inside the kernel is general
    knowledge of NCCL; public case: AMD-AGI/Hyperloom issue #1249 (17 s of waiting counted as one reduction).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview import intervals
from traceview.collective_skew import late_ranks
from traceview.findings import Confidence, Finding, Severity
from traceview.quantities import milliseconds, percent
from traceview.rules.kernel_evidence import located, plural, together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV405"
NAME: Final = "collective-skew"
SEVERITY: Final = Severity.WARNING

SHARE_OF_SPAN: Final = 0.05
"""Ranks are never at one point at the same time; a twentieth of the time is more than that."""

_MOST_CAUSES: Final = 2


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all collectives that could be matched."""
    skew = facts.skew
    late = late_ranks(facts.timeline, skew)
    cost_ns = skew.exposed_ns
    if not late or not cost_ns or cost_ns < SHARE_OF_SPAN * facts.span_ns:
        return
    waits = skew.waits
    label, device, count, _ = late[0]
    matched = waits["collective"].n_unique()
    spent, transfer = (milliseconds(int(waits[column].sum())) for column in ("dur_ns", "wire_ns"))
    yield Finding(
        code=CODE,
        severity=Severity.WARNING,
        title=f"Ranks waited in collectives for {milliseconds(cost_ns)}{together(facts)}, "
        f"{percent(cost_ns / facts.span_ns)} of the recorded span: {label} came last in {count:,} of {matched:,}",
        **located(facts, waits.filter(pl.col("device") == device)["event_id"]),
        evidence=(
            f"of {spent} in {plural(matched, 'collective')}, {transfer} are transfer, the rest is waiting",
            *(f"{name} came last in {n:,}: the others waited {milliseconds(ns)}" for name, _, n, ns in late[:3]),
            *_before(facts, label, device),
            *_missing(waits),
        ),
        cost_ns=cost_ns,
        confidence=Confidence.INFERRED if waits["group"].null_count() else Confidence.MEASURED,
        fix=f"Look at what {label} does before its collectives, give ranks equal work, and read data ahead.",
        false_alarm_if="one rank has a slower link, or the collective makes only some of the ranks wait",
    )


def _missing(waits: pl.DataFrame) -> Iterator[str]:
    """What the ranks that were not given can change."""
    missing = waits.filter(pl.col("group_size") > pl.col("ranks"))
    if missing.height:
        given, size = missing.sort("group_size", descending=True).select("ranks", "group_size").row(0)
        yield f"{given} of the {size} ranks of a group were given, so the waiting is a lower bound"


def _before(facts: Facts, label: str, device: int) -> Iterator[str]:
    """What the late rank stood idle for between its collectives."""
    own = facts.skew.waits.filter(pl.col("device") == device).sort("start_ns")
    ends = (own["start_ns"] + own["dur_ns"]).shift(1).fill_null(0)
    late = own["late"] & (ends < own["start_ns"])
    windows = intervals.merge(ends.filter(late).to_numpy(), own["start_ns"].filter(late).to_numpy())
    idle = facts.idle.filter(pl.col("device") == device)
    inside = intervals.covered(idle["start_ns"].to_numpy(), idle["end_ns"].to_numpy(), windows)
    table = (
        idle.with_columns(ns=pl.Series(inside, dtype=pl.Int64))
        .group_by("cause")
        .agg(pl.col("ns").sum())
        .filter(pl.col("ns") > 0)
        .sort("ns", descending=True)
    )
    causes = [f"{cause} {milliseconds(ns)}" for cause, ns in table.head(_MOST_CAUSES).iter_rows()]
    if causes:
        yield f"before the collectives it came last to, {label} stood idle: {', '.join(causes)}"
    else:
        yield f"before the collectives it came last to, {label} was busy: it had more to do, or ran slower"
