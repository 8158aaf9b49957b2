"""Write small exports in the layout of Nsight Systems by hand, for each generation of its schema.

An export is written like the program it pretends to record::

    export = Export(generation="2026")
    rank = export.process(pid=300, gpu=H100)
    with rank.range("denoise"), rank.op("aten::mm", [[64, 64], [64, 64]]):
        rank.launch("ampere_sgemm_128x64_nn", us=12.5)
    export.write_sqlite(Path("two.sqlite"))

The tables, their columns and the values of their enumerations follow the documented schema; the definitions are written
here. Nothing is measured: ``META_DATA_EXPORT`` says so under the key ``TRACEVIEW_AUTHORED``.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VM: Final = 1 << 48
AUTHORED: Final = "Written by hand, not measured."
NO_STREAM: Final = 0xFFFFFFFF

VERSION_IN_HEADER: Final = slice(96, 100)
"""Where a database says which SQLite wrote it last. It is set to zero, so that a file does not depend on that."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One row of ``TARGET_INFO_GPU``."""

    name: str
    major: int
    minor: int
    sm_count: int
    memory: int


H100: Final = Gpu("NVIDIA H100 80GB HBM3", 9, 0, 132, 85_899_345_920)
A100: Final = Gpu("NVIDIA A100-SXM4-80GB", 8, 0, 108, 84_990_623_744)


@dataclass(frozen=True, slots=True)
class Generation:
    """What one generation of the schema has. ``meta``: the table of the export's own facts, ``None``: none."""

    version: str
    schema: str
    meta: str | None
    device_table: bool
    capture_table: bool
    kernel_extra: tuple[str, ...] = ()
    nvtx_extra: tuple[str, ...] = ()
    other_extra: tuple[str, ...] = ()


GENERATIONS: Final[dict[str, Generation]] = {
    "2021": Generation("2021.3.2", "2.2.0", None, device_table=False, capture_table=False),
    "2022": Generation("2022.2.1.31", "2.9.1", "EXPORT_META_DATA", device_table=False, capture_table=False),
    "2023": Generation("2023.3.1.92", "3.4.0", "META_DATA_EXPORT", device_table=False, capture_table=True),
    "2024": Generation(
        "2024.6.2.225", "3.16.1", "META_DATA_EXPORT", device_table=False, capture_table=True,
        kernel_extra=("greenContextId",), nvtx_extra=("binaryData:TEXT",),
    ),
    "2025": Generation(
        "2025.5.2.266", "3.24.0", "META_DATA_EXPORT", device_table=True, capture_table=True,
        kernel_extra=("greenContextId", "graphId", "clusterX", "clusterY", "clusterZ"), nvtx_extra=("binaryData:TEXT",),
        other_extra=("greenContextId",),
    ),
    "2026": Generation(
        "2026.2.1.210", "3.25.0", "META_DATA_EXPORT", device_table=True, capture_table=True,
        kernel_extra=(
            "greenContextId", "graphId", "clusterX", "clusterY", "clusterZ", "tensorSizeMinusOneElements:TEXT",
        ),
        nvtx_extra=("binaryData:TEXT",), other_extra=("greenContextId",),
    ),
    "2026.4": Generation(
        "2026.4.1.1", "3.28.1", "META_DATA_EXPORT", device_table=True, capture_table=True,
        kernel_extra=("greenContextId", "graphId"), nvtx_extra=("binaryData:TEXT", "eventId:INTEGER PRIMARY KEY"),
        other_extra=("greenContextId",),
    ),
}  # fmt: skip

_PLACE: Final = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid")
COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        *_PLACE, "demangledName", "shortName", "launchType", "cacheConfig", "registersPerThread", "gridX", "gridY",
        "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory", "localMemoryPerThread",
        "localMemoryTotal", "gridId", "sharedMemoryExecuted", "graphNodeId",
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (*_PLACE, "bytes", "copyKind", "srcKind", "dstKind", "graphNodeId"),
    "CUPTI_ACTIVITY_KIND_MEMSET": (*_PLACE, "value", "bytes", "graphNodeId", "memKind"),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (*_PLACE, "syncType", "eventId"),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (*_PLACE, "graphId", "graphExecId"),
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": (
        "deviceId", "contextId", "streamId", "correlationId", "globalPid", "eventId", "timestamp",
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        "start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue", "callchainId",
    ),
    "CUPTI_ACTIVITY_KIND_OVERHEAD": (
        "start", "end", "eventClass", "globalTid", "correlationId", "nameId", "overheadType",
    ),
    "PROFILER_OVERHEAD": ("start", "end", "globalTid", "nameId", "overheadType"),
    "NVTX_EVENTS": (
        "start", "end", "eventType", "rangeId", "category", "color", "text:TEXT", "globalTid", "endGlobalTid", "textId",
        "domainId", "uint64Value", "int64Value", "doubleValue:REAL", "uint32Value", "int32Value", "floatValue:REAL",
        "jsonTextId", "jsonText:TEXT",
    ),
    "OSRT_API": ("start", "end", "eventClass", "globalTid", "nameId", "returnValue", "nestingLevel", "callchainId"),
    "CUBLAS_EVENTS": ("start", "end", "eventClass", "globalTid", "nameId"),
    "CUDNN_EVENTS": ("start", "end", "eventClass", "globalTid", "nameId"),
    "CUPTI_ACTIVITY_KIND_JIT": ("start", "end", "eventClass", "globalTid", "correlationId", "nameId", "overheadType"),
    "CUDA_HOST_CALLBACK": ("start", "end", "eventClass", "globalTid", "correlationId", "nameId"),
    "CUDA_GRAPH_NODE_EVENTS": (
        "start", "end", "eventClass", "globalTid", "nameId", "graphNodeId", "originalGraphNodeId",
    ),
    "MPI_RANKS": ("globalTid", "rank"),
    "MPI_P2P_EVENTS": (
        "start", "end", "globalTid", "textId", "commHandle", "tag", "remoteRank", "size", "requestHandle",
    ),
    "MPI_COLLECTIVES_EVENTS": (
        "start", "end", "globalTid", "textId", "commHandle", "rootRank", "size", "recvSize", "requestHandle",
    ),
    "UCP_EVENTS": ("start", "end", "globalTid", "textId"),
    "GPU_METRICS": ("rawTimestamp", "timestamp", "typeId", "metricId", "value"),
    "WDDM_QUEUE_PACKET_START_EVENTS": ("start", "context", "packetType"),
    "CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS": (*_PLACE, "sourceBytes"),
    "TARGET_INFO_CUDA_GPU": (
        "deviceId", "name:TEXT", "computeCapabilityMajor", "computeCapabilityMinor", "globalMemorySize",
        "numMultiprocessors",
    ),
    "StringIds": ("id:INTEGER NOT NULL PRIMARY KEY", "value:TEXT"),
    "ThreadNames": ("nameId", "priority", "globalTid"),
    "PROCESSES": ("globalPid", "pid", "name:TEXT"),
    "TARGET_INFO_GPU": (
        "vmId", "id", "name:TEXT", "busLocation:TEXT", "totalMemory", "smCount", "uuid:TEXT", "cuDevice",
        "computeMajor", "computeMinor",
    ),
    "TARGET_INFO_CUDA_DEVICE": ("gpuId", "cudaId", "pid", "uuid:TEXT", "numMultiprocessors"),
    "TARGET_INFO_SESSION_START_TIME": ("utcEpochNs", "utcTime:TEXT", "localTime:TEXT"),
    "TARGET_INFO_SYSTEM_ENV": ("globalVid", "devStateName:TEXT", "name:TEXT", "nameEnum", "value:TEXT"),
    "ANALYSIS_DETAILS": ("globalVid", "duration", "startTime", "stopTime"),
    "DIAGNOSTIC_EVENT": ("timestamp", "timestampType", "source", "severity", "text:TEXT", "globalPid"),
    "META_DATA_CAPTURE": ("name:TEXT", "value:TEXT"),
    "META_DATA_EXPORT": ("name:TEXT", "value:TEXT"),
    "EXPORT_META_DATA": ("name:TEXT", "value:TEXT"),
}  # fmt: skip

UNIX_START_NS: Final = 1_780_000_000_000_000_000


class Export:
    """One export in the making; tables exist once they have a row.

    Args:
        generation: A key of :data:`GENERATIONS`.
        mode: How CUDA graphs were traced, ``graph`` or ``node``.
        captured: What was traced.
    """

    def __init__(
        self, generation: str = "2026", *, mode: str = "Graph", captured: tuple[str, ...] = ("Cuda", "NvtxEvents")
    ) -> None:
        self.generation = GENERATIONS[generation]
        self.tables: dict[str, list[dict[str, Any]]] = {}
        self._strings: dict[str, int] = {}
        self._gpus: list[Gpu] = []
        self.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=UNIX_START_NS)
        self.add("ANALYSIS_DETAILS", globalVid=VM, duration=10_000_000_000, startTime=0, stopTime=10_000_000_000)
        facts = {"EXPORT_PRODUCT_VERSION": self.generation.version, "EXPORT_SCHEMA_VERSION": self.generation.schema}
        if self.generation.meta:
            for name, value in {**facts, "TRACEVIEW_AUTHORED": AUTHORED}.items():
                self.add(self.generation.meta, name=name, value=value)
        if self.generation.capture_table:
            for what in captured:
                self.add("META_DATA_CAPTURE", name="CAPTURE_EVENT_TYPE", value=what)
            self.add("META_DATA_CAPTURE", name="CUDA_GRAPH_TRACE_OPTIONS:MODE", value=mode)

    def add(self, table: str, **values: Any) -> None:
        """One row; columns that are not named are null."""
        self.tables.setdefault(table, []).append(values)

    def string(self, text: str) -> int:
        """Id of a text in ``StringIds``."""
        if text not in self._strings:
            self._strings[text] = 100 + len(self._strings)
            self.add("StringIds", id=self._strings[text], value=text)
        return self._strings[text]

    def process(self, pid: int, gpu: Gpu | None = H100, *, device: int = 0, physical: int | None = None) -> Process:
        """A process with one thread, working on one GPU under an ordinal of its own."""
        if gpu is not None:
            number = len(self._gpus) if physical is None else physical
            if number >= len(self._gpus):
                self._gpus.append(gpu)
                self.add(
                    "TARGET_INFO_GPU", vmId=VM, id=number, name=gpu.name, totalMemory=gpu.memory, smCount=gpu.sm_count,
                    cuDevice=number, computeMajor=gpu.major, computeMinor=gpu.minor,
                )  # fmt: skip
            if self.generation.device_table:
                self.add("TARGET_INFO_CUDA_DEVICE", gpuId=number, cudaId=device, pid=pid)
        self.add("PROCESSES", globalPid=VM | pid << 24, pid=pid, name="/opt/conda/bin/python3.11")
        return Process(self, pid, device)

    def columns(self, table: str) -> list[tuple[str, str]]:
        """Names and types of a table in this generation."""
        extra: tuple[str, ...] = ()
        if table == "CUPTI_ACTIVITY_KIND_KERNEL":
            extra = self.generation.kernel_extra
        elif table == "NVTX_EVENTS":
            extra = self.generation.nvtx_extra
        elif table.startswith("CUPTI_ACTIVITY_KIND_MEM"):
            extra = self.generation.other_extra
        parts = (one.partition(":") for one in (*COLUMNS[table], *extra))
        return [(name, kind or "INTEGER") for name, _, kind in parts]

    def write_sqlite(self, path: Path, *, page_bytes: int = 4096) -> Path:
        """Write the export; the same to the byte every time."""
        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA page_size={page_bytes}")
        for table, rows in self.tables.items():
            typed = self.columns(table)
            listed = ", ".join(f'"{name}" {kind}' for name, kind in typed)
            connection.execute(f'CREATE TABLE "{table}" ({listed})')
            marks = ", ".join("?" * len(typed))
            values = [[row.get(name) for name, _ in typed] for row in rows]
            connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', values)  # noqa: S608
        connection.commit()
        connection.close()
        data = bytearray(path.read_bytes())
        data[VERSION_IN_HEADER] = bytes(4)
        path.write_bytes(data)
        return path

    def write_folder(self, path: Path, kind: str) -> Path:
        """Write one file per table, ``kind`` ``"parquet"``, ``"arrow"`` or ``"stream"``."""
        import polars as pl

        dtypes = {"INTEGER": pl.Int64, "TEXT": pl.String, "REAL": pl.Float64}
        path.mkdir(parents=True, exist_ok=True)
        for table, rows in self.tables.items():
            frame = pl.DataFrame(
                {
                    name: pl.Series(name, [row.get(name) for row in rows], dtype=dtypes[sql.split()[0]])
                    for name, sql in self.columns(table)
                }
            )
            if kind == "parquet":
                frame.write_parquet(path / f"{table}.parquet")
            elif kind == "arrow":
                frame.write_ipc(path / f"{table}.arrow")
            else:
                frame.write_ipc_stream(path / f"{table}.arrows")
        return path


@dataclass(slots=True)
class Process:
    """One process of an export. Its clock only moves by what it does, ns of the session."""

    export: Export
    pid: int
    device: int
    tid: int = 0
    now: int = 1_000_000_000
    correlation: int = 0
    device_free: dict[int, int] = field(default_factory=dict)
    op_id: int = 0

    def __post_init__(self) -> None:
        self.tid = self.tid or self.pid

    @property
    def global_pid(self) -> int:
        """Packed id of the process."""
        return VM | self.pid << 24

    @property
    def global_tid(self) -> int:
        """Packed id of its thread."""
        return self.global_pid | self.tid

    def wait(self, us: float) -> None:
        """Let time pass."""
        self.now += round(us * 1000)

    def call(self, name: str, us: float = 4.0, *, event_class: int = 0, backtrace: bool = False) -> int:
        """A runtime or driver call; return its correlation."""
        self.correlation += 1
        start, self.now = self.now, self.now + round(us * 1000)
        row = {
            "start": start, "end": self.now, "globalTid": self.global_tid, "correlationId": self.correlation,
            "returnValue": 0,
        }  # fmt: skip
        self.export.add("CUPTI_ACTIVITY_KIND_RUNTIME", **row, eventClass=event_class, nameId=self.export.string(name))
        if backtrace:
            plain = self.export.string(name.split("_v", maxsplit=1)[0])
            self.export.add("CUPTI_ACTIVITY_KIND_RUNTIME", **row, eventClass=67, nameId=plain, callchainId=1)
        return self.correlation

    def work(self, table: str, us: float, correlation: int, *, stream: int = 7, **more: Any) -> tuple[int, int]:
        """Device work after what its stream does already; return its start and end."""
        start = max(self.now + 2_000, self.device_free.get(stream, 0))
        end = start + round(us * 1000)
        self.device_free[stream] = end
        self.export.add(
            table, start=start, end=end, deviceId=self.device, contextId=1, streamId=stream, correlationId=correlation,
            globalPid=self.global_pid, **more,
        )  # fmt: skip
        return start, end

    def kernel(self, name: str, us: float, correlation: int, *, stream: int = 7, **more: Any) -> tuple[int, int]:
        """A kernel that some call launched."""
        text = self.export.string
        facts = {"registersPerThread": 32, "gridX": 8, "gridY": 2, "gridZ": 1, "blockX": 128, "blockY": 1, "blockZ": 1,
                 "staticSharedMemory": 1024, "dynamicSharedMemory": 512, "localMemoryPerThread": 0, **more}  # fmt: skip
        return self.work(
            "CUPTI_ACTIVITY_KIND_KERNEL", us, correlation, stream=stream, demangledName=text(name),
            shortName=text(name.split("<", maxsplit=1)[0].rsplit("::", maxsplit=1)[-1]), **facts,
        )  # fmt: skip

    def launch(self, name: str, us: float = 10.0, *, stream: int = 7, backtrace: bool = False) -> tuple[int, int]:
        """A kernel and the call that launches it."""
        return self.kernel(name, us, self.call("cudaLaunchKernel_v7000", backtrace=backtrace), stream=stream)

    def copy(self, us: float, *, kind: int = 1, source: int = 0, target: int = 2, size: int = 4096) -> tuple[int, int]:
        """A copy and its call."""
        correlation = self.call("cudaMemcpyAsync_v3020")
        return self.work(
            "CUPTI_ACTIVITY_KIND_MEMCPY", us, correlation, bytes=size, copyKind=kind, srcKind=source, dstKind=target
        )

    def synchronize(self, *, stream: int = 7) -> None:
        """Wait until a stream is done."""
        start = self.now
        self.now = max(self.now, self.device_free.get(stream, 0)) + 1_000
        self.correlation += 1
        self.export.add(
            "CUPTI_ACTIVITY_KIND_RUNTIME", start=start, end=self.now, eventClass=0, globalTid=self.global_tid,
            correlationId=self.correlation, nameId=self.export.string("cudaStreamSynchronize_v3020"), returnValue=0,
        )  # fmt: skip
        self.export.add(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", start=start, end=self.now, deviceId=self.device, contextId=1,
            streamId=stream, correlationId=self.correlation, globalPid=self.global_pid, syncType=3, eventId=NO_STREAM,
        )  # fmt: skip

    @contextmanager
    def range(self, text: str, *, event_type: int = 59, registered: bool = False, domain: int = 0) -> Iterator[None]:
        """An NVTX range around what happens inside."""
        start = self.now
        self.wait(1)
        yield
        self.wait(1)
        named = {"textId": self.export.string(text)} if registered else {"text": text}
        self.export.add(
            "NVTX_EVENTS", start=start, end=self.now, eventType=event_type, globalTid=self.global_tid, domainId=domain,
            **named,
        )  # fmt: skip

    @contextmanager
    def op(self, name: str, sizes: list[list[int]] | None = None, *, seq: int | None = None) -> Iterator[None]:
        """An operator as ``emit_nvtx`` marks it."""
        self.op_id += 1
        text = name + (f", seq = {seq}" if seq is not None else "") + f", op_id = {self.op_id}"
        text += f", sizes = {sizes}, input_op_ids = [(1,0)]" if sizes is not None else ""
        with self.range(text):
            yield
