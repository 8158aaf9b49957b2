"""Whose event is it: process, thread, device, stream and correlation of each row.

In Kineto a host row carries process and thread; a device row carries the device number in ``pid`` and the stream
in ``tid``, and its process is nowhere. In the usual file there is one process. In a file that merges ranks there
are several, and the process of a device is found from the launches it answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import schema
from traceview.building import NO_KEY, key_series
from traceview.parsers.kineto.about import whole_number
from traceview.parsers.kineto.raw import LABEL_BASE
from traceview.timeline import Count, Note, Trust

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceview.parsers.kineto.raw import RawTrace

NULL: Final = np.iinfo(np.int64).min
"""Stands for a missing integer while columns are arrays."""

_LAUNCH_FLOWS: Final = ("ac2g", "async_gpu", "async")
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


def find_owners(raw: RawTrace, rows: NDArray[np.uint32], on_device: NDArray[np.bool_], *, run: int) -> Owners:
    """Work out the owner of each kept row.

    Args:
        raw: The file.
        rows: The rows that become events, ascending.
        on_device: For each of them, whether it lies on a device.
        run: Index of the file in this load.
    """
    pid = raw.events["pid"].fill_null(NULL).to_numpy()[rows]
    tid = raw.events["tid"].fill_null(NULL).to_numpy()[rows]
    correlation = int_arg(raw, "correlation", rows)
    correlation[correlation == 0] = NULL  # CUPTI's "none"
    counts: dict[str, Count] = {}
    filled = _fill_from_flows(raw, rows, on_device, pid, tid, correlation)
    if filled:
        counts["correlation-from-flow"] = Count(filled)

    # Rows of the recording itself ("Spans", "Traces", pid -1) belong to no process and no thread.
    host = ~on_device & (pid >= 0)
    host_pids, process_of_host = _distinct(pid[host])
    device_pid = pid[on_device]
    owner, notes = _device_process(raw, rows, on_device, host, device_pid, process_of_host, correlation, len(host_pids))
    process = np.full(len(rows), NO_KEY, np.uint32)
    process[host] = process_of_host
    process[on_device] = owner
    thread_pairs, thread_of_host = _distinct_pairs(process_of_host, tid[host])
    thread = np.full(len(rows), NO_KEY, np.uint32)
    thread[host] = thread_of_host

    ordinal = int_arg(raw, "device", rows[on_device])
    ordinal = np.where(ordinal < 0, device_pid, ordinal)
    # Two ranks in one file both have a device 0: with several processes a device is (process, ordinal).
    device_pairs, device_of_row = _distinct_pairs(owner if len(host_pids) > 1 else np.zeros_like(owner), ordinal)
    device = np.full(len(rows), NO_KEY, np.uint32)
    device[on_device] = device_of_row
    tid_on_device = tid[on_device]
    del pid, tid, host
    stream = np.full(len(rows), NULL, np.int64)
    recorded = int_arg(raw, "stream", rows[on_device])
    stream[on_device] = np.where(recorded == NULL, tid_on_device, recorded)

    names = _metadata_names(raw)
    if not len(host_pids) and on_device.any():
        host_pids = np.array([NULL])  # device rows only: they still belong to one process, its pid unknown
    return Owners(
        process=key_series(process),
        thread=key_series(thread),
        device=key_series(device),
        stream=nullable(stream),
        correlation=nullable(correlation),
        processes=_processes(host_pids, names, raw, run),
        threads=_threads(thread_pairs, host_pids, names, raw.labels),
        ordinals=tuple(int(pair[1]) for pair in device_pairs),
        counts=counts,
        notes=tuple(notes),
    )


def nullable(values: NDArray[np.int64]) -> pl.Series:
    """Integers as a column, :data:`NULL` as null."""
    column = pl.Series(values)
    return column.set(column == NULL, None) if (values == NULL).any() else column


def int_arg(raw: RawTrace, key: str, rows: NDArray[np.uint32]) -> NDArray[np.int64]:
    """An integer argument of the kept rows, :data:`NULL` where it is absent."""
    values = np.full(len(rows), NULL, np.int64)
    if key in raw.int_args and len(rows):
        frame = raw.int_args[key]
        wanted = frame["row"].to_numpy()
        place = np.minimum(np.searchsorted(rows, wanted), len(rows) - 1)
        kept = rows[place] == wanted
        values[place[kept]] = frame["value"].to_numpy()[kept]
    return values


def _distinct(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """The distinct values in ascending order, and the index of each row's value. They are few, so no row is sorted."""
    distinct = pl.Series(values).unique().sort().to_numpy()
    if len(distinct) <= 1:
        return distinct, np.zeros(len(values), np.uint32)
    return distinct, np.searchsorted(distinct, values).astype(np.uint32)


def _distinct_pairs(
    first: NDArray[np.uint32], second: NDArray[np.int64]
) -> tuple[list[tuple[int, int]], NDArray[np.uint32]]:
    """Distinct pairs in ascending order and the index of each row's pair."""
    seconds, index = _distinct(second)
    width = max(len(seconds), 1)
    pairs, key = _distinct(first.astype(np.int64) * width + index)
    return [(int(pair // width), int(seconds[pair % width])) for pair in pairs], key


def _fill_from_flows(
    raw: RawTrace,
    rows: NDArray[np.uint32],
    on_device: NDArray[np.bool_],
    pid: NDArray[np.int64],
    tid: NDArray[np.int64],
    correlation: NDArray[np.int64],
) -> int:
    """Where no device row carries a correlation, take the id of the launch arrow that ends at it.

    An arrow runs from (pid, tid, time) of the call to (pid, tid, time) of the device row, with one id.

    Returns:
        How many rows got one.
    """
    if not on_device.any() or (correlation[on_device] != NULL).any():
        return 0
    flows = raw.events.filter(
        pl.col("ph").cast(pl.String).is_in(["s", "f"])
        & pl.col("cat").cast(pl.String).is_in(list(_LAUNCH_FLOWS))
        & pl.col("flow_id").is_not_null()
    ).select("pid", "tid", "ts_ns", "flow_id", starts=pl.col("ph").cast(pl.String) == "s")
    if not flows.height:
        return 0
    places = pl.DataFrame(
        {
            "index": np.arange(len(rows)),
            "pid": pid,
            "tid": tid,
            "ts_ns": raw.events["ts_ns"].to_numpy()[rows],
            "starts": ~on_device,
            "launches": (
                raw.events["cat"].cast(pl.String).str.contains("(?i)runtime|driver").fill_null(value=False)
            ).to_numpy()[rows],
        }
    ).filter(pl.col("launches") | ~pl.col("starts"))
    on = ["pid", "tid", "ts_ns", "starts"]
    found = places.join(flows.unique(on, keep="first", maintain_order=True), on=on, how="inner")
    found = found.filter(pl.Series(correlation[found["index"].to_numpy()] == NULL))
    correlation[found["index"].to_numpy()] = found["flow_id"].to_numpy()
    return found.height


def _device_process(
    raw: RawTrace,
    rows: NDArray[np.uint32],
    on_device: NDArray[np.bool_],
    host: NDArray[np.bool_],
    device_pid: NDArray[np.int64],
    host_process: NDArray[np.uint32],
    correlation: NDArray[np.int64],
    process_count: int,
) -> tuple[NDArray[np.uint32], list[Note]]:
    """Process of each device row. Several processes: the one whose launches best explain the row's device lane."""
    if process_count <= 1 or not len(device_pid):
        return np.zeros(len(device_pid), np.uint32), []
    starts = raw.events["ts_ns"].to_numpy()[rows]
    host_correlation, device_correlation = correlation[host], correlation[on_device]
    host_start, device_start = starts[host], starts[on_device]
    calls = pl.DataFrame({"process": host_process, "correlation": host_correlation, "call_ns": host_start}).filter(
        pl.col("correlation") != NULL
    )
    if calls["process"].n_unique() <= 1:
        only = int(calls["process"][0]) if calls.height else 0
        return np.full(len(device_pid), only, np.uint32), []
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
        notes.append(
            Note(
                "device-lane-without-process",
                f"{homeless:,} device events answer no launch of any process in the file.",
                Trust.LIMITED,
            )
        )
    return process, notes


def _metadata_names(raw: RawTrace) -> dict[tuple[str, int, int], str]:
    """``(process_name | thread_name, pid, tid)`` to the name set by the file's metadata rows."""
    if "name" not in raw.text_args:
        return {}
    named = raw.text_args["name"]
    rows = (
        raw.events[named["row"]]
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
