"""An XLA device waited for its own asynchronous copies or collectives.

What it finds
    Operations that end an asynchronous one (``copy-done``, ``slice-done``, ``all-gather-done``, …) while nothing else
    ran on the device, for 10 % or more of its recorded span.

Why it costs
    The device starts a copy or a collective early so that work can hide it. Where its end is waited for, there was too
    little work between start and end: the step runs at the speed of the memory or the link, not of the arithmetic.

Evidence it needs
    Operations of the device by name (``XLA Ops`` in XProf), with start and end.

When it is wrong
    The copies may be the work itself, as where weights do not fit beside the activations and are streamed. A server
    without requests can also wait inside a program. Waits for the host (infeed, host send and receive) are not meant:
    TV403 has them.

Fix
    Look at what is waited for. Copies: less data (smaller types, weights that stay on the device), larger batches, or a
    layout that needs no copy. Collectives: another sharding, or the latency-hiding scheduler of XLA.

Scope and sources
    XProf traces of TPUs and of GPUs under XLA, any version. Names of asynchronous operations: openxla/xla
    ``hlo_opcode.h`` and ``xla_op_utils.h``, read in source code 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.busy import busy
from traceview.findings import Confidence, CostOf, Finding, Severity
from traceview.quantities import milliseconds, percent
from traceview.rules.device_work import union_ns
from traceview.rules.kernel_evidence import plural, shortened, together
from traceview.xla import waits_for_host, without_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV406"
NAME: Final = "async-wait"
SEVERITY: Final = Severity.WARNING

SHARE_OF_SPAN: Final = 0.10
"""Some waiting is always left, at the ends of a program at least."""
_MOST_NAMES: Final = 3
_MOST_EVENTS: Final = 200


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all devices."""
    devices = busy(facts.timeline)
    cost_ns = sum(device.wait_ns for device in devices)
    span_ns = sum(device.span_ns for device in devices)
    if not cost_ns or cost_ns < SHARE_OF_SPAN * span_ns:
        return
    waits = facts.timeline.events.filter((pl.col("kind") == "async_wait") & pl.col("device").is_not_null())
    of_host = waits_for_host(facts.timeline, waits)
    # What the host is waited for is TV403's.
    cost_ns = max(cost_ns - union_ns(of_host), 0)
    if not cost_ns or cost_ns < SHARE_OF_SPAN * span_ns:
        return
    waits = waits.join(of_host.select("id"), on="id", how="anti")
    waits = waits.select("id", "device", "start_ns", "dur_ns", name=without_number(pl.col("name").cast(pl.String)))
    by_name = sorted(
        ((union_ns(rows), rows) for rows in waits.partition_by("name")), key=lambda one: (-one[0], one[1]["name"][0])
    )
    beside = ", time with other work beside it included" if sum(ns for ns, _ in by_name) > cost_ns else ""
    longest = waits.sort("dur_ns", "id", descending=[True, False]).head(_MOST_EVENTS)
    yield Finding(
        code=CODE,
        severity=Severity.WARNING,
        title=f"The device waited for its own asynchronous work for {milliseconds(cost_ns)}{together(facts)}, "
        f"{percent(cost_ns / span_ns)} of the span",
        where=", ".join(shortened(rows["name"][0], 60) for _, rows in by_name[:_MOST_NAMES]),
        evidence=tuple(
            f"{milliseconds(ns)} in {plural(rows.height, 'operation')} {shortened(rows['name'][0], 60)}{beside}"
            for ns, rows in by_name[:_MOST_NAMES]
        ),
        cost_ns=cost_ns,
        cost_of=CostOf.IDLE,
        confidence=Confidence.MEASURED,
        fix="Move less (smaller types, weights that stay on the device), give each copy more work to hide behind "
        "(larger batches), or change the sharding; then look at what is still waited for.",
        false_alarm_if="the weights do not fit and are streamed on purpose, or the program waits for requests",
        event_ids=tuple(longest["id"].to_list()),
    )
