"""Device rows: kernels, copies, fills, graph launches recorded as one block, waits and CUDA events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.parsers.nsys import tables as t
from traceview.parsers.nsys.part import NO_STREAM, NUMBER, Part, correlations, timed
from traceview.timeline import Count

if TYPE_CHECKING:
    from traceview.parsers.nsys.identity import Owners
    from traceview.parsers.nsys.names import Names
    from traceview.parsers.nsys.tables import Tables

# Documented values; old exports have no ENUM_ tables. Nsight Systems documentation, "CUDA memcpy/memory/synchronization
# operation types" (the enumerations of CUPTI), read 2026-11. The words are those of PyTorch's own profiler, so that
# one pattern finds a copy in both.
COPY_KINDS: Final = {
    1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP",
    11: "HtoD (unified memory)", 12: "DtoH (unified memory)", 13: "DtoD (unified memory)",
}  # fmt: skip
MEMORY_KINDS: Final = {
    0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device Static", 6: "Managed Static",
    7: "Unknown",
}  # fmt: skip
WAITS: Final = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}

PLACE: Final = ("deviceId", "streamId", "correlationId", "globalPid")

COLUMNS: Final = {
    t.KERNEL: ("start", "end", *PLACE, "demangledName"),
    t.MEMCPY: ("start", "end", *PLACE, "bytes", "copyKind", "srcKind", "dstKind"),
    t.MEMSET: ("start", "end", *PLACE, "bytes", "memKind"),
    t.SYNCHRONIZATION: ("start", "end", *PLACE, "syncType"),
    t.GRAPH_TRACE: ("start", "end", *PLACE, "graphId", "graphExecId"),
    t.CUDA_EVENT: ("timestamp", *PLACE, "eventId"),
}
"""Table to the columns that are read of it at once; the rest are details, read when asked for."""


def kernels(frame: pl.DataFrame, names: Names, owners: Owners) -> Part:
    """Kernels under their full name: the short one is the same for every template instance."""
    part, frame = _placed(t.KERNEL, frame, "kernel", owners)
    part.columns["name"] = names.categorical(frame["demangledName"], what="kernel")
    return part


def with_known_names(frame: pl.DataFrame, tables: Tables, names: Names) -> pl.DataFrame:
    """Kernels whose full name is not in the export go by their short or mangled one.

    A filtered or simplified export may lack the column, and a damaged one the string.
    """
    for column in ("shortName", "mangledName"):
        lost = names.unknown(frame["demangledName"])
        if not lost.any():
            break
        other = tables.read(t.KERNEL, (column,))[column]
        if len(other) == frame.height and other.null_count() < frame.height:
            names.add(tables, other.filter(lost))
            better = lost & ~names.unknown(other)
            frame = frame.with_columns(demangledName=other.zip_with(better, frame["demangledName"]))
    return frame


def copies(frame: pl.DataFrame, owners: Owners) -> Part:
    """Copies, named like ``Memcpy HtoD (Pageable -> Device)``."""
    part, frame = _placed(t.MEMCPY, frame, "memcpy", owners)
    unknown = _unknown(frame["copyKind"], {0, *COPY_KINDS}, "copyKind", part)
    words = frame.select(
        name=pl.concat_str(
            pl.lit("Memcpy "),
            _word("copyKind", COPY_KINDS, "of unknown kind"),
            pl.lit(" ("),
            _word("srcKind", MEMORY_KINDS, "Unknown"),
            pl.lit(" -> "),
            _word("dstKind", MEMORY_KINDS, "Unknown"),
            pl.lit(")"),
        ).cast(pl.Categorical)
    )
    part.columns["name"], part.columns["bytes"] = words["name"], frame["bytes"]
    part.counts.update(unknown)
    return part


def fills(frame: pl.DataFrame, owners: Owners) -> Part:
    """Fills, named like ``Memset (Device)``."""
    part, frame = _placed(t.MEMSET, frame, "memset", owners)
    part.counts.update(_unknown(frame["memKind"], set(MEMORY_KINDS), "memKind", part))
    part.columns["name"] = frame.select(
        name=pl.concat_str(pl.lit("Memset ("), _word("memKind", MEMORY_KINDS, "Unknown"), pl.lit(")"))
    )["name"].cast(pl.Categorical)
    part.columns["bytes"] = frame["bytes"]
    return part


def waits(frame: pl.DataFrame, owners: Owners) -> Part:
    """Synchronisation as CUPTI records it. It is a wait, so it never makes a device busy."""
    part, frame = _placed(t.SYNCHRONIZATION, _on_own_device(frame, owners), "sync", owners)
    part.counts.update(_unknown(frame["syncType"], {0, *WAITS}, "syncType", part))
    part.columns["name"] = frame.select(name=_word("syncType", WAITS, "Sync"))["name"].cast(pl.Categorical)
    return part


def _on_own_device(frame: pl.DataFrame, owners: Owners) -> pl.DataFrame:
    """The device of a wait: that of its process, if it works on only one.

    Waits for events carry device 0 in every process (seen in exports of 2026).
    """
    worked = owners.ordinals_by_process()
    only = {pid: next(iter(ordinals)) for pid, ordinals in worked.items() if len(ordinals) == 1}
    if not only:
        return frame
    own = pl.col("globalPid").replace_strict(only, default=None, return_dtype=pl.Int64)
    return frame.with_columns(deviceId=pl.coalesce(own, "deviceId"))


def graphs(frame: pl.DataFrame, owners: Owners) -> Part:
    """Graph launches recorded as one block each (``--cuda-graph-trace=graph``)."""
    part, frame = _placed(t.GRAPH_TRACE, frame, "graph", owners)
    part.columns["name"] = frame.select(
        name=pl.concat_str(pl.lit("CUDA graph "), pl.coalesce("graphId", "graphExecId").cast(pl.String).fill_null("?"))
    )["name"].cast(pl.Categorical)
    return part


def cuda_events(frame: pl.DataFrame, owners: Owners) -> Part:
    """Recorded CUDA events as instants. Time 0 means that the time was not collected."""
    timeless = int((frame["timestamp"].fill_null(0) == 0).sum())
    known = frame.with_columns(
        start=pl.when(pl.col("timestamp") != 0).then(pl.col("timestamp")),
        end=pl.when(pl.col("timestamp") != 0).then(pl.col("timestamp")),
    )
    part, known = _placed(t.CUDA_EVENT, known, "other", owners)
    part.counts.pop("lost-without-start", None)
    if timeless:
        part.counts["event-without-time"] = Count(timeless, "CUDA event whose time was not collected")
    part.columns["name"] = pl.Series(["CUDA event"]).cast(pl.Categorical).new_from_index(0, known.height)
    return part


def opaque_twice(parts: dict[str, Part]) -> dict[str, Count]:
    """Make graph blocks whose kernels are recorded too of kind ``other``: the same work must not count twice."""
    graph = parts.get(t.GRAPH_TRACE)
    kernel = parts.get(t.KERNEL)
    if graph is None or kernel is None or not graph.height:
        return {}
    key = ["process", "correlation"]
    own = pl.DataFrame({name: graph.columns[name] for name in key}).with_row_index("at")
    nodes = pl.DataFrame({name: kernel.columns[name] for name in key}).unique()
    twice = own.join(nodes, on=key, how="inner")["at"].to_numpy()
    if not len(twice):
        return {}
    graph.kind[twice] = NUMBER["other"]
    return {"graph-and-nodes": Count(len(twice), "a graph launch recorded as a block and node by node")}


def _placed(table: str, frame: pl.DataFrame, kind: str, owners: Owners) -> tuple[Part, pl.DataFrame]:
    """Times, process, device, stream and correlation of device rows. A row without an end is an instant."""
    part, frame = timed(table, frame, kind)
    at_zero = (frame["start"] == 0) & (frame["end"] == 0)
    if at_zero.any():
        # The session starts long before the first call of CUDA: CUPTI writes 0 for a time that it does not know.
        part.counts["lost-time-zero"] = Count(int(at_zero.sum()), table)
        part.keep(~at_zero.to_numpy())
        frame = frame.filter(~at_zero)
    if part.open_end is not None:
        part.counts["duration-missing"] = Count(int(part.open_end.sum()), table)
        part.open_end = None
    stream = frame["streamId"]
    part.columns["process"] = owners.processes_of(frame["globalPid"])
    part.columns["device"] = owners.devices_of(frame["globalPid"], frame["deviceId"])
    part.columns["stream"] = stream.set(stream == NO_STREAM, None) if (stream == NO_STREAM).any() else stream
    part.columns["correlation"] = correlations(frame["correlationId"])
    return part, frame


def _word(column: str, words: dict[int, str], otherwise: str) -> pl.Expr:
    return pl.col(column).replace_strict(words, default=otherwise, return_dtype=pl.String).fill_null(otherwise)


def _unknown(values: pl.Series, known: set[int], column: str, part: Part) -> dict[str, Count]:
    """Values of an enumeration that are newer than this reader."""
    distinct = values.drop_nulls().unique()
    new = sorted(set(distinct.to_list()) - known)
    if not new:
        return {}
    before = part.counts.get("unknown-value", Count(0))
    number = int(values.is_in(new).sum())
    return {"unknown-value": Count(before.n + number, before.example or f"{part.table}.{column} {new[0]}")}


def device_of_kernel_pairs(frames: dict[str, pl.DataFrame]) -> set[tuple[int, int]]:
    """``(pid, ordinal)`` of every process that used a device."""
    pairs: set[tuple[int, int]] = set()
    for table in t.WORK_TABLES:
        if table in frames:
            distinct = frames[table].select("globalPid", "deviceId").drop_nulls().unique()
            pairs |= {((pid >> 24) & 0xFFFFFF, ordinal) for pid, ordinal in distinct.iter_rows()}
    return pairs
