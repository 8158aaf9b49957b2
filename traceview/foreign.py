"""Files that are not traces traceview reads: what each one is, how it is recognised, and what to do with it.

People point a trace tool at whatever their profiler left behind. Each kind here is told by its content,
never by its name, and answered with the next step.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from traceview.errors import UnreadableTraceError
from traceview.sqlite_header import MAGIC, missing_size
from traceview.wire import looks_like_perfetto, looks_like_xplane, was_stored_as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from traceview.formats import Probe


@dataclass(frozen=True, slots=True)
class Foreign:
    """One kind of file.

    Attributes:
        id: Stable identifier, the ``code`` of the error.
        title: What it is, to follow "this is".
        matches: Whether a file is of this kind.
        next_step: What to do, one or two sentences.
        format: Id of the parser that would read it; if one of that name is installed, it decides.
        then: Id of the parser that ``next_step`` needs; if it is not installed the answer says so.
    """

    id: str
    title: str
    matches: Callable[[Probe], bool]
    next_step: str
    format: str = ""
    then: str = ""


def identify(probe: Probe) -> Foreign | None:
    """The kind of file, if it has the mark of one of :data:`KINDS`."""
    return next((kind for kind in KINDS if kind.matches(probe)), None)


def fallback(probe: Probe) -> Foreign:
    """What to call a file that neither a parser nor :data:`KINDS` knows."""
    return next(kind for kind in FALLBACKS if kind.matches(probe))


def refusal(probe: Probe, kind: Foreign, readable: Collection[str]) -> UnreadableTraceError:
    """The error for a file of a kind that cannot be read.

    Args:
        probe: The file.
        kind: What it is.
        readable: Ids of the installed parsers.
    """
    title = kind.title
    if probe.compression and probe.compression not in title:
        title = f"{title}, packed with {probe.compression}"
    step = kind.next_step
    if kind.then and kind.then not in readable:
        step += f" This version of traceview cannot read that form ({kind.then}) yet."
    return UnreadableTraceError(kind.id, where=str(probe.path), why=f"this is {title}.", next_step=step)


def _starts(*magics: bytes) -> Callable[[Probe], bool]:
    return lambda probe: probe.text.startswith(magics)


def _json(probe: Probe) -> bytes:
    """The first character of JSON text: ``{``, ``[`` or nothing."""
    first = probe.text.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return first if first in (b"{", b"[") else b""


def _json_with(pattern: bytes, *, without: bytes = b"") -> Callable[[Probe], bool]:
    wanted = re.compile(pattern)
    # Long metadata may push what a file must not hold beyond its head.
    return lambda probe: bool(_json(probe) and wanted.search(probe.text) and not (without and probe.holds(without)))


def _has_trace_events(probe: Probe) -> bool:
    # Long metadata may stand before them.
    return _json(probe) == b"{" and probe.holds(b'"traceEvents"')


def _is_ascend(probe: Probe) -> bool:
    marks = (b'"Ascend Hardware"', b'"CANN"')
    if not _json(probe):
        return False
    if any(mark in probe.text for mark in marks):
        return True
    # msprof writes a bare list and names its processes only after hundreds of kilobytes of events.
    return _json(probe) == b"[" and b'"ph"' in probe.text and probe.holds(*marks)


def _is_pickle(probe: Probe) -> bool:
    return len(probe.text) > 2 and probe.text[0] == 0x80 and probe.text[1] in range(2, 6)


def _pickle_with(*marks: bytes) -> Callable[[Probe], bool]:
    return lambda probe: _is_pickle(probe) and any(mark in probe.text for mark in marks)


def _sqlite_tables(probe: Probe) -> frozenset[str]:
    """Table names of an SQLite file; empty if it is none or is damaged."""
    if not probe.head.startswith(MAGIC):
        return frozenset()
    import sqlite3
    from urllib.parse import quote

    try:
        # immutable: a trace on a read-only mount opens too, and no journal file is left beside it.
        database = sqlite3.connect(f"file:{quote(os.fsencode(probe.path.resolve()))}?mode=ro&immutable=1", uri=True)
        try:
            database.execute("PRAGMA trusted_schema=OFF")
            return frozenset(name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type='table'"))
        finally:
            database.close()
    except (sqlite3.Error, UnicodeDecodeError):  # SQLite quotes damaged text in its messages
        return frozenset()


def _sqlite_with(pattern: str) -> Callable[[Probe], bool]:
    wanted = re.compile(pattern)
    return lambda probe: any(wanted.match(name) for name in _sqlite_tables(probe))


def _is_nsys(tables: frozenset[str]) -> bool:
    """Tables of Nsight Systems. Exports of 2021 have no table about themselves, and ``StringIds`` is a common name."""
    return any(_NSYS_TABLES.match(name) for name in tables) or (
        "StringIds" in tables and any(_NSYS_EVENTS.match(name) for name in tables)
    )


def _is_tar(probe: Probe) -> bool:
    return probe.text[257:262] == b"ustar"


def _is_torch_trace_log(probe: Probe) -> bool:
    return bool(re.match(rb"[VIWE]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ \S+\] \{", probe.text))


def _is_html(probe: Probe) -> bool:
    start = probe.text[:4096].lower()
    return start.lstrip().startswith((b"<!doctype", b"<!--", b"<html")) and b"<html" in start


def _is_text(probe: Probe) -> bool:
    return b"\x00" not in probe.text and not re.search(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]", probe.text[:4096])


_RECORD: Final = (
    'traceview reads traces of the PyTorch profiler (prof.export_chrome_trace("trace.json.gz")), of Nsight Systems '
    "(nsys profile; nsys export --type sqlite) and of XProf (jax.profiler.trace: *.xplane.pb). To record one: "
    "traceview capture --help."
)
_NSYS_TABLES: Final = re.compile(r"(TARGET_INFO_SYSTEM_ENV|META_DATA_CAPTURE|META_DATA_EXPORT|EXPORT_META_DATA)$")
_NSYS_EVENTS: Final = re.compile(r"CUPTI_ACTIVITY_KIND_\w+$|NVTX_EVENTS$|OSRT_API$")

KINDS: Final = (
    Foreign(
        "nsys-report",
        "a raw Nsight Systems report",
        _starts(b"NVIDIA Tegra Profiler Report"),
        "Export it to SQLite first: nsys export --type sqlite FILE.",
        format="nsys",
        then="nsys",
    ),
    Foreign(
        "rocpd",
        "a ROCm profiler database (rocpd)",
        _sqlite_with(r"rocpd_"),
        f"traceview has no reader for it. {_RECORD}",
        format="rocpd",
    ),
    Foreign(
        "nsys-sqlite",
        "an Nsight Systems SQLite export",
        lambda probe: _is_nsys(_sqlite_tables(probe)),
        "The reader for it is not installed; install traceview again.",
        format="nsys",
    ),
    Foreign(
        "nvprof",
        "an nvprof database",
        _sqlite_with(r"CUPTI_ACTIVITY_KIND_"),
        f"traceview has no reader for it. {_RECORD}",
    ),
    Foreign(
        "sqlite-cut",
        "an SQLite database that ends before its own end (an unfinished or interrupted export or copy)",
        lambda probe: missing_size(probe.head, probe.size) is not None,
        "If it should be an Nsight Systems export, export it again: nsys export --type sqlite FILE.",
    ),
    Foreign(
        "zeroed",
        "a file whose head is nothing but zeros: an interrupted export or copy",
        lambda probe: not any(probe.head[:512]),
        "Export, record or copy it again.",
    ),
    Foreign(
        "sqlite-packed",
        "an SQLite database packed with gzip",
        lambda probe: bool(probe.compression) and probe.text.startswith(MAGIC),
        "Unpack it first (gunzip): a database is read here and there, not from front to back.",
    ),
    Foreign(
        "sqlite",
        "an SQLite database without profiler tables, or a damaged one",
        _starts(MAGIC),
        "If it should be an Nsight Systems export, export it again: nsys export --type sqlite FILE.",
    ),
    Foreign(
        "xplane-as-text",
        "an XProf XSpace file (xplane.pb) whose bytes were replaced when it was stored or copied as text",
        was_stored_as_text,
        "The data is gone; copy the original file again in binary mode.",
    ),
    Foreign(
        "xplane",
        "an XProf XSpace file (xplane.pb of TensorFlow, JAX or libtpu)",
        looks_like_xplane,
        "This installation lacks the parser for it; install traceview again.",
        format="xprof",
    ),
    Foreign(
        "perfetto",
        "a Perfetto trace (protobuf)",
        looks_like_perfetto,
        "traceview reads profiler traces, not Perfetto's own; open it at https://ui.perfetto.dev.",
        format="perfetto",
    ),
    Foreign(
        "xprof-json",
        "an XProf trace viewer file (trace.json of TensorFlow or JAX)",
        _json_with(rb'"/(device:[A-Za-z_ ]+:\d+|host:(CPU|metadata))'),
        "This installation lacks the parser for it; install traceview again.",
        format="xprof",
    ),
    Foreign(
        "tensorflow-timeline",
        "a TensorFlow timeline (Chrome trace)",
        _json_with(rb'"/job:\w+/(replica|task):'),
        "traceview does not read traces of TensorFlow sessions.",
    ),
    Foreign(
        "ascend",
        "a trace of the Ascend profiler (msprof)",
        _is_ascend,
        "traceview has no reader for Ascend devices; open it with MindStudio Insight.",
        format="ascend",
    ),
    Foreign(
        "execution-trace",
        "a PyTorch execution trace: the graph of operators, without any time",
        _json_with(rb'"op_schema"|\[pytorch\|profiler\|execution_trace', without=b'"traceEvents"'),
        "Give the profiler trace of the same run (prof.export_chrome_trace).",
    ),
    Foreign(
        "nccl-flight-recorder",
        "a dump of the NCCL flight recorder",
        lambda probe: bool(
            _pickle_with(b"pg_config", b"nccl_version", b"comm_lib_version")(probe)
            or _json_with(rb'"(pg_config|nccl_comm_state|comm_lib_version)"', without=b'"traceEvents"')(probe)
        ),
        "It shows which collective hangs, not where time goes; read it with torchfrtrace.",
    ),
    Foreign(
        "memory-snapshot",
        "a PyTorch memory snapshot",
        _pickle_with(b"segments", b"device_traces"),
        "It holds allocations, not kernels; open it at https://pytorch.org/memory_viz.",
    ),
    Foreign(
        "pickle",
        "a Python pickle",
        _is_pickle,
        f"traceview never unpickles files, because that runs code from them. {_RECORD}",
    ),
    Foreign(
        "torch-trace-log",
        "a structured compile log (TORCH_TRACE)",
        _is_torch_trace_log,
        "It shows what was compiled, not what ran; read it with tlparse.",
    ),
    Foreign(
        "capture-sidecar",
        "what traceview.capture wrote beside a trace",
        _json_with(rb'"traceview\.capture/\d', without=b'"traceEvents"'),
        "It is read together with the trace: give the trace beside it.",
    ),
    Foreign(
        "speedscope",
        "a speedscope profile",
        _json_with(rb"speedscope\.app/file-format-schema"),
        f"It holds call stacks, not kernels; open it at https://www.speedscope.app. {_RECORD}",
    ),
    Foreign(
        "viztracer",
        "a VizTracer trace",
        _json_with(rb'"viztracer_metadata"'),
        f"It holds Python calls, not kernels; open it with vizviewer. {_RECORD}",
    ),
    Foreign(
        "devtools",
        "a trace of the Chrome browser",
        _json_with(rb'"(disabled-by-default-)?devtools\.timeline|"source"\s*:\s*"DevTools"'),
        f"traceview reads traces of GPU and TPU programs. {_RECORD}",
    ),
    Foreign(
        "html",
        "an HTML page",
        _is_html,
        "A download link may have returned a login or error page; download the file itself.",
    ),
    Foreign("zip", "a zip archive", _starts(b"PK\x03\x04", b"PK\x05\x06"), "Unpack it and give the trace inside."),
    Foreign("tar", "a tar archive", _is_tar, "Unpack it and give the trace inside."),
    Foreign(
        "double-gzip",
        "a file packed with gzip twice",
        lambda probe: bool(probe.compression) and probe.text.startswith(b"\x1f\x8b"),
        "Unpack it once: gunzip FILE.",
    ),
    Foreign("zstd", "a file packed with zstd", _starts(b"\x28\xb5\x2f\xfd"), "Unpack it first: zstd -d FILE."),
    Foreign("bzip2", "a file packed with bzip2", _starts(b"BZh"), "Unpack it first: bunzip2 FILE."),
    Foreign("xz", "a file packed with xz", _starts(b"\xfd7zXZ\x00"), "Unpack it first: unxz FILE."),
    Foreign(
        "tensorboard-events",
        "a TensorBoard event file",
        lambda probe: b"brain.Event:" in probe.text[:64],
        "The profile lies beside it, below plugins/profile/.",
    ),
    Foreign(
        "git-lfs-pointer",
        "a Git LFS pointer, not the file it stands for",
        _starts(b"version https://git-lfs.github.com/spec/"),
        "Fetch the file: git lfs pull.",
    ),
)
"""Kinds with a mark of their own, the more special first."""

FALLBACKS: Final = (
    Foreign(
        "chrome-trace",
        "a Chrome trace, but not one of the PyTorch profiler",
        lambda probe: _has_trace_events(probe) or (_json(probe) == b"[" and b'"ph"' in probe.text),
        f"traceview does not know what its events mean. {_RECORD}",
    ),
    Foreign(
        "json-without-events",
        "JSON, but not a trace: nothing in it is called traceEvents",
        lambda probe: bool(_json(probe)),
        _RECORD,
    ),
    Foreign("text", "text, not a trace", _is_text, _RECORD),
    Foreign("binary", "a binary file of a kind traceview does not know", lambda _: True, _RECORD),
)
"""What to say when nothing else fits; the last one always does."""
