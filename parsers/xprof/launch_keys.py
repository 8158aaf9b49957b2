"""One launch number for a host call and the device work that it started, whatever the platform calls the link.

GPUs number launches themselves (``correlation_id``). On TPUs the run of a module and the call that put it into the
queue share a flow id (producer ``_p``, consumer ``_c``) of the type TpuLaunch. XLA on the CPU hands a run to a thread
pool: the task carries a flow id of the type Threadpool from the call that executes the program.

Source: tsl/profiler/lib/context_types.h (types of flows); verified on real profiles.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

import numpy as np

from traceview.building import NO_KEY

from .distinct import distinct_pairs
from .lanes import Lane, Owner, lane_of
from .late_runs import Runs, pair_the_rest
from .rows import KIND, NULL, integers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .rows import PlaneRows

TPU_LAUNCH: Final = 12
THREADPOOL: Final = 15

EXECUTE: Final = ("ExecuteHelper", "::Execute", "ExecuteOnSingleDevice", "ExecuteSharded")
"""Parts of the names of the calls that run a program on the CPU."""

_WAITS_AND_WORK: Final = tuple(KIND[kind] for kind in ("xla_op", "collective", "async_wait", "memcpy", "memset"))


class Numbers:
    """Launch numbers of one file; they start behind those that the file itself uses."""

    def __init__(self, first: int) -> None:
        self._next = first
        self._known: dict[tuple[int, int], int] = {}

    def of(self, kind: int, key: int) -> int:
        """The number of a launch that is known under ``key``."""
        if (kind, key) not in self._known:
            self._known[kind, key] = self._next
            self._next += 1
        return self._known[kind, key]


def link(hosts: list[PlaneRows], devices: list[PlaneRows]) -> dict[str, int]:
    """Set ``correlation`` of calls and of the work that they launched.

    Returns:
        ``tpu-module`` and ``tpu-module-linked``: runs of modules, and those whose call is recorded.
    """
    first = max(
        (int(rows.correlation.max(initial=0)) for rows in (*hosts, *devices) if rows.correlation is not None), default=0
    )
    numbers = Numbers(max(first, 0) + 1)
    counts = _tpu_launches(hosts, [rows for rows in devices if rows.place.owner is Owner.TPU], numbers)
    for rows in hosts:
        _cpu_launches(rows, numbers)
    return counts


def _flows(rows: PlaneRows, kind_stat: str, key_stat: str, wanted: int) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Rows that take part in flows of one type, and the id of each."""
    kinds, keys = integers(rows.plane, kind_stat), integers(rows.plane, key_stat)
    if kinds is None or keys is None:
        return np.empty(0, np.intp), np.empty(0, np.int64)
    at = np.flatnonzero((kinds == wanted) & (keys != NULL))
    return at, keys[at]


def _tpu_launches(hosts: list[PlaneRows], devices: list[PlaneRows], numbers: Numbers) -> dict[str, int]:
    wanted: set[int] = set()
    modules = 0
    for rows in devices:
        at, keys = _flows(rows, "_ct", "_c", TPU_LAUNCH)
        mine = rows.kind[at] == KIND["xla_module"]
        modules += int((rows.kind == KIND["xla_module"]).sum())
        for row, key in zip(at[mine].tolist(), keys[mine].tolist(), strict=True):
            rows.column("correlation")[row] = numbers.of(TPU_LAUNCH, key)
            wanted.add(key)
        _inherit(rows)
    callers: dict[int, tuple[int, PlaneRows, int]] = {}
    for rows in hosts:
        at, keys = _flows(rows, "_pt", "_p", TPU_LAUNCH)
        for row, key in zip(at.tolist(), keys.tolist(), strict=True):
            start = int(rows.start_ns[row])
            # Several events may pass a flow on; the first of them is the launch.
            if key in wanted and (key not in callers or start < callers[key][0]):
                callers[key] = (start, rows, row)
    for key, (_, rows, row) in callers.items():
        rows.column("correlation")[row] = numbers.of(TPU_LAUNCH, key)
        rows.kind[row] = KIND["api"]
    return {"tpu-module": modules, "tpu-module-linked": len(callers)} if modules else {}


def _inherit(rows: PlaneRows) -> None:
    """Give each op the launch of the run of the module that it lies in."""
    if rows.correlation is None:
        return
    correlation = rows.column("correlation")
    modules = np.flatnonzero((rows.kind == KIND["xla_module"]) & (correlation != NULL))
    if not len(modules):
        return
    modules = modules[np.argsort(rows.start_ns[modules], kind="stable")]
    starts, ends = rows.start_ns[modules], rows.start_ns[modules] + rows.dur_ns[modules]
    for line in rows.plane.lines:
        if lane_of(rows.place, line) is not Lane.OPS:
            continue
        ops = np.arange(line.first, line.stop)
        found = np.searchsorted(starts, rows.start_ns[ops], side="right") - 1
        inside = (found >= 0) & (rows.start_ns[ops] < ends[found])
        correlation[ops[inside]] = correlation[modules[found[inside]]]


def _cpu_launches(rows: PlaneRows, numbers: Numbers) -> None:
    """Tie each run of a program on the CPU to the call that executed it.

    The first op of a run lies either within the call itself, or within a task of a thread pool; the task began with a
    mark that consumes a flow whose producer lies within the call.
    """
    plane = rows.plane
    run_id = integers(plane, "run_id")
    ops = np.flatnonzero((rows.device != NO_KEY) & np.isin(rows.kind, _WAITS_AND_WORK))
    if run_id is None or not len(ops):
        return
    ops = ops[run_id[ops] != NULL]
    _, run = distinct_pairs(run_id[ops], rows.device[ops])
    order = np.lexsort((rows.start_ns[ops], run))
    first = ops[order[np.flatnonzero(np.diff(run[order].astype(np.int64), prepend=-1))]]
    callers = _callers(rows, first, run_id[first])
    numbered = np.array([NULL if caller < 0 else numbers.of(-1, caller) for caller in callers.tolist()], np.int64)
    rows.column("correlation")[ops] = numbered[run]
    found = callers >= 0
    rows.column("correlation")[callers[found]] = numbered[found]
    rows.kind[callers[found]] = KIND["api"]


def _callers(rows: PlaneRows, first: NDArray[np.intp], run_ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row of the executing call for the first op of each run, -1 where it is not recorded."""
    line_of = np.repeat(np.arange(len(rows.plane.lines)), [line.stop - line.first for line in rows.plane.lines])
    names = [any(part in entry.name for part in EXECUTE) and "Thunk" not in entry.name for entry in rows.plane.names]
    calls = _ByLine(rows, line_of, np.flatnonzero(np.array(names or [False], np.bool_)[rows.plane.name_of]))
    begun, begun_key = _flows(rows, "_ct", "_c", THREADPOOL)
    made, made_key = _flows(rows, "_pt", "_p", THREADPOOL)
    producer = dict(zip(made_key.tolist(), made.tolist(), strict=True))
    key_of = dict(zip(begun.tolist(), begun_key.tolist(), strict=True))
    tasks = _ByLine(rows, line_of, begun)
    callers = np.full(len(first), -1, np.int64)
    for index, (line, moment) in enumerate(zip(line_of[first].tolist(), rows.start_ns[first].tolist(), strict=True)):
        callers[index] = calls.around(line, moment)
        if callers[index] < 0:
            task = tasks.before(line, moment)
            source = producer.get(key_of[task]) if task >= 0 else None
            if source is not None:
                callers[index] = calls.around(int(line_of[source]), int(rows.start_ns[source]))
    pair_the_rest(rows, line_of, Runs(first, run_ids), callers, np.array(calls.rows(), np.int64))
    return callers


class _ByLine:
    """Some rows, line by line in order of time, for bisection."""

    def __init__(self, rows: PlaneRows, line_of: NDArray[np.intp], chosen: NDArray[np.intp]) -> None:
        self._starts: dict[int, list[int]] = {}
        self._ends: dict[int, list[int]] = {}
        self._rows: dict[int, list[int]] = {}
        durations = rows.dur_ns[chosen]
        order = np.lexsort((-durations, rows.start_ns[chosen], line_of[chosen]))
        chosen = chosen[order]
        starts = rows.start_ns[chosen]
        ends = starts + rows.dur_ns[chosen]
        for row, line, start, end in zip(
            chosen.tolist(), line_of[chosen].tolist(), starts.tolist(), ends.tolist(), strict=True
        ):
            reached = self._ends.setdefault(line, [])
            # A call within another is part of it; what has no length is a mark, and all marks count.
            if reached and start < reached[-1]:
                continue
            reached.append(end)
            self._starts.setdefault(line, []).append(start)
            self._rows.setdefault(line, []).append(row)

    def rows(self) -> list[int]:
        """All of them."""
        return [row for line in self._rows.values() for row in line]

    def before(self, line: int, moment: int) -> int:
        """The last of them that had begun on a line by a moment, -1 for none."""
        at = bisect_right(self._starts.get(line, []), moment) - 1
        return self._rows[line][at] if at >= 0 else -1

    def around(self, line: int, moment: int) -> int:
        """The outermost of them that holds a moment, -1 for none."""
        at = bisect_right(self._starts.get(line, []), moment) - 1
        return self._rows[line][at] if at >= 0 and self._ends[line][at] >= moment else -1
