"""Comparing what the two readers make of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from traceview.parsers.kineto.raw import LABEL_BASE

if TYPE_CHECKING:
    from traceview.parsers.kineto.raw import RawTrace


def with_labels(trace: RawTrace, column: str) -> list[Any]:
    """A pid, tid or flow_id column with its texts put in."""
    end = LABEL_BASE + len(trace.labels)
    return [
        trace.labels[cell - LABEL_BASE] if cell is not None and cell < end else cell for cell in trace.events[column]
    ]


def contents(trace: RawTrace) -> dict[str, Any]:
    """Everything a trace holds, as plain Python values."""
    texts = {name: trace.events[name].cast(pl.String).to_list() for name in ("ph", "cat", "name")}
    numbers = {name: trace.events[name].to_list() for name in ("ts_ns", "dur_ns")}
    labelled = {name: with_labels(trace, name) for name in ("pid", "tid", "flow_id")}
    return {
        **texts,
        **numbers,
        **labelled,
        "int_args": {name: frame.rows() for name, frame in trace.int_args.items()},
        "text_args": {name: frame.cast({"value": pl.String}).rows() for name, frame in trace.text_args.items()},
        "head": dict(trace.head),
        "counts": {kind: count.n for kind, count in trace.counts.items()},
        "truncated": trace.truncated,
        "damage": trace.damage,
        "schema": trace.events.frame().schema,
        "int_schema": [frame.schema for frame in trace.int_args.values()][:1],
    }


def assert_same(fast: RawTrace, plain: RawTrace) -> None:
    """Both hold the same."""
    one, other = contents(fast), contents(plain)
    for key, value in one.items():
        assert value == other[key], key
