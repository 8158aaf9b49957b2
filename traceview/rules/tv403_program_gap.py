"""An XLA device waited between two runs of its programs.

What it finds
    Time between the runs of compiled modules, and time in infeed operations, that make up 10 % or more of the
    device's recorded span.

Why it costs
    A TPU or GPU under XLA runs one program after the other. Between them it waits for the host: for input, for Python,
    for a transfer.

Evidence it needs
    Module runs of the device (``XLA Modules`` in XProf).

When it is wrong
    A server without requests waits by nature. The first gap may be the compilation of the next program (TV301).

Fix
    Prefetch input on the host, dispatch several steps ahead (do not read a value each step), or loop on the device
    (``jax.lax.scan``).

Scope and sources
    XProf traces of JAX and TensorFlow, any version. openxla/xprof ``smart_suggestion/constants.h`` (input and idle
    thresholds of 10 %), read in source code 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview import intervals
from traceview.findings import Confidence, CostOf, Finding, Severity
from traceview.quantities import percent
from traceview.rules.device_work import union_ns
from traceview.rules.kernel_evidence import milliseconds, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV403"
NAME: Final = "program-gap"
SEVERITY: Final = Severity.WARNING

SHARE_OF_SPAN: Final = 0.10
"""The threshold at which XProf itself calls a program input bound."""

_INFEED: Final = r"^%?infeed"


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all devices."""
    modules = facts.timeline.events.filter((pl.col("kind") == "xla_module") & pl.col("device").is_not_null())
    gap_ns = span_ns = runs = 0
    for rows in modules.partition_by("device"):
        starts = rows["start_ns"].to_numpy()
        ends = starts + rows["dur_ns"].to_numpy()
        gap_ns += intervals.total(*intervals.gaps(starts, ends))
        span_ns += intervals.span(starts, ends)
        runs += rows.height
    infeed = facts.work.filter((pl.col("kind") == "xla_op") & pl.col("name").str.contains(_INFEED))
    infeed_ns = union_ns(infeed)
    cost_ns = gap_ns + infeed_ns
    if not span_ns or cost_ns < SHARE_OF_SPAN * span_ns:
        return
    names = modules["name"].cast(pl.String).value_counts(sort=True, name="n")
    yield Finding(
        code=CODE,
        severity=Severity.WARNING,
        title=f"The device waited between programs for {milliseconds(cost_ns)}, "
        f"{percent(cost_ns / span_ns)} of the span",
        where=", ".join(shortened(name, 60) for name in names["name"].head(3)),
        evidence=(
            f"{milliseconds(gap_ns)} between {runs:,} module runs",
            f"{milliseconds(infeed_ns)} in {infeed.height:,} infeed operations",
        ),
        cost_ns=cost_ns,
        cost_of=CostOf.IDLE,
        confidence=Confidence.MEASURED,
        fix="Prefetch input, do not read a value each step, or loop on the device.",
        false_alarm_if="the program had nothing to do, like a server without requests",
    )
