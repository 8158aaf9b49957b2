"""What an export says about itself: who wrote it, when, what was traced, what the profiler lost.

Of the metadata only the keys named here are looked at. Environment, command line, user, host, addresses and paths are
in the same tables and are never read into anything that is kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from traceview.parsers.nsys import tables as t
from traceview.timeline import Count, Note, Trust

if TYPE_CHECKING:
    from collections.abc import Collection

    from traceview.parsers.nsys.tables import Tables

KNOWN_MAJORS: Final = (1, 2, 3)
"""Major schema versions whose tables this reader knows. A new major may change anything."""

_EXPORT_KEYS: Final = (
    "EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION", "EXPORT_PARAM_TIME_NORMALIZE", "EXPORT_PARAM_TABLES_TO_EXPORT",
    "EXPORT_PARAM_TIMES_TO_EXPORT",
)  # fmt: skip
_CAPTURE_KEYS: Final = ("CAPTURE_EVENT_TYPE", "CUDA_GRAPH_TRACE_OPTIONS:MODE", "CUDA_SKIP_SOME_API_CALLS")
_SYSTEM_KEYS: Final = {"CudaDriverVersion": "cuda_driver_version", "NvDriverVersion": "nvidia_driver_version"}
KEPT_KEYS: Final = frozenset({*_EXPORT_KEYS, *_CAPTURE_KEYS, *_SYSTEM_KEYS})
"""The keys of metadata that are looked at."""
_PLAIN_VALUE: Final = re.compile(r"^[0-9A-Za-z.:_+/ -]{1,40}$")

_LOSSES: Final = (
    (r"Not all CUDA events might have been collected", "CUDA events"),
    (r"Not all NVTX events might have been collected", "NVTX events"),
    (r"Some CUPTI events might be missing", "CUPTI events"),
    (r"(?:events?|records?) (?:were|was|have been|are) (?:lost|dropped|discarded)", "events"),
    (r"(?:buffer|storage) (?:is |was )?(?:full|exhausted|overflow)", "events, because a buffer was full"),
)
"""Pattern of a message of the profiler to what it says may be missing. Messages seen in exports of 2022 to 2026."""
_OLD_PROFILER: Final = r"is not supported by this build of Nsight Systems"


@dataclass(frozen=True, slots=True)
class About:
    """Facts of one export.

    Attributes:
        version: Version of Nsight Systems, ``None`` if the export does not say.
        schema: Version of the schema, likewise.
        unix_zero_ns: Unix time of the session's start, ``None`` if unknown; 0 if times are Unix times already.
        duration_ns: Length of the session, ``None`` if unknown.
        captured: What was traced (``Cuda``, ``NvtxEvents``, …); ``None`` if the export does not say.
        graph_mode: ``graph`` or ``node``; ``None`` if the export does not say.
        metadata: What may be shown of all this.
        notes: What must be said of it.
        counts: Messages of the profiler by severity.
    """

    version: str | None
    schema: str | None
    unix_zero_ns: int | None
    duration_ns: int | None
    captured: frozenset[str] | None
    graph_mode: str | None
    metadata: dict[str, Any]
    notes: tuple[Note, ...]
    counts: dict[str, Count] = field(default_factory=dict)


def read_about(tables: Tables) -> About:
    """Read the facts of an export."""
    export = _pairs(tables, ("META_DATA_EXPORT", "EXPORT_META_DATA"), _EXPORT_KEYS)
    capture = _pairs(tables, ("META_DATA_CAPTURE",), _CAPTURE_KEYS)
    system = _pairs(tables, ("TARGET_INFO_SYSTEM_ENV",), tuple(_SYSTEM_KEYS))
    version = _plain(_first(export, "EXPORT_PRODUCT_VERSION"))
    schema = _plain(_first(export, "EXPORT_SCHEMA_VERSION"))
    captured = frozenset(value for value in capture.get("CAPTURE_EVENT_TYPE", ()) if _plain(value)) or None
    mode = _plain(_first(capture, "CUDA_GRAPH_TRACE_OPTIONS:MODE"))
    metadata: dict[str, Any] = {"schema_version": schema} if schema else {}
    metadata |= {key: value for name, key in _SYSTEM_KEYS.items() if (value := _plain(_first(system, name)))}
    if captured:
        metadata["captured"] = ", ".join(sorted(captured))
    if mode:
        metadata["cuda_graph_trace"] = mode.lower()
    diagnostics, counts = _diagnostics(tables)
    normalised = (_first(export, "EXPORT_PARAM_TIME_NORMALIZE") or "").lower() == "true"
    return About(
        version=version,
        schema=schema,
        unix_zero_ns=0 if normalised else _session_start(tables),
        duration_ns=_number(tables, "ANALYSIS_DETAILS", "duration"),
        captured=captured,
        graph_mode=mode.lower() if mode else None,
        metadata=metadata,
        notes=(*_version_notes(version, schema), *_partial_notes(export), *diagnostics),
        counts=counts,
    )


def _pairs(tables: Tables, names: tuple[str, ...], keys: tuple[str, ...]) -> dict[str, list[str]]:
    """Values of some keys of the first table that exists. A key may be written for a process: ``PROCESS_0:KEY``."""
    found: dict[str, list[str]] = {}
    for table in names:
        if not tables.columns(table):
            continue
        frame = tables.read(table, (), ("name", "value")).drop_nulls()
        frame = frame.with_columns(pl.col("name").str.replace(r"^PROCESS_\d+:", ""))
        for name, value in frame.filter(pl.col("name").is_in(keys)).iter_rows():
            found.setdefault(name, []).append(value)
        break
    return found


def _first(pairs: dict[str, list[str]], key: str) -> str | None:
    return pairs[key][0] if pairs.get(key) else None


def _plain(value: str | None) -> str | None:
    """A value that is a version, a number or a word."""
    return value if value is not None and _PLAIN_VALUE.match(value) else None


def _number(tables: Tables, table: str, column: str) -> int | None:
    values = tables.read(table, (column,))[column].drop_nulls()
    return int(values[0]) if len(values) else None


def _session_start(tables: Tables) -> int | None:
    start = _number(tables, "TARGET_INFO_SESSION_START_TIME", "utcEpochNs")
    return start if start and start > 0 else None


def _version_notes(version: str | None, schema: str | None) -> list[Note]:
    if schema is None:
        return [
            Note(
                "version-unknown",
                "The export does not name its version; tables and columns were found by their names.",
            )
        ]
    major = schema.split(".")[0]
    if major.isdecimal() and int(major) in KNOWN_MAJORS:
        return []
    text = (
        f"The export has schema {schema} (Nsight Systems {version or 'of unknown version'}), which is newer than this "
        "reader: what it still knows by name was read, and meanings may have changed."
    )
    return [Note("schema-unknown", text, Trust.LIMITED)]


def _partial_notes(export: dict[str, list[str]]) -> list[Note]:
    notes = []
    if (_first(export, "EXPORT_PARAM_TABLES_TO_EXPORT") or "").strip():
        text = "Only some tables were exported (--tables): what is missing may have been recorded."
        notes.append(Note("export-partial", text, Trust.LIMITED))
    if (_first(export, "EXPORT_PARAM_TIMES_TO_EXPORT") or "").strip():
        text = "Only a part of the recording was exported (--times): launches and their work may be cut apart."
        notes.append(Note("export-partial", text, Trust.LIMITED))
    return notes


def _diagnostics(tables: Tables) -> tuple[list[Note], dict[str, Count]]:
    """Losses that the profiler itself reports. Its messages hold paths, so only what is understood is said."""
    messages = tables.read("DIAGNOSTIC_EVENT", ("severity",), ("text",))
    texts = messages["text"].drop_nulls()
    notes = []
    lost = list(dict.fromkeys(what for pattern, what in _LOSSES if texts.str.contains(f"(?i){pattern}").any()))
    if lost:
        text = f"The profiler reports that it may have lost {' and '.join(lost)}: counts and times are lower bounds."
        notes.append(Note("profiler-dropped-records", text, Trust.LIMITED))
    if texts.str.contains(_OLD_PROFILER).any():
        text = "The profiler is older than the CUDA driver; CUDA was traced with a library for an older driver."
        notes.append(Note("profiler-older-than-driver", text))
    problems = messages.filter(pl.col("severity") >= 2).height
    counts = {"profiler-warning": Count(problems)} if problems else {}
    return notes, counts


def understood(text: object) -> str:
    """Of a message of the profiler only what this reader looks for: the rest may hold paths."""
    patterns = (*(pattern for pattern, _ in _LOSSES), _OLD_PROFILER)
    found = (re.search(f"(?i){pattern}", str(text)) for pattern in patterns)
    return "; ".join(match[0] for match in found if match)


def unread_note(tables: Tables) -> Note | None:
    """What was recorded and is not imported, by table, largest first."""
    plain = t.newest(tables.names())
    rows = {name: tables.rows(name) for name in plain if is_unread(name, tables.columns(name))}
    listed = sorted(((count, name) for name, count in rows.items() if count), reverse=True)
    if not listed:
        return None
    words = ", ".join(f"{name} ({count:,} rows)" for count, name in listed[:5])
    more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
    text = f"Recorded and not imported: {words}{more}."
    if any(name in DEVICE_WORK_NOT_READ for _, name in listed):
        return Note("tables-not-read", f"{text} Some of it is device work: busy time is a lower bound.", Trust.LIMITED)
    return Note("tables-not-read", text)


_EVENT_TABLE: Final = re.compile(r"^[A-Z][A-Z0-9_]{2,60}$")
"""Nsight Systems writes names of tables of events so; whatever else is in the file belongs to somebody else."""

_DESCRIBES: Final = frozenset({"DIAGNOSTIC_EVENT", "MPI_COMMUNICATORS", "CUDA_GRAPH_EVENTS"})
"""Tables with times that describe the recording."""

DEVICE_WORK_NOT_READ: Final = frozenset(
    {"CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS", "CUPTI_ACTIVITY_KIND_CDP_KERNEL", "OPENGL_WORKLOAD", "VULKAN_WORKLOAD",
     "DX12_WORKLOAD", "D3D12_WORKLOAD"}
)  # fmt: skip
"""Tables of work that keeps a device busy and is not read."""


def is_unread(table: str, columns: Collection[str]) -> bool:
    """Whether a table holds events that are not imported: it has a time, and no reader.

    The schema has some hundred tables of events and each version adds some, so they are told by their columns.
    """
    known = table in t.EVENT_TABLES or table in _DESCRIBES or table == t.STRINGS
    return not known and _EVENT_TABLE.match(table) is not None and not {"start", "timestamp"}.isdisjoint(columns)


def missing_notes(about: About, heights: dict[str, int]) -> list[Note]:
    """What the recording does not hold and what cannot be answered without it.

    Args:
        about: Facts of the export.
        heights: Number of events by table.
    """
    work = sum(heights.get(name, 0) for name in t.WORK_TABLES)
    calls, ranges = heights.get(t.RUNTIME, 0), heights.get(t.NVTX, 0)
    traced = about.captured
    notes = []
    if not any(heights.values()):
        text = "The export describes the system and holds no event: nothing was recorded."
        return [Note("no-events", text, Trust.LIMITED)]
    if not work and calls:
        text = (
            f"{calls:,} CUDA calls are recorded and no kernel, copy or fill: the profiler did not collect them before "
            "the program or the recording ended, or none was launched."
        )
        notes.append(Note("no-device-work", text, Trust.LIMITED))
    elif not work:
        why = "CUDA was not traced" if traced is not None and "Cuda" not in traced else "no CUDA activity is recorded"
        text = f"There is no device work: {why}. Record with nsys profile --trace=cuda,nvtx."
        notes.append(Note("no-device-work", text))
    if not ranges:
        why = (
            "NVTX was not traced" if traced is not None and "NvtxEvents" not in traced else "no NVTX range is recorded"
        )
        text = (
            f"Ops and stages are unknown: {why}. Record with nsys profile --trace=cuda,nvtx "
            "--pytorch=autograd-shapes-nvtx, or mark ranges in the program."
        )
        notes.append(Note("no-ranges", text))
    return notes
