"""The column contract of every public frame: name, dtype, unit and meaning, one line each.

A frame that a parser or an analysis hands on is described here and nowhere else. ``docs/schema.md``
is generated from this module, and :meth:`FrameSchema.validate` is what the tests hold frames to.

All times are int64 nanoseconds counted from the trace's own origin (the start of its first event);
:attr:`traceview.timeline.RunInfo.origin_unix_ns` turns them into Unix time when the file knows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from polars.datatypes import DataTypeClass

SCHEMA_VERSION: Final = 1
"""Raised when a column changes its meaning or disappears; new columns do not raise it."""

HOST_KINDS: Final = ("op", "api", "sync", "annotation", "python", "compile", "overhead")
"""Kinds of events that happen on a CPU thread."""

BUSY_KINDS: Final = ("kernel", "memcpy", "memset", "collective", "xla_op", "graph")
"""Kinds that occupy a device. Waits, syncs, annotations and module spans are never busy."""

KINDS: Final = (
    *HOST_KINDS,
    "kernel",
    "memcpy",
    "memset",
    "collective",
    "xla_op",
    "xla_module",
    "async_wait",
    "graph",
    "counter",
    "other",
)
"""The closed list of event kinds, the same for every source format."""

KIND_DOCS: Final[dict[str, str]] = {
    "op": "a framework operator on the host (`aten::mm`, a custom op, an autograd node)",
    "api": "a runtime or driver call (`cudaLaunchKernel`, `hipMemcpyAsync`, `cuLaunchKernelEx`)",
    "sync": "a wait: host calls that block, and device rows that record a wait; never busy",
    "annotation": "a named range set by user or framework; on a device row, its projection; never busy",
    "python": "a Python function call",
    "compile": "compilation: dynamo, inductor, XLA, autotuning",
    "overhead": "the profiler's own cost (buffer flush, lazy loading)",
    "kernel": "a compute kernel on a device",
    "memcpy": "a copy by a copy engine or copy kernel of the driver",
    "memset": "a memory fill by the driver",
    "collective": "communication between devices (NCCL, RCCL, custom all-reduce)",
    "xla_op": "one XLA op on a device",
    "xla_module": "one run of a compiled XLA module; spans its ops, never busy by itself",
    "async_wait": (
        "a device waiting for its own asynchronous copy or collective, or for the host (infeed, outfeed); never busy"
    ),
    "graph": "a graph launch recorded as one opaque block of device work",
    "counter": "a sampled value or an instant of memory accounting",
    "other": "anything else the file holds",
}
"""One line on each kind, for the schema page."""

Kind: Final = pl.Enum(KINDS)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its dtype, unit (``""`` if it has none) and meaning. ``nullable`` says whether null is a value."""

    name: str
    dtype: pl.DataType | DataTypeClass
    unit: str
    doc: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class FrameSchema:
    """The contract of one frame."""

    name: str
    doc: str
    columns: tuple[Column, ...]

    @property
    def dtypes(self) -> dict[str, pl.DataType | DataTypeClass]:
        """Column name to Polars dtype, in order."""
        return {column.name: column.dtype for column in self.columns}

    def empty(self) -> pl.DataFrame:
        """A frame of this shape without rows."""
        return pl.DataFrame(schema=self.dtypes)

    def validate(self, frame: pl.DataFrame) -> None:
        """Check that ``frame`` keeps the contract.

        Raises:
            ValueError: names each column that is missing, unknown, of the wrong dtype or wrongly null.
        """
        problems = list(self._problems(frame))
        if problems:
            raise ValueError(f"frame {self.name!r} breaks its contract: " + "; ".join(problems))

    def _problems(self, frame: pl.DataFrame) -> Iterable[str]:
        have = frame.schema
        for column in self.columns:
            if column.name not in have:
                yield f"column {column.name!r} is missing"
            elif have[column.name] != column.dtype:
                yield f"column {column.name!r} is {have[column.name]}, not {column.dtype}"
            elif not column.nullable and frame[column.name].null_count():
                yield f"column {column.name!r} holds nulls"
        for name in have:
            if name not in self.dtypes:
                yield f"column {name!r} is not in the contract"


EVENTS: Final = FrameSchema(
    "events",
    "Everything that happened, one row per event, sorted by `start_ns` (ties: longer first).",
    (
        Column("id", pl.UInt32, "", "row number, equal to the row's position in the sorted frame"),
        Column("start_ns", pl.Int64, "ns", "start, counted from the trace's own origin"),
        Column("dur_ns", pl.Int64, "ns", "duration; 0 for instants, never negative"),
        Column("kind", Kind, "", "what sort of event this is, one closed list for all formats"),
        Column("name", pl.Categorical, "", "name as the file has it (demangled kernel name, op name, …)"),
        Column("process", pl.UInt32, "", "key into `processes`", nullable=True),
        Column("thread", pl.UInt32, "", "host rows: key into `threads`; null on device rows", nullable=True),
        Column("device", pl.UInt32, "", "device rows: key into `devices`; null on host rows", nullable=True),
        Column("stream", pl.Int64, "", "device rows: stream, queue or line number", nullable=True),
        Column("correlation", pl.Int64, "", "launch to device-work key, only unique within a process", nullable=True),
        Column("launch_id", pl.UInt32, "", "device rows: id of the host call that launched it", nullable=True),
        Column("op_id", pl.UInt32, "", "innermost host `op` that encloses it (device rows: its launch)", nullable=True),
        Column("parent_id", pl.UInt32, "", "host rows: id of the closest enclosing event of its thread", nullable=True),
        Column("step", pl.Int32, "", "number of the profiler step it belongs to", nullable=True),
        Column("stage", pl.Categorical, "", "stage name, once a stage analysis has set it", nullable=True),
        Column("bytes", pl.Int64, "B", "bytes moved or allocated, when recorded", nullable=True),
        Column("flops", pl.Int64, "FLOP", "floating-point operations, when recorded", nullable=True),
        Column("inputs", pl.UInt32, "", "key into `inputs`, when shapes were recorded", nullable=True),
    ),
)

PROCESSES: Final = FrameSchema(
    "processes",
    "One row per recorded process. Several ranks or files never share a row.",
    (
        Column("process", pl.UInt32, "", "key"),
        Column("run", pl.UInt32, "", "index into `Timeline.runs`"),
        Column("pid", pl.Int64, "", "process id as recorded", nullable=True),
        Column("name", pl.String, "", "process name as recorded", nullable=True),
        Column("rank", pl.Int64, "", "distributed rank, when recorded", nullable=True),
    ),
)

THREADS: Final = FrameSchema(
    "threads",
    "One row per host thread.",
    (
        Column("thread", pl.UInt32, "", "key"),
        Column("process", pl.UInt32, "", "key into `processes`"),
        Column("tid", pl.Int64, "", "thread id as recorded; null if the file only has a label", nullable=True),
        Column("name", pl.String, "", "thread name or label as recorded", nullable=True),
    ),
)

DEVICES: Final = FrameSchema(
    "devices",
    "One row per device and run: the same ordinal in two files is two devices.",
    (
        Column("device", pl.UInt32, "", "key"),
        Column("run", pl.UInt32, "", "index into `Timeline.runs`"),
        Column("ordinal", pl.Int64, "", "device number as the file has it"),
        Column("name", pl.String, "", "product name, when recorded and not empty", nullable=True),
        Column("vendor", pl.String, "", "`nvidia`, `amd`, `google`, `meta`, `intel`, … when known", nullable=True),
        Column("compute_major", pl.Int32, "", "compute capability, major (AMD: gfx major)", nullable=True),
        Column("compute_minor", pl.Int32, "", "compute capability, minor", nullable=True),
        Column("memory_bytes", pl.Int64, "B", "device memory", nullable=True),
        Column("sm_count", pl.Int32, "", "multiprocessors or compute units", nullable=True),
    ),
)

INPUTS: Final = FrameSchema(
    "inputs",
    "The distinct input signatures of ops. Each field is compact JSON text; null: not recorded.",
    (
        Column("inputs", pl.UInt32, "", "key"),
        Column("dims", pl.String, "", "list of dimension lists, one per argument", nullable=True),
        Column("dtypes", pl.String, "", "list of dtype names, one per argument", nullable=True),
        Column("strides", pl.String, "elements", "list of stride lists, one per argument", nullable=True),
        Column("concrete", pl.String, "", "list of scalar argument values", nullable=True),
    ),
)

INT_DETAIL: Final = FrameSchema(
    "detail (integer)",
    "A rare argument that is an integer: `Timeline.details[key]`.",
    (
        Column("id", pl.UInt32, "", "event id"),
        Column("value", pl.Int64, "", "value as recorded"),
    ),
)

TEXT_DETAIL: Final = FrameSchema(
    "detail (JSON text)",
    "A rare argument that is anything else, as the JSON text in the file (strings with their quotes).",
    (
        Column("id", pl.UInt32, "", "event id"),
        Column("value", pl.Categorical, "", "JSON text as recorded"),
    ),
)

FRAMES: Final = (EVENTS, PROCESSES, THREADS, DEVICES, INPUTS, INT_DETAIL, TEXT_DETAIL)
"""The frames of a :class:`traceview.timeline.Timeline`, in the order of the schema page."""
