"""An XLA device waited between two runs of its programs.

What it finds
    Time between the runs of compiled modules, and time in operations that wait for the host (infeed, outfeed, host send
    and receive), that make up 10 % or more of the device's recorded span.

Why it costs
    A TPU or GPU under XLA runs one program after the other. Between them it waits for the host: for input, for Python,
    for a transfer.

Evidence it needs
    Module runs of the device (``XLA Modules`` in XProf). Host transfers are told by their category; infeed and outfeed
    also by their name.

When it is wrong
    A server without requests waits by nature. The first gap may be the compilation of the next program (TV301).

Fix
    Prefetch input on the host, dispatch several steps ahead (do not read a value each step), or loop on the device
    (``jax.lax.scan``).

Scope and sources
    XProf traces of JAX and TensorFlow, any version. openxla/xprof ``smart_suggestion/constants.h`` (input and idle
    thresholds of 10 %) and openxla/xla ``xla_op_utils.h`` (names of the categories), read in source code 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview import intervals
from traceview.findings import Confidence, CostOf, Finding, Severity
from traceview.quantities import milliseconds, percent
from traceview.rules.device_work import union_ns
from traceview.rules.kernel_evidence import plural, shortened, together
from traceview.xla import waits_for_host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV403"
NAME: Final = "program-gap"
SEVERITY: Final = Severity.WARNING

SHARE_OF_SPAN: Final = 0.10
"""The threshold at which XProf itself calls a program input bound."""


def _for_the_host(count: int, ns: int) -> Iterator[str]:
    if count:
        yield f"{milliseconds(ns)} in {plural(count, 'operation')} for the host (infeed, send, receive)"


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
    ops = facts.timeline.events.filter(
        pl.col("kind").is_in(["xla_op", "async_wait"]) & pl.col("device").is_not_null()
    ).select("id", "name", "device", "start_ns", "dur_ns")
    waiting = waits_for_host(facts.timeline, ops)
    waiting_ns = union_ns(waiting)
    cost_ns = gap_ns + waiting_ns
    if not span_ns or cost_ns < SHARE_OF_SPAN * span_ns:
        return
    # The span that reports speak of: that of the work, which begins and ends inside of programs.
    whole_ns = sum(intervals.total(*work.window) for work in facts.works) or span_ns
    names = modules["name"].cast(pl.String).value_counts(sort=True, name="n")
    yield Finding(
        code=CODE,
        severity=Severity.WARNING,
        title=f"The device waited between programs for {milliseconds(cost_ns)}{together(facts)}, "
        f"{percent(min(cost_ns / whole_ns, 1.0))} of the span",
        where=", ".join(shortened(name, 60) for name in names["name"].head(3)),
        evidence=(
            f"{milliseconds(gap_ns)} between {runs:,} module runs",
            *_for_the_host(waiting.height, waiting_ns),
        ),
        cost_ns=cost_ns,
        cost_of=CostOf.IDLE,
        confidence=Confidence.MEASURED,
        fix="Prefetch input, do not read a value each step, or loop on the device.",
        false_alarm_if="the program had nothing to do, like a server without requests",
    )
