"""Host rows other than NVTX: calls of the CUDA runtime and driver, of libraries and the system, and overhead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview.parsers.nsys import tables as t
from traceview.parsers.nsys.identity import process_part
from traceview.parsers.nsys.part import NUMBER, Part, correlations, timed
from traceview.timeline import Count

if TYPE_CHECKING:
    from traceview.parsers.nsys.identity import Owners
    from traceview.parsers.nsys.names import Names

COLUMNS: Final = {
    t.RUNTIME: ("start", "end", "eventClass", "globalTid", "correlationId", "nameId"),
    t.CUPTI_OVERHEAD: ("start", "end", "globalTid", "nameId", "overheadType"),
    t.PROFILER_OVERHEAD: ("start", "end", "globalTid", "nameId", "overheadType"),
    t.OSRT: ("start", "end", "globalTid", "nameId"),
    t.CUBLAS: ("start", "end", "globalTid", "nameId"),
    t.CUDNN: ("start", "end", "globalTid", "nameId"),
    t.JIT: ("start", "end", "globalTid", "nameId", "overheadType"),
    t.HOST_CALLBACK: ("start", "end", "globalTid", "nameId"),
    t.GRAPH_NODES: ("start", "end", "globalTid", "nameId"),
    **dict.fromkeys((*t.MPI, *t.UCP), ("start", "end", "globalTid", "textId")),
}
"""Table to the columns that are read of it at once."""

KINDS: Final = {
    t.CUPTI_OVERHEAD: "overhead",
    t.PROFILER_OVERHEAD: "overhead",
    t.OSRT: "other",
    t.CUBLAS: "api",
    t.CUDNN: "api",
    t.JIT: "overhead",
    t.HOST_CALLBACK: "other",
    t.GRAPH_NODES: "other",
    # Before they had tables of their own, calls of MPI were ranges of NVTX; so they are read alike.
    **dict.fromkeys(t.MPI, "annotation"),
    **dict.fromkeys(t.UCP, "other"),
}

OVERHEAD_WORDS: Final = {
    2: "Driver compiler", 3: "CUPTI buffer flush", 4: "CUPTI instrumentation", 5: "CUPTI resource",
    6: "Runtime triggered module loading", 7: "Lazy function loading", 8: "Command buffer full",
}  # fmt: skip
"""``overheadType`` of rows without a name; in exports since 2025 ``nameId`` may be null. The numbers are those of
``ENUM_CUPTI_OVERHEAD_TYPE`` in exports of 2026, and not those of CUPTI itself."""

_SAID: Final = {t.JIT: "JIT compilation", t.HOST_CALLBACK: "host function", t.GRAPH_NODES: "graph node"}
"""What a row is called that has no name by the schema."""

CALL_CLASSES: Final = (0, 1, 13, 26)
"""``eventClass`` of calls: CUDA runtime, CUDA driver, EGL, and CUDA API without saying which."""

BACKTRACE_CLASS: Final = 67
"""With ``--cudabacktrace`` each call has a second row under this class, with the same correlation."""

SYNC_CALL: Final = re.compile(r"^(cuda|cu)\w*Synchronize(_\w+)?$")
"""Calls that block the host until the device is done."""

_VERSION: Final = re.compile(r"_v\d{4,5}$")
"""Runtime calls carry the version of CUDA that introduced them, ``cudaLaunchKernel_v7000``; a driver's own ``_v2``
is part of its name."""


def plain_name(name: str) -> str:
    """The name of a call without the version that the profiler adds."""
    return _VERSION.sub("", name)


def calls(frame: pl.DataFrame, names: Names, owners: Owners) -> Part:
    """Runtime and driver calls, which one table holds together."""
    part, frame = timed(t.RUNTIME, frame, "api")
    _end_at_once(part)
    event_class = frame["eventClass"]
    distinct = set(event_class.unique().to_list())
    if BACKTRACE_CLASS in distinct:
        # Each repeats the call of its correlation, so joined with it every kernel would count twice.
        repeated = (event_class == BACKTRACE_CLASS).fill_null(value=False)
        part.counts["backtrace-row"] = Count(int(repeated.sum()), "second row of a call, from --cudabacktrace")
        part.keep(~repeated.to_numpy())
        frame = frame.filter(~repeated)
        event_class = frame["eventClass"]
    part.columns["name"] = names.categorical(frame["nameId"], what="call", clean=plain_name)
    correlation = correlations(frame["correlationId"])
    other = distinct - {*CALL_CLASSES, BACKTRACE_CLASS, None}
    if other:
        # Creation of graph nodes and whatever comes later: kept, but not taken for the launch of anything.
        strange = event_class.is_in(sorted(other)).fill_null(value=False)
        part.counts["other-call-class"] = Count(int(strange.sum()), f"eventClass {min(other)}")
        part.kind[strange.to_numpy()] = NUMBER["other"]
        correlation = correlation.set(strange, None)
    part.columns["correlation"] = correlation
    _own(part, frame, owners)
    _mark_waits(part)
    return part


def _mark_waits(part: Part) -> None:
    named = part.columns["name"]
    blocking = [name for name in named.unique().cast(pl.String) if SYNC_CALL.match(name)]
    if blocking:
        waits = named.is_in(pl.Series(blocking).cast(pl.Categorical).implode()).to_numpy()
        part.kind[waits & (part.kind == NUMBER["api"])] = NUMBER["sync"]


def ranges(table: str, frame: pl.DataFrame, names: Names, owners: Owners) -> Part:
    """A table of named intervals on host threads."""
    part, frame = timed(table, frame, KINDS[table])
    ids = frame["textId" if "textId" in frame.columns else "nameId"]
    if ids.null_count() and ("overheadType" in frame.columns or table in _SAID):
        part.columns["name"] = _names_or_sort(table, frame, ids, names)
    else:
        part.columns["name"] = names.categorical(ids, what=table)
    if table in (*t.MPI, *t.UCP):
        if part.open_end is not None:
            part.counts["open-range"] = Count(int(part.open_end.sum()), f"a row of {table} without an end")
    else:
        _end_at_once(part)
    _own(part, frame, owners)
    return part


def _end_at_once(part: Part) -> None:
    """Calls always have an end; one that is missing was lost, so the call is an instant and encloses nothing."""
    if part.open_end is not None:
        part.counts["call-without-end"] = Count(int(part.open_end.sum()), part.table)
        part.open_end = None


def _names_or_sort(table: str, frame: pl.DataFrame, ids: pl.Series, names: Names) -> pl.Series:
    """Names, and where the schema allows for none the sort of the row."""
    said = pl.Series([_SAID.get(table, "overhead")], dtype=pl.Categorical).new_from_index(0, frame.height)
    if "overheadType" in frame.columns:
        words = frame["overheadType"].replace_strict(OVERHEAD_WORDS, default=None, return_dtype=pl.String)
        said = words.cast(pl.Categorical).zip_with(words.is_not_null(), said)
    named = ids.is_not_null()
    full = said.clone()
    if named.any():
        at = named.arg_true()
        full = full.cast(pl.String).scatter(at, names.categorical(ids.gather(at), what=table).cast(pl.String))
        full = full.cast(pl.Categorical)
    return full


def _own(part: Part, frame: pl.DataFrame, owners: Owners) -> None:
    part.columns["thread"] = owners.threads_of(frame["globalTid"])
    part.columns["process"] = owners.processes_of(process_part(frame["globalTid"]))


def drop_repeated(parts: dict[str, Part]) -> None:
    """Drop what a second table repeats: overhead of the profiler, and calls of MPI that are ranges of NVTX too."""
    _drop_repeated(parts, t.CUPTI_OVERHEAD, t.PROFILER_OVERHEAD, "repeated-overhead", "overhead that is in two tables")
    for table in t.MPI:
        _drop_repeated(parts, t.NVTX, table, "repeated-range", f"a row of {table} that is a range too")


def _drop_repeated(parts: dict[str, Part], kept: str, dropped: str, kind: str, example: str) -> None:
    one, two = parts.get(kept), parts.get(dropped)
    if one is None or two is None or not one.height or not two.height:
        return
    key = ["start_ns", "dur_ns", "thread", "name"]
    first = pl.DataFrame({name: one.columns[name] for name in key})
    second = pl.DataFrame({name: two.columns[name] for name in key}).with_row_index("at")
    again = second.join(first, on=key, how="semi")["at"].to_numpy()
    if len(again):
        mask = np.ones(two.height, np.bool_)
        mask[again] = False
        two.keep(mask)
        two.counts[kind] = Count(len(again), example)
