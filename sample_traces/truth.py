"""The right answers of an authored trace, as a small table beside it.

Counts, times and dispatches are what the author of the trace said, before it became a file. Tests recompute the
same numbers from the file alone, and hold the product to them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sample_traces.authoring import Event, Trace


def union_ns(spans: Iterable[tuple[int, int]]) -> int:
    """Time that at least one of the spans covers."""
    total, reached = 0, 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _spans(events: Iterable[Event]) -> list[tuple[int, int]]:
    return [(e.start_ns, e.end_ns) for e in events]


def _steps(trace: Trace) -> list[dict[str, Any]]:
    steps = [e for e in trace.host if e.name.startswith("ProfilerStep#")]
    return [{"name": e.name, "index": int(e.name.partition("#")[2]), "host_ns": e.end_ns - e.start_ns} for e in steps]


def _stages(trace: Trace, names: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    for name in names:
        ranges = [e for e in trace.host if e.cat == "user_annotation" and e.name == name]
        inside = {
            call.args["correlation"] for call in trace.launches
            if any(r.start_ns <= call.start_ns <= r.end_ns for r in ranges)
        }  # fmt: skip
        work = [e for e in trace.device_events if e.args["correlation"] in inside]
        rows.append({
            "pid": trace.pid, "stage": name, "count": len(ranges),
            "host_ns": sum(r.end_ns - r.start_ns for r in ranges),
            "device_busy_ns": union_ns(_spans(work)), "device_events": len(work),
        })  # fmt: skip
    return rows


def _dispatches(trace: Trace) -> list[dict[str, Any]]:
    groups: dict[tuple[str | None, ...], list[Any]] = {}
    for said in trace.dispatches:
        key = (said.op, said.implementation, said.provider, said.attribution, said.stage)
        groups.setdefault(key, []).append(said)
    rows = []
    for (op, implementation, provider, attribution, stage), calls in groups.items():
        kernels = [kernel for call in calls for kernel in call.kernels]
        core = [e for e in kernels if any(mark in e.name.lower() for mark in ("gemm", "softmax"))]
        rows.append({
            "op": op, "implementation": implementation, "provider": provider, "attribution": attribution,
            "stage": stage, "count": len(calls), "kernels": len(kernels), "device_ns": union_ns(_spans(kernels)),
            **({"gemm_softmax_ns": union_ns(_spans(core))} if implementation in ("unfused", "math") else {}),
        })  # fmt: skip
    return rows


def _gaps(trace: Trace, at_least_ns: int = 100_000) -> list[dict[str, Any]]:
    """Times in which no device work ran, between the first and the last, with what the host did for most of each.

    Of two host events that cover the same part of a gap the shorter one is named.
    """
    rows: list[dict[str, Any]] = []
    named = [e for e in trace.host if e.cat in ("user_annotation", "cpu_op") and not e.name.startswith("ProfilerStep#")]
    reached = 0
    for start, end in sorted(_spans(trace.device_events)):
        if reached and start - reached >= at_least_ns:
            gap = (reached, start)
            during = max(named, key=lambda e: (_shared(e, gap), e.start_ns - e.end_ns))
            rows.append({"start_ns": reached, "dur_ns": start - reached, "during": during.name})
        reached = max(reached, end)
    return rows


def _shared(event: Event, span: tuple[int, int]) -> int:
    return max(0, min(event.end_ns, span[1]) - max(event.start_ns, span[0]))


def table(traces: Sequence[Trace], *, file: str, stages: Sequence[str] = (), **facts: Any) -> dict[str, Any]:
    """The truth table of one file (several traces: ranks merged into one file).

    Args:
        traces: What went into the file.
        file: Its name.
        stages: Names of the ranges that are stages.
        facts: Further answers, added as they are.
    """
    events = [e for t in traces for e in (*t.host, *t.device_events)]
    busy: dict[int, list[Event]] = {}
    for event in (e for t in traces for e in t.device_events):
        busy.setdefault(event.pid, []).append(event)
    first = traces[0]
    return {
        "schema": "traceview.sample-truth/1", "trace": file, "authored": True, "shows": first.note,
        "base_unix_ns": first.base_ns, "gpu": first.gpu.name if first.gpu else None,
        "events": dict(sorted(Counter(e.cat for e in events).items())),
        "launches": sum(len(t.launches) for t in traces), "launches_without_work": 0, "work_without_launch": 0,
        "devices": [
            {"ordinal": o, "events": len(w), "busy_ns": union_ns(_spans(w))} for o, w in sorted(busy.items())
        ],
        "steps": [row for t in traces for row in _steps(t)],
        "stages": [row for t in traces for row in _stages(t, stages)],
        **({"gaps": _gaps(first)} if "items_per_step" in facts else {}),
        "dispatches": [row for t in traces for row in _dispatches(t)],
        **facts,
    }  # fmt: skip
