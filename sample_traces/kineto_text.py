"""The pieces of a Kineto trace and their text: devices, tensors, events, and the file around them.

:mod:`sample_traces.authoring` builds events from these; this module only knows how PyTorch writes them down.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sample_traces.authoring import Trace


@dataclass(frozen=True, slots=True)
class Gpu:
    """One product, as ``deviceProperties`` describes it."""

    name: str
    memory: int
    major: int
    minor: int
    sms: int
    warp: int = 32
    smem_per_sm: int = 167936
    smem_optin: int = 166912

    @property
    def rocm(self) -> bool:
        """Whether it is programmed through HIP."""
        return self.name.startswith("AMD")

    def properties(self, ordinal: int) -> dict[str, Any]:
        """The entry of ``deviceProperties``."""
        return {
            "id": ordinal, "name": self.name, "totalGlobalMem": self.memory,
            "computeMajor": self.major, "computeMinor": self.minor,
            "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
            "regsPerBlock": 65536, "warpSize": self.warp, "sharedMemPerBlock": 49152, "numSms": self.sms,
            "regsPerMultiprocessor": 65536, "sharedMemPerBlockOptin": self.smem_optin,
            "sharedMemPerMultiprocessor": self.smem_per_sm,
        }  # fmt: skip


H100: Final = Gpu("NVIDIA H100 80GB HBM3", 85018279936, 9, 0, 132, smem_per_sm=233472, smem_optin=232448)
A100: Final = Gpu("NVIDIA A100-SXM4-80GB", 84987740160, 8, 0, 108)
MI300X: Final = Gpu("AMD Instinct MI300X", 205822885888, 9, 4, 304, warp=64, smem_per_sm=65536, smem_optin=65536)


@dataclass(frozen=True, slots=True, init=False)
class Tensor:
    """A tensor argument: shape, dtype as the profiler names it, strides (contiguous unless given)."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]

    def __init__(self, *shape: int, dtype: str = "float", strides: Sequence[int] | None = None) -> None:
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dtype", dtype)
        if strides is None:
            step, dense = 1, []
            for size in reversed(shape):
                dense.append(step)
                step *= size
            strides = dense[::-1]
        object.__setattr__(self, "strides", tuple(strides))

    def to(self, dtype: str) -> Tensor:
        """The same tensor, dense, with another dtype."""
        return Tensor(*self.shape, dtype=dtype)

    def swap(self, a: int, b: int) -> Tensor:
        """A view with two dimensions exchanged."""
        shape, strides = list(self.shape), list(self.strides)
        shape[a], shape[b] = shape[b], shape[a]
        strides[a], strides[b] = strides[b], strides[a]
        return Tensor(*shape, dtype=self.dtype, strides=strides)


@dataclass(slots=True)
class Event:
    """One event to be written. ``end_ns`` of a range is set when it closes."""

    cat: str
    name: str
    pid: int
    tid: int
    start_ns: int
    end_ns: int
    args: dict[str, Any] = field(default_factory=dict)

    def copy_to(self, pid: int, tid: int, start_ns: int, end_ns: int, cat: str) -> Event:
        """A device-side projection of this range."""
        return Event(cat, self.name, pid, tid, start_ns, end_ns, {"External id": self.args["External id"]})


def signature(inputs: Sequence[Any]) -> dict[str, Any]:
    """The four argument lists of an op, as the profiler writes them."""
    rows = [_argument(value) for value in inputs]
    keys = ("Concrete Inputs", "Input type", "Input Strides", "Input Dims")
    return {key: [row[i] for row in rows] for i, key in enumerate(keys)}


def _argument(value: Any) -> tuple[str, str, Any, Any]:
    if value is None:
        return "", "", [], []
    if isinstance(value, Tensor):
        return "", value.dtype, list(value.strides), list(value.shape)
    if isinstance(value, list | tuple) and value and all(isinstance(v, Tensor) for v in value):
        return "", "TensorList", [list(v.strides) for v in value], [list(v.shape) for v in value]
    if isinstance(value, list | tuple):
        return str(list(value)), "ScalarList", [], []
    if isinstance(value, float):
        return f"{value:g}." if value == int(value) else repr(value), "Scalar", [], []
    return str(value), "Scalar", [], []


def us_text(ns: int) -> str:
    """Nanoseconds as the decimal microseconds that a trace holds."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def _event_text(event: Event, index: int) -> str:
    args = dict(event.args)
    if event.cat in ("cpu_op", "user_annotation", "python_function"):
        args["Ev Idx"] = index
    body = json.dumps(args)[1:-1]
    ids = f'"ph": "X", "cat": "{event.cat}", "name": {json.dumps(event.name)}, "pid": {event.pid}, "tid": {event.tid}'
    times = f'"ts": {us_text(event.start_ns)}, "dur": {us_text(event.end_ns - event.start_ns)}'
    return f'  {{\n    {ids},\n    {times},\n    "args": {{\n      {body}\n    }}\n  }}'


def _flow_text(kind: str, correlation: int, event: Event) -> str:
    bp = ', "bp": "e"' if kind == "f" else ""
    at = f'"pid": {event.pid}, "tid": {event.tid}, "ts": {us_text(event.start_ns)}'
    return f'  {{\n    "ph": "{kind}", "id": {correlation}, {at},\n    "cat": "ac2g", "name": "ac2g"{bp}\n  }}'


def _meta_text(name: str, pid: int | str, tid: int, ts_ns: int, key: str, value: Any) -> str:
    at = f'"name": "{name}", "ph": "M", "ts": {us_text(ts_ns)}, "pid": {json.dumps(pid)}, "tid": {tid}'
    return f'  {{\n    {at},\n    "args": {{\n      "{key}": {json.dumps(value)}\n    }}\n  }}'


def _projections(trace: Trace) -> list[Event]:
    """Kineto's device-side twin of a range: first start to last end of the work of that innermost range, per stream."""
    spans: dict[tuple[int, int, int], list[int]] = {}
    for work in trace.device_events:
        owner = trace.owner.get(work.args["correlation"])
        if owner is not None:
            key = (owner.args["External id"], work.pid, work.tid)
            span = spans.setdefault(key, [work.start_ns, work.end_ns])
            span[:] = [min(span[0], work.start_ns), max(span[1], work.end_ns)]
    ranges = {e.args["External id"]: e for e in trace.host if e.cat == "user_annotation"}
    return [ranges[i].copy_to(pid, tid, a, b, "gpu_user_annotation") for (i, pid, tid), (a, b) in spans.items()]


def _body(trace: Trace) -> list[str]:
    order = sorted(trace.host, key=lambda e: (e.cat in ("cuda_runtime", "cuda_driver"), e.start_ns))
    parts: list[str] = []
    work: dict[int, list[Event]] = {}
    for event in trace.device_events:
        work.setdefault(event.args["correlation"], []).append(event)
    launched = {call.args["correlation"] for call in trace.launches}
    for index, event in enumerate(order):
        if event.cat not in ("cuda_runtime", "cuda_driver"):
            parts.append(_event_text(event, index))
            continue
        correlation = event.args["correlation"]
        for child in work.get(correlation, []):
            parts.append(_event_text(child, index))
            parts.append(_flow_text("f", correlation, child))
        parts.append(_event_text(event, index))
        parts.append(_flow_text("s" if correlation in launched else "f", correlation, event))
    parts.extend(_event_text(event, 0) for event in _projections(trace))
    return parts


def _labels(traces: Sequence[Trace]) -> list[str]:
    ts = min(t.start_ns for t in traces) - 300_000
    parts: list[str] = []
    for trace in traces:
        parts.append(_meta_text("process_name", trace.pid, 0, ts, "name", "python3"))
        parts.append(_meta_text("process_labels", trace.pid, 0, ts, "labels", "CPU"))
        parts.append(_meta_text("process_sort_index", trace.pid, 0, ts, "sort_index", trace.pid))
    for ordinal in range(max(t.devices for t in traces)):
        parts.append(_meta_text("process_name", ordinal, 0, ts, "name", "python3"))
        parts.append(_meta_text("process_labels", ordinal, 0, ts, "labels", f"GPU {ordinal}"))
        parts.append(_meta_text("process_sort_index", ordinal, 0, ts, "sort_index", 5_000_000 + ordinal))
    for trace in traces:
        for pid, lane in sorted({(e.pid, e.tid) for e in trace.device_events}):
            parts.append(_meta_text("thread_name", pid, lane, ts, "name", f"stream {lane} "))
            parts.append(_meta_text("thread_sort_index", pid, lane, ts, "sort_index", lane))
        for thread in trace.threads:
            label = f"thread {thread.tid} ({thread.name})"
            parts.append(_meta_text("thread_name", trace.pid, thread.tid, ts, "name", label))
            parts.append(_meta_text("thread_sort_index", trace.pid, thread.tid, ts, "sort_index", thread.tid))
    return parts


def render(traces: Sequence[Trace]) -> str:
    """One file from one trace, or from several ranks that were merged into one."""
    first = traces[0]
    events = [e for t in traces for e in (*t.host, *t.device_events)]
    start = min(e.start_ns for e in events) - 200_000
    end = max(e.end_ns for e in events) + 150_000
    head: dict[str, Any] = {"schemaVersion": 1}
    head["deviceProperties"] = [first.gpu.properties(i) for i in range(first.devices)] if first.gpu else []
    if first.gpu and not first.gpu.rocm:
        head |= {"cupti_version": 26, "cuda_runtime_version": 12080, "cuda_driver_version": 12080}
    elif first.gpu:
        head |= {"roctracer_version": 4.1, "hip_runtime_version": 60443483, "hip_driver_version": 60443483}
    if first.rank is not None and len(traces) == 1:
        ranks = list(range(first.world_size))
        group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": len(ranks),
                 "ranks": ranks}  # fmt: skip
        head["distributedInfo"] = {"backend": "nccl", "rank": first.rank, "world_size": first.world_size,
                                   "pg_count": 1, "pg_config": [group]}  # fmt: skip
    if first.shapes:
        head["record_shapes"] = 1
    if any(e.cat == "python_function" for e in events):
        head["with_stack"] = 1
    head["traceview_authored"] = f"Written by hand, not measured. {first.note}".strip()
    head |= first.extra
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    parts = [part for trace in traces for part in _body(trace)]
    parts += _labels(traces)
    parts.append(
        f'  {{\n    "ph": "X", "cat": "Trace", "ts": {us_text(start)}, "dur": {us_text(end - start)},\n'
        '    "pid": "Spans", "tid": "PyTorch Profiler",\n    "name": "PyTorch Profiler (0)",\n'
        '    "args": {\n      "Op count": 0\n    }\n  }'
    )
    parts.append(_meta_text("process_sort_index", "Spans", 0, start, "sort_index", 536870912))
    for name, ts in (("Iteration Start: PyTorch Profiler", start), ("Record Window End", end)):
        ids = '"pid": "Traces", "tid": "Trace PyTorch Profiler"' if "Start" in name else '"pid": "", "tid": ""'
        parts.append(f'  {{\n    "name": "{name}", "ph": "i", "s": "g",\n    {ids}, "ts": {us_text(ts)}\n  }}')
    body = ",\n".join(parts)
    trace_id = hashlib.sha256(body.encode()).hexdigest()[:32].upper()
    tail = f'  "traceName": "trace.json",\n  "displayTimeUnit": "ms",\n  "baseTimeNanoseconds": {first.base_ns}\n'
    return (
        "\n{\n"
        + "\n".join(lines)
        + f'\n  "trace_id": "{trace_id}",\n  "traceEvents": [\n'
        + body
        + "\n  ],\n"
        + tail
        + "}"
    )


def write_text(path: Path, text: str) -> Path:
    """Write ``text`` to ``path``, gzip-compressed without a time stamp if the name says so."""
    data = text.encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, 9, mtime=0) if path.suffix == ".gz" else data)
    return path
