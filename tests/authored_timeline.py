"""Small timelines written by hand: a list of events in, a built and linked Timeline out.

Times are in microseconds so that tables in tests stay readable; the timeline has nanoseconds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from traceview import schema
from traceview.building import Lookups, build
from traceview.linking import finish
from traceview.timeline import ImportReport, RunInfo, Timeline


@dataclass(frozen=True)
class Event:
    kind: str
    name: str
    start_us: float
    end_us: float
    process: int | None = 0
    thread: int | None = None
    device: int | None = None
    stream: int | None = None
    correlation: int | None = None
    dims: Any = None
    dtypes: Any = None
    details: dict[str, int] = field(default_factory=dict)


def op(name: str, start_us: float, end_us: float, *, thread: int = 0, **more: Any) -> Event:
    return Event("op", name, start_us, end_us, thread=thread, **more)


def host(kind: str, name: str, start_us: float, end_us: float, *, thread: int = 0, **more: Any) -> Event:
    return Event(kind, name, start_us, end_us, thread=thread, **more)


def launch(at_us: float, correlation: int, *, name: str = "cudaLaunchKernel", thread: int = 0, **more: Any) -> Event:
    return Event("api", name, at_us, at_us + 1, thread=thread, correlation=correlation, **more)


def kernel(
    name: str,
    start_us: float,
    end_us: float,
    correlation: int | None = None,
    *,
    device: int = 0,
    stream: int = 7,
    **more: Any,
) -> Event:
    more.setdefault("kind", "kernel")
    return Event(
        name=name, start_us=start_us, end_us=end_us, correlation=correlation, device=device, stream=stream, **more
    )


def unlinked(*events: Event) -> Timeline:
    """As a parser would build it."""
    signatures: dict[tuple[str | None, str | None], int] = {}
    keys = []
    for event in events:
        if event.dims is None and event.dtypes is None:
            keys.append(None)
        else:
            text = tuple(None if part is None else json.dumps(part) for part in (event.dims, event.dtypes))
            keys.append(signatures.setdefault(text, len(signatures)))  # type: ignore[arg-type]
    columns = {
        "start_ns": pl.Series([round(e.start_us * 1000) for e in events], dtype=pl.Int64),
        "dur_ns": pl.Series([round((e.end_us - e.start_us) * 1000) for e in events], dtype=pl.Int64),
        "kind": pl.Series([e.kind for e in events], dtype=schema.Kind),
        "name": pl.Series([e.name for e in events], dtype=pl.Categorical),
        "process": pl.Series([e.process for e in events], dtype=pl.UInt32),
        "thread": pl.Series([e.thread for e in events], dtype=pl.UInt32),
        "device": pl.Series([e.device for e in events], dtype=pl.UInt32),
        "stream": pl.Series([e.stream for e in events], dtype=pl.Int64),
        "correlation": pl.Series([e.correlation for e in events], dtype=pl.Int64),
        "inputs": pl.Series(keys, dtype=pl.UInt32),
    }
    details: dict[str, list[tuple[int, int]]] = {}
    for row, event in enumerate(events):
        for key, value in event.details.items():
            details.setdefault(key, []).append((row, value))
    threads = sorted({(e.thread, e.process) for e in events if e.thread is not None})
    processes = sorted({e.process for e in events if e.process is not None})
    devices = sorted({e.device for e in events if e.device is not None})
    return build(
        columns,
        event_rows=np.arange(len(events)),
        row_count=len(events),
        details={
            key: pl.DataFrame(rows, schema={"row": pl.UInt32, "value": pl.Int64}, orient="row")
            for key, rows in details.items()
        },
        lookups=Lookups(
            processes=pl.DataFrame(
                [{"process": p, "run": 0, "pid": 100 + p} for p in processes], schema=schema.PROCESSES.dtypes
            ),
            threads=pl.DataFrame(
                [{"thread": t, "process": p, "tid": 1000 + t} for t, p in threads], schema=schema.THREADS.dtypes
            ),
            devices=pl.DataFrame(
                [{"device": d, "run": 0, "ordinal": d, "name": "NVIDIA H100", "vendor": "nvidia"} for d in devices],
                schema=schema.DEVICES.dtypes,
            ),
            inputs=pl.DataFrame(
                [{"inputs": key, "dims": dims, "dtypes": dtypes} for (dims, dtypes), key in signatures.items()],
                schema=schema.INPUTS.dtypes,
            ),
        ),
        run=RunInfo(Path("authored.json"), "authored", "a test"),
        report=ImportReport(),
    )


def timeline(*events: Event) -> Timeline:
    """Built and linked, as `traceview.load` returns it."""
    built = unlinked(*events)
    built.validate()
    linked = finish(built)
    linked.validate()
    return linked


def names(frame: Timeline, column: str) -> dict[str, str | None]:
    """Event name to the name of the event that an id column points to."""
    events = frame.events
    pointed = [None if i is None else events["name"][i] for i in events[column]]
    return dict(zip(events["name"], pointed, strict=True))
