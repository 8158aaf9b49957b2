"""Whose event is it: process, thread, device, stream and correlation of each row.

In Kineto a host row carries process and thread; a device row carries the device number in ``pid`` and the stream
in ``tid``, and its process is nowhere. In the usual file there is one process. In a file that merges ranks there
are several, and the process of a device is found from the launches it answers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import polars as pl

from traceview import schema
from traceview.building import NO_KEY, NOT_AN_EVENT, key_series, sparse_column, taken
from traceview.parsers.kineto.about import whole_number
from traceview.parsers.kineto.raw import LABEL_BASE, NULL
from traceview.timeline import Count, Note, Trust

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceview.parsers.kineto.kinds import TextColumn
    from traceview.parsers.kineto.raw import RawTrace

_LAUNCH_FLOWS: Final = ("ac2g", "async_gpu", "async")
_LAUNCHING: Final = re.compile("(?i)runtime|driver")
"""Categories of host calls."""

_AT_A_TIME: Final = 1 << 16

_NEARLY_ALL: Final = 0.9
"""Share of the host rows that makes a process the one of the file."""

_MAX_LABEL: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class Owners:
    """Owner columns of the kept rows, and the lookup frames they point into.

    ``ordinals`` lists the device numbers seen, in the order of the device keys.
    """

    process: pl.Series
    thread: pl.Series
    device: pl.Series
    stream: pl.Series
    correlation: pl.Series
    processes: pl.DataFrame
    threads: pl.DataFrame
    ordinals: tuple[int, ...]
    counts: dict[str, Count] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of the file that are events.

    Attributes:
        of_event: The row of each event.
        event_of: The event of each row, or :data:`~traceview.building.NOT_AN_EVENT`.
        on_device: For each event, whether it lies on a device.
    """

    of_event: NDArray[np.uint32]
    event_of: NDArray[np.uint32]
    on_device: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.of_event)


class SparseInts(NamedTuple):
    """Events that hold a number, and the number of each."""

    ids: NDArray[np.uint32]
    values: NDArray[np.int64]

    def at(self, events: NDArray[np.intp]) -> NDArray[np.int64]:
        """The number of each of some events, given in ascending order; :data:`NULL` where there is none."""
        values = np.full(len(events), NULL, np.int64)
        if len(events):
            place = np.minimum(np.searchsorted(events, self.ids), len(events) - 1)
            known = events[place] == self.ids
            values[place[known]] = self.values[known]
        return values


class _Coded(NamedTuple):
    """A column of few different numbers: these in ascending order, and for each event the index of its own."""

    numbers: NDArray[np.int64]
    codes: NDArray[np.unsignedinteger[Any]]


def find_owners(raw: RawTrace, rows: Rows, cat: TextColumn, ph: TextColumn, *, run: int) -> Owners:
    """Work out the owner of each event.

    Args:
        raw: The file.
        rows: The rows that become events.
        cat: Column ``cat`` of the file.
        ph: Column ``ph`` of the file.
        run: Index of the file in this load.
    """
    on_device = rows.on_device
    device_ids = np.flatnonzero(on_device)
    pid, tid = (_coded(taken(raw.events.array(name), rows.of_event)) for name in ("pid", "tid"))
    correlation = int_arg(raw, "correlation", rows.event_of)
    some = correlation.values != 0  # CUPTI's "none"
    correlation = SparseInts(correlation.ids[some], correlation.values[some])
    counts: dict[str, Count] = {}
    from_flows = _from_flows(raw, rows, cat, ph, pid, tid, correlation)
    if len(from_flows.ids):
        counts["correlation-from-flow"] = Count(len(from_flows.ids))
        correlation = SparseInts(
            np.concatenate((correlation.ids, from_flows.ids)), np.concatenate((correlation.values, from_flows.values))
        )

    # Rows of the recording itself ("Spans", "Traces", pid -1) belong to no process and no thread.
    host = ~on_device & taken(pid.numbers >= 0, pid.codes)
    host_codes = pid.codes[host]
    used = pl.Series(host_codes).unique().sort().to_numpy()
    host_pids = pid.numbers[used]
    process_of_pid = np.zeros(len(pid.numbers), np.uint32)
    process_of_pid[used] = np.arange(len(used), dtype=np.uint32)
    process_of_host = taken(process_of_pid, host_codes)
    device_pid = pid.numbers[pid.codes[device_ids]]
    device_tid = tid.numbers[tid.codes[device_ids]]
    del pid, host_codes
    owner, notes = _device_process(raw, rows, host, device_pid, process_of_host, correlation, len(host_pids))
    process = np.full(len(rows), NO_KEY, np.uint32)
    process[host] = process_of_host
    process[device_ids] = owner
    thread_pairs, thread_of_host = _distinct_pairs(process_of_host, _Coded(tid.numbers, tid.codes[host]))
    del process_of_host, tid
    thread = np.full(len(rows), NO_KEY, np.uint32)
    thread[host] = thread_of_host
    del host, thread_of_host

    ordinal = int_arg(raw, "device", rows.event_of).at(device_ids)
    ordinal = np.where(ordinal < 0, device_pid, ordinal)
    # Two ranks in one file both have a device 0: with several processes a device is (process, ordinal).
    device_pairs, device_of_row = _distinct_pairs(
        owner if len(host_pids) > 1 else np.zeros_like(owner), _coded(ordinal)
    )
    stream = int_arg(raw, "stream", rows.event_of).at(device_ids)
    stream = np.where(stream == NULL, device_tid, stream)

    names = _metadata_names(raw)
    if not len(host_pids) and len(device_ids):
        host_pids = np.array([NULL])  # device rows only: they still belong to one process, its pid unknown
    has_stream = stream != NULL
    return Owners(
        process=key_series(process),
        thread=key_series(thread),
        device=sparse_column(len(rows), device_ids, device_of_row, pl.UInt32),
        stream=sparse_column(len(rows), device_ids[has_stream], stream[has_stream], pl.Int64),
        correlation=sparse_column(len(rows), correlation.ids, correlation.values, pl.Int64),
        processes=_processes(host_pids, names, raw, run),
        threads=_threads(thread_pairs, host_pids, names, raw.labels),
        ordinals=tuple(int(pair[1]) for pair in device_pairs),
        counts=counts,
        notes=tuple(notes),
    )


def int_arg(raw: RawTrace, key: str, event_of_row: NDArray[np.uint32]) -> SparseInts:
    """The events that hold an integer argument, and their values.

    Args:
        raw: The file.
        key: Name of the argument.
        event_of_row: As :func:`traceview.building.events_of_rows` returns it.
    """
    if key not in raw.int_args:
        return SparseInts(np.empty(0, np.uint32), np.empty(0, np.int64))
    frame = raw.int_args[key]
    ids = taken(event_of_row, frame["row"].to_numpy())
    is_event = ids != NOT_AN_EVENT
    return SparseInts(ids[is_event], frame["value"].to_numpy()[is_event])


def _coded(values: NDArray[np.int64]) -> _Coded:
    """The different values, and the index of each row's value. They are few, so no row is sorted."""
    numbers = pl.Series(values).unique().sort().to_numpy()
    kind = np.uint8 if len(numbers) <= 1 << 8 else np.uint16 if len(numbers) <= 1 << 16 else np.uint32
    codes: NDArray[np.unsignedinteger[Any]] = np.zeros(len(values), kind)
    if len(numbers) > 1:
        for begin in range(0, len(values), _AT_A_TIME):
            part = values[begin : begin + _AT_A_TIME]
            codes[begin : begin + _AT_A_TIME] = np.searchsorted(numbers, part)
    return _Coded(numbers, codes)


def _distinct_pairs(
    first: NDArray[np.uint32], second: _Coded
) -> tuple[list[tuple[int, int]], NDArray[np.unsignedinteger[Any]]]:
    """Distinct pairs in ascending order and the index of each row's pair."""
    width = max(len(second.numbers), 1)
    pairs = _coded(first * np.asarray(width, np.int64) + second.codes)
    return [(int(pair // width), int(second.numbers[pair % width])) for pair in pairs.numbers], pairs.codes


def _from_flows(
    raw: RawTrace,
    rows: Rows,
    cat: TextColumn,
    ph: TextColumn,
    pid: _Coded,
    tid: _Coded,
    correlation: SparseInts,
) -> SparseInts:
    """Where no device row carries a correlation, the id of the launch arrow that ends at it, and for calls likewise.

    An arrow runs from (pid, tid, time) of the call to (pid, tid, time) of the device row, with one id.
    """
    none = SparseInts(np.empty(0, np.uint32), np.empty(0, np.int64))
    if not rows.on_device.any() or rows.on_device[correlation.ids].any():
        return none
    is_flow = ph.each(lambda text: int(text in ("s", "f"))) == 1
    is_flow &= cat.each(lambda text: int(text in _LAUNCH_FLOWS)) == 1
    if not is_flow.any():
        return none
    at = pl.Series(np.flatnonzero(is_flow).astype(np.uint32))
    flows = pl.DataFrame([raw.events[name].gather(at) for name in ("ph", "pid", "tid", "ts_ns", "flow_id")])
    flows = flows.filter(pl.col("flow_id").is_not_null()).with_columns(starts=pl.col("ph").cast(pl.String) == "s")
    launches = taken(cat.each(lambda text: int(_LAUNCHING.search(text) is not None)) == 1, rows.of_event)
    asks = launches | rows.on_device
    asks[correlation.ids] = False
    ids = np.flatnonzero(asks)
    places = pl.DataFrame(
        {
            "id": ids.astype(np.uint32),
            "pid": pid.numbers[pid.codes[ids]],
            "tid": tid.numbers[tid.codes[ids]],
            "ts_ns": raw.events.array("ts_ns")[rows.of_event[ids]],
            "starts": ~rows.on_device[ids],
        }
    )
    on = ["pid", "tid", "ts_ns", "starts"]
    found = places.join(flows.drop("ph").unique(on, keep="first", maintain_order=True), on=on, how="inner")
    return SparseInts(found["id"].to_numpy(), found["flow_id"].to_numpy())


def _device_process(
    raw: RawTrace,
    rows: Rows,
    host: NDArray[np.bool_],
    device_pid: NDArray[np.int64],
    host_process: NDArray[np.uint32],
    correlation: SparseInts,
    process_count: int,
) -> tuple[NDArray[np.uint32], list[Note]]:
    """Process of each device row. Several processes: the one whose launches best explain the row's device lane."""
    if process_count <= 1 or not len(device_pid):
        return np.zeros(len(device_pid), np.uint32), []
    starts = taken(raw.events.array("ts_ns"), rows.of_event)
    host_correlation = correlation.at(np.flatnonzero(host))
    device_correlation = correlation.at(np.flatnonzero(rows.on_device))
    host_start, device_start = starts[host], starts[rows.on_device]
    calls = pl.DataFrame({"process": host_process, "correlation": host_correlation, "call_ns": host_start}).filter(
        pl.col("correlation") != NULL
    )
    if calls["process"].n_unique() == 1:
        return np.full(len(device_pid), calls["process"][0], np.uint32), []
    if not calls.height:
        return _without_launches(len(device_pid), host_process)
    work = pl.DataFrame({"lane": device_pid, "correlation": device_correlation, "start_ns": device_start})
    pairs = (
        work.filter(pl.col("correlation") != NULL)
        .join(calls, on="correlation")
        .filter(pl.col("call_ns") <= pl.col("start_ns"))
    )
    # A launch precedes its work by little; a stranger's launch with the same number by an arbitrary time.
    score = (
        pairs.group_by("lane", "process")
        .agg(n=pl.len(), lag_ns=(pl.col("start_ns") - pl.col("call_ns")).median())
        .sort(["lane", "n", "lag_ns", "process"], descending=[False, True, False, False])
    )
    best = score.group_by("lane", maintain_order=True).first()
    owner = dict(zip(best["lane"].to_list(), best["process"].to_list(), strict=True))
    tie = (
        score.join(best.select("lane", best_n="n", best_lag_ns="lag_ns", best_process="process"), on="lane")
        .filter((pl.col("process") != pl.col("best_process")) & (pl.col("n") == pl.col("best_n")))["lane"]
        .n_unique()
    )
    process = np.array([owner.get(int(lane), NO_KEY) for lane in device_pid], np.uint32)
    notes = [
        Note(
            "several-processes",
            f"The file holds {process_count} processes; device lanes were given to the process whose launches they "
            f"answer" + (f" ({tie} of them only by the shorter launch latency)." if tie else "."),
            Trust.LIMITED if tie else Trust.GOOD,
        )
    ]
    homeless = int((process == NO_KEY).sum())
    if homeless:
        notes.append(_homeless(homeless))
    return process, notes


def _without_launches(device_rows: int, host_process: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], list[Note]]:
    """No call tells: the work is that of the process which holds nearly all host rows, or that of none.

    A file of one process has a few rows under the number of a device beside it, which is no process.
    """
    rows = np.bincount(host_process)
    main = int(rows.argmax())
    if rows[main] >= _NEARLY_ALL * rows.sum():
        return np.full(device_rows, main, np.uint32), []
    return np.full(device_rows, NO_KEY, np.uint32), [_homeless(device_rows)]


def _homeless(count: int) -> Note:
    text = f"{count:,} device events answer no launch of any process in the file."
    return Note("device-lane-without-process", text, Trust.LIMITED)


def _metadata_names(raw: RawTrace) -> dict[tuple[str, int, int], str]:
    """``(process_name | thread_name, pid, tid)`` to the name set by the file's metadata rows."""
    if "name" not in raw.text_args:
        return {}
    named = raw.text_args["name"]
    rows = (
        pl.DataFrame([raw.events[name].gather(named["row"]) for name in ("ph", "name", "pid", "tid")])
        .with_columns(named["value"])
        .filter(
            (pl.col("ph").cast(pl.String) == "M")
            & pl.col("name").cast(pl.String).is_in(["process_name", "thread_name"])
        )
    )
    names: dict[tuple[str, int, int], str] = {}
    for what, pid, tid, value in rows.select("name", "pid", "tid", "value").iter_rows():
        if pid is not None:
            names.setdefault((what, pid, tid if what == "thread_name" and tid is not None else 0), value.strip('"'))
    return names


def _label(number: int, labels: tuple[str, ...]) -> str | None:
    index = number - LABEL_BASE
    return labels[index] if 0 <= index < len(labels) else None


def _is_number(value: int) -> bool:
    return value != NULL and not LABEL_BASE <= value < LABEL_BASE + _MAX_LABEL


def _processes(
    pids: NDArray[np.int64], names: dict[tuple[str, int, int], str], raw: RawTrace, run: int
) -> pl.DataFrame:
    distributed = raw.head.get("distributedInfo")
    rank = whole_number(distributed.get("rank")) if isinstance(distributed, dict) else None
    rows = [
        {
            "process": index,
            "run": run,
            "pid": int(pid) if _is_number(pid) else None,
            "name": names.get(("process_name", int(pid), 0)) or _label(int(pid), raw.labels),
            "rank": rank if len(pids) == 1 or _is_number(pid) else None,
        }
        for index, pid in enumerate(pids)
    ]
    return pl.DataFrame(rows, schema=schema.PROCESSES.dtypes)


def _threads(
    pairs: list[tuple[int, int]],
    pids: NDArray[np.int64],
    names: dict[tuple[str, int, int], str],
    labels: tuple[str, ...],
) -> pl.DataFrame:
    rows = [
        {
            "thread": index,
            "process": process,
            "tid": tid if _is_number(tid) else None,
            "name": names.get(("thread_name", int(pids[process]), tid)) or _label(tid, labels),
        }
        for index, (process, tid) in enumerate(pairs)
    ]
    return pl.DataFrame(rows, schema=schema.THREADS.dtypes)
