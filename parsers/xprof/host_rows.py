"""Rows of host planes: calls, waits, compilation, transfers, ranges, and the XLA ops that run on the CPU itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from traceview import intervals
from traceview.building import NO_KEY

from .device_rows import open_control, set_op_kinds
from .distinct import distinct
from .host_events import OP, kind_of
from .lanes import thread_of
from .rows import KIND, has, integers, labels

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from .rows import PlaneRows

END_MARK: Final = "end: "
"""XLA on the CPU writes an instant of this name and the op's behind each op."""

MOST_CPUS: Final = 4096
"""More devices than this one CPU does not pretend to be."""

_SIZES: Final = ("size", "num_bytes", "bytes_transferred", "bytes")
_ALLOCATED: Final = ("allocation_bytes", "requested_bytes")


def fill(rows: PlaneRows, thread_key: Callable[[int | None, str], int], *, first_cpu: int | None) -> dict[str, int]:
    """Give the rows of a host plane their meaning.

    Args:
        rows: The rows.
        thread_key: Key of a thread, by its id and name.
        first_cpu: Key of the first CPU as a device; ``None`` where events with an HLO op are launches of another
            device.

    Returns:
        How many rows of which sort were left out or read in another way.
    """
    plane = rows.plane
    counts: dict[str, int] = {}
    met: dict[tuple[int, str], int] = {}
    for line in plane.lines:
        at = slice(line.first, line.stop)
        number, name = thread_of(plane, line)
        rows.thread[at] = thread_key(number, name)
        codes, inverse = distinct(plane.name_of[at])
        kinds = [met.setdefault((code, name), KIND[kind_of(plane.names[code].name, name)]) for code in codes.tolist()]
        rows.kind[at] = np.array(kinds, np.uint8)[inverse] if len(codes) else rows.kind[at]
    _refine(rows)
    ends = np.array([entry.name.startswith(END_MARK) for entry in plane.names] or [False], np.bool_)[plane.name_of]
    if ends.any():
        rows.keep[ends] = False
        counts["end-mark"] = int(ends.sum())
    _passes(rows)
    repeated = _repeated_calls(rows)
    if repeated.any():
        rows.keep[repeated] = False
        counts["nested-call-mark"] = int(repeated.sum())
    if first_cpu is not None:
        _cpu_ops(rows, first_cpu)
    return counts


def _refine(rows: PlaneRows) -> None:
    """What stats tell beyond the name: launches, steps, sizes."""
    plane = rows.plane
    correlation = integers(plane, "correlation_id")
    if correlation is not None:
        known = correlation > 0
        rows.column("correlation")[known] = correlation[known]
        rows.kind[known & (rows.kind != KIND["sync"])] = KIND["api"]
    rows.kind[has(plane, "_r") & (rows.kind != KIND["api"])] = KIND["annotation"]
    transfers = rows.kind == KIND["memcpy"]
    for names, wanted in ((_SIZES, transfers), (_ALLOCATED, rows.kind == KIND["counter"])):
        for name in reversed(names):
            values = integers(plane, name)
            if values is not None:
                told = wanted & (values >= 0)
                rows.column("bytes")[told] = values[told]


def _passes(rows: PlaneRows) -> None:
    """Make unnamed ranges within a span of compilation part of it: they are the passes of the compiler."""
    spans = rows.kind == KIND["compile"]
    loose = (rows.kind == KIND["annotation"]) | (rows.kind == KIND["other"])
    for line in rows.plane.lines:
        at = slice(line.first, line.stop)
        if not spans[at].any():
            continue
        starts, ends = rows.start_ns[at], rows.start_ns[at] + rows.dur_ns[at]
        merged_starts, merged_ends = intervals.merge(starts[spans[at]], ends[spans[at]])
        holder = np.searchsorted(merged_starts, starts, side="right") - 1
        inside = (holder >= 0) & loose[at] & (rows.dur_ns[at] > 0)
        inside[inside] = ends[inside] <= merged_ends[holder[inside]]
        rows.kind[at][inside] = KIND["compile"]


def _repeated_calls(rows: PlaneRows) -> NDArray[np.bool_]:
    """Marks of a call of a compiled function that lie directly within another mark of the same call.

    The profiler records one call twice, once for Python and once for what it calls.
    """
    plane = rows.plane
    is_call = np.array([bool(OP.match(entry.name)) for entry in plane.names] or [False], np.bool_)
    repeated = np.zeros(len(rows), np.bool_)
    calls = np.flatnonzero(is_call[plane.name_of])
    if len(calls) < 2:
        return repeated
    starts, durations = rows.start_ns[calls], rows.dur_ns[calls]
    order = np.lexsort((-durations, starts, rows.thread[calls]))
    calls, starts, ends = calls[order], starts[order], (starts + durations)[order]
    same = (
        (plane.name_of[calls[1:]] == plane.name_of[calls[:-1]])
        & (rows.thread[calls[1:]] == rows.thread[calls[:-1]])
        & (starts[1:] < ends[:-1])
        & (ends[1:] <= ends[:-1])
    )
    repeated[calls[1:][same]] = True
    return repeated


def _cpu_ops(rows: PlaneRows, first_cpu: int) -> None:
    """Turn XLA ops on host threads into rows of the CPU as a device; its lanes are the threads."""
    plane = rows.plane
    mask = cpu_op_mask(rows)
    if not mask.any():
        return
    ordinals = integers(plane, "device_ordinal")
    number = np.zeros(len(rows), np.int64) if ordinals is None else np.clip(ordinals, 0, MOST_CPUS - 1)
    rows.device[mask] = (first_cpu + number[mask]).astype(np.uint32)
    rows.column("stream")[mask] = rows.thread[mask]
    categories, words = labels(plane, "hlo_category")
    set_op_kinds(rows, mask, categories, words)
    for line in plane.lines:
        inside = np.flatnonzero(mask[line.first : line.stop])
        if len(inside):
            open_control(rows, inside + line.first, categories, words)
    rows.thread[mask] = NO_KEY


def cpu_op_mask(rows: PlaneRows) -> NDArray[np.bool_]:
    """Which host rows are XLA ops that ran on the CPU."""
    plane = rows.plane
    return has(plane, "hlo_op") & ~has(plane, "correlation_id") & rows.keep
