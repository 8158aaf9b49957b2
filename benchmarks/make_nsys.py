"""Write a large SQLite export in the layout of Nsight Systems, for measuring; nothing in it was recorded.

The tables and the number and order of their columns are those of exports of schema 3.25 (2026.2); the definitions are
written here from the documented schema. Eight processes use one GPU each, correlation numbers repeat between them.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KERNEL = (
    "start", "end", "deviceId", "contextId", "greenContextId", "streamId", "correlationId", "globalPid",
    "demangledName", "shortName", "mangledName", "launchType", "cacheConfig", "registersPerThread", "gridX", "gridY",
    "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory", "localMemoryPerThread",
    "localMemoryTotal", "gridId", "sharedMemoryExecuted", "graphNodeId", "sharedMemoryLimitConfig",
    "qmdBulkReleaseDone", "qmdPreexitDone", "qmdLastCtaDone", "graphId", "clusterX", "clusterY", "clusterZ",
    "clusterSchedulingPolicy", "maxPotentialClusterSize", "maxActiveClusters", "sharedMemoryRequestedPercentage",
)  # fmt: skip
MEMCPY = (
    "start", "end", "deviceId", "contextId", "greenContextId", "streamId", "correlationId", "globalPid", "bytes",
    "copyKind", "deprecatedSrcId", "srcKind", "dstKind", "srcDeviceId", "srcContextId", "dstDeviceId", "dstContextId",
    "migrationCause", "graphNodeId", "virtualAddress", "copyCount",
)  # fmt: skip
RUNTIME = (
    "start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue", "callchainId",
)  # fmt: skip
NVTX = (
    "start", "end", "eventType", "rangeId", "category", "color", "text:TEXT", "globalTid", "endGlobalTid", "textId",
    "domainId", "uint64Value", "int64Value", "doubleValue:REAL", "uint32Value", "int32Value", "floatValue:REAL",
    "jsonTextId", "jsonText:TEXT", "binaryData:TEXT",
)  # fmt: skip

CALLS = (
    "cudaLaunchKernel_v7000", "cudaLaunchKernelExC_v11060", "cuLaunchKernel", "cudaMemcpyAsync_v3020",
    "cudaEventRecord_v3020", "cudaStreamWaitEvent_v3020", "cudaStreamIsCapturing_v10000", "cudaGetDevice",
    "cudaStreamSynchronize_v3020",
)  # fmt: skip
BATCH = 250_000
VM = 1 << 48
RANKS = 8
START_NS = 35_000_000_000


def write_large(path: Path, kernels: int, seed: int = 0) -> dict[str, int]:
    """Write an export with ``kernels`` kernels, 4/3 as many calls, a quarter as many ranges; return rows by table."""
    rng = np.random.default_rng(seed)
    connection = sqlite3.connect(path)
    connection.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-200000")
    _tables(connection)
    _strings(connection, rng)

    def kernel_rows(first: int, n: int) -> dict[str, Any]:
        at = np.arange(first, first + n)
        start = START_NS + at // RANKS * 12_000 + rng.integers(0, 3000, n)
        return {
            "start": start, "end": start + rng.integers(1500, 11_000, n), "deviceId": at % RANKS, "contextId": 1,
            "streamId": np.where(rng.random(n) < 0.1, 20, 7), "correlationId": at // RANKS + 1,
            "globalPid": _pid(at), "demangledName": rng.integers(0, 1500, n),
            "shortName": 4000 + rng.integers(0, 300, n),
            "mangledName": 2000 + rng.integers(0, 1500, n), "launchType": 0, "cacheConfig": 0,
            "registersPerThread": rng.integers(16, 255, n), "gridX": rng.integers(1, 65536, n), "gridY": 1, "gridZ": 1,
            "blockX": 128, "blockY": 1, "blockZ": 1, "staticSharedMemory": 0,
            "dynamicSharedMemory": rng.integers(0, 99_999, n), "localMemoryPerThread": 0,
            "localMemoryTotal": 191_365_120, "gridId": at + 1, "sharedMemoryExecuted": 32_768,
        }  # fmt: skip

    def call_rows(first: int, n: int) -> dict[str, Any]:
        at = np.arange(first, first + n)
        start = START_NS - 20_000 + at // RANKS * 9_000 + rng.integers(0, 1000, n)
        return {
            "start": start, "end": start + rng.integers(800, 7900, n), "eventClass": rng.integers(0, 2, n),
            "globalTid": _pid(at) | (1000 + at % RANKS), "correlationId": at // RANKS + 1,
            "nameId": 5000 + np.where(rng.random(n) < 0.75, 0, rng.integers(0, len(CALLS), n)), "returnValue": 0,
        }  # fmt: skip

    def range_rows(first: int, n: int) -> dict[str, Any]:
        at = np.arange(first, first + n)
        start = START_NS - 30_000 + at // RANKS * 48_000
        inline = (rng.random(n) >= 0.5) & (at >= 5000)
        return {
            "start": start, "end": start + rng.integers(10_000, 47_000, n), "eventType": 59,
            "text": [f"aten::addmm, op_id = {k}" if one else None for k, one in zip(at, inline, strict=True)],
            "textId": [None if one else 6000 + int(k) % 200 for k, one in zip(at, inline, strict=True)],
            "globalTid": _pid(at) | (1000 + at % RANKS), "domainId": np.where(rng.random(n) < 0.2, 1, 0),
        }  # fmt: skip

    def copy_rows(first: int, n: int) -> dict[str, Any]:
        at = np.arange(first, first + n)
        start = START_NS + at // RANKS * 240_000
        return {
            "start": start, "end": start + rng.integers(1000, 90_000, n), "deviceId": at % RANKS, "contextId": 1,
            "streamId": 7, "correlationId": kernels // RANKS + 1 + at // RANKS, "globalPid": _pid(at),
            "bytes": rng.integers(1, 1 << 28, n), "copyKind": rng.choice([1, 2, 8], n),
            "srcKind": rng.choice([0, 1], n), "dstKind": 2,
        }  # fmt: skip

    rows = {
        "CUPTI_ACTIVITY_KIND_KERNEL": (kernels, kernel_rows),
        "CUPTI_ACTIVITY_KIND_RUNTIME": (kernels * 4 // 3, call_rows),
        "NVTX_EVENTS": (kernels // 4, range_rows),
        "CUPTI_ACTIVITY_KIND_MEMCPY": (kernels // 20, copy_rows),
    }
    for table, (total, make) in rows.items():
        _insert(connection, table, total, make)
    connection.commit()
    connection.close()
    return {table: total for table, (total, _) in rows.items()}


def _pid(at: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return VM | ((1000 + at % RANKS) << 24)


def _tables(connection: sqlite3.Connection) -> None:
    for table, columns in {
        "CUPTI_ACTIVITY_KIND_KERNEL": [*KERNEL, "tensorSizeMinusOneElements:TEXT"],
        "CUPTI_ACTIVITY_KIND_RUNTIME": RUNTIME,
        "NVTX_EVENTS": NVTX,
        "CUPTI_ACTIVITY_KIND_MEMCPY": MEMCPY,
        "StringIds": ["id", "value:TEXT"],
        "META_DATA_EXPORT": ["name:TEXT", "value:TEXT"],
        "TARGET_INFO_SESSION_START_TIME": ["utcEpochNs"],
    }.items():
        typed = [f'"{name}" {kind or "INTEGER"}' for name, _, kind in (one.partition(":") for one in columns)]
        connection.execute(f'CREATE TABLE "{table}" ({", ".join(typed)})')
    connection.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.25.0')")
    connection.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1780000000000000000)")


def _strings(connection: sqlite3.Connection, rng: np.random.Generator) -> None:
    functor = "at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>, std::array<char*>>"
    strings = [(i, f"void {functor}(int, T2, T3) #{i} " + "x" * int(rng.integers(20, 400))) for i in range(1500)]
    strings += [(2000 + i, f"_Z_mangled_{i}") for i in range(1500)] + [(4000 + i, f"short_{i}") for i in range(300)]
    strings += [(5000 + i, name) for i, name in enumerate(CALLS)] + [(6000 + i, f"registered {i}") for i in range(200)]
    connection.executemany("INSERT INTO StringIds VALUES (?, ?)", strings)


def _insert(connection: sqlite3.Connection, table: str, total: int, make: Callable[[int, int], dict[str, Any]]) -> None:
    for first in range(0, total, BATCH):
        n = min(BATCH, total - first)
        columns = make(first, n)
        lists = [
            value.tolist() if isinstance(value, np.ndarray) else value if isinstance(value, list) else [value] * n
            for value in columns.values()
        ]
        names = ", ".join(f'"{name}"' for name in columns)
        marks = ", ".join("?" * len(columns))
        connection.executemany(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', zip(*lists, strict=True))  # noqa: S608
