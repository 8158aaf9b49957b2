"""Why a device stands idle: the causes that are told apart, and which host events stand for which.

A row of the table says that a host event of some kind whose name matches holds the host for that cause. Names were seen
in recorded traces or read in the sources named in ``source``; checked 2026-11-30.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Cause(StrEnum):
    """Why a device had nothing to run; :data:`CAUSE_DOCS` says what each means."""

    LAUNCH = "launch"
    HOST_WORK = "host-work"
    SLOW_CALL = "slow-call"
    SYNC = "sync"
    COPY_TO_HOST = "copy-to-host"
    COPY_TO_DEVICE = "copy-to-device"
    DATA_LOADING = "data-loading"
    ALLOCATOR = "allocator"
    COMPILE = "compile"
    GARBAGE_COLLECTION = "garbage-collection"
    PROFILER = "profiler"
    COLLECTIVE = "collective"
    QUEUED = "queued"
    DEVICE_WAIT = "device-wait"
    UNRELIABLE = "unreliable"
    UNKNOWN = "unknown"


CAUSE_DOCS: Final[dict[Cause, str]] = {
    Cause.LAUNCH: "The host launched work piece by piece, slower than the device ran it (Python, dispatch, latency).",
    Cause.HOST_WORK: "The host was in Python or in a CPU op that launched nothing for a while, or slept.",
    Cause.SLOW_CALL: "One runtime call took long: first use of a kernel, set-up, or a lock of the driver.",
    Cause.SYNC: "The host waited for the device (`item()`, `synchronize`), and the queue ran dry for it.",
    Cause.COPY_TO_HOST: "A copy from the device held the host.",
    Cause.COPY_TO_DEVICE: "A copy to the device held the host, e.g. while the driver stages pageable memory.",
    Cause.DATA_LOADING: "The host fetched or waited for the next batch.",
    Cause.ALLOCATOR: "The driver allocated or freed memory.",
    Cause.COMPILE: "Compilation, autotuning, graph capture, or loading of kernel code.",
    Cause.GARBAGE_COLLECTION: "Python collected garbage.",
    Cause.PROFILER: "The profiler's own work: it is gone when nothing is recorded.",
    Cause.COLLECTIVE: "The host, or work already queued, waited for other ranks.",
    Cause.QUEUED: "The next work was already launched: scheduling between two kernels, or a dependency on the device.",
    Cause.DEVICE_WAIT: "The device waited for its own asynchronous copy or collective.",
    Cause.UNRELIABLE: "A graph was replayed whose kernels are not recorded: the device may have worked.",
    Cause.UNKNOWN: "The trace does not tell; the reason is given.",
}
"""One or two lines on each cause, for the pages."""

NOT_RECOVERABLE: Final = (Cause.PROFILER, Cause.QUEUED, Cause.DEVICE_WAIT, Cause.UNRELIABLE, Cause.UNKNOWN)
"""Causes of which nothing can be promised: no change on the host is known to win the time back."""

WHOLE: Final = (Cause.COMPILE, Cause.DATA_LOADING)
"""What happens inside of these belongs to them: allocations and waits of a compiler are compilation."""

WITHIN_ALL: Final = (Cause.GARBAGE_COLLECTION, Cause.PROFILER)
"""These interrupt whatever is going on, so they count even inside of others."""

ALLOCATOR_CALLS: Final = (
    r"^(cuda|hip)(Malloc|MallocManaged|MallocPitch|Free|HostAlloc|HostFree|HostMalloc|FreeHost|MallocHost)$"
    r"|^cuMem(Create|Map|Unmap|Release|SetAccess|Alloc_v2|Free_v2)$|^hipMem(Create|Map|Unmap|Release)$"
)
"""Driver calls behind a caching allocator: what ``cudaMallocAsync`` does is stream-ordered and not among them."""

READS: Final = r"^aten::(item|_local_scalar_dense|is_nonzero)$"
"""Ops that hand a value of a tensor to Python: on a device they copy and wait."""

GRAPH_CAPTURE_CALLS: Final = r"^(cuda|cu|hip)(StreamBeginCapture|StreamEndCapture|GraphInstantiate)\w*$"

CODE_LOADING: Final = (
    r"^(Lazy Function Loading|Runtime Triggered Module Loading)$|^(cu|cuda)(Module|Library)Load\w*$|^hipModuleLoad\w*$"
)

PROFILER_FRAMES: Final = (
    r"torch/profiler/profiler\.py\(\d+\): (step|start|stop|start_trace|stop_trace|prepare_trace|_transit_action)$"
    r"|^\$?(?:\S*/)?profiler\.py:\d+ (start_trace|stop_trace|stop_and_get_fdo_profile)$"
)
"""Python functions that start, stop or advance the profiler: of torch, and of JAX (jax/_src/profiler.py)."""

DATA_WORDS: Final = r"(?i)data_?load|next_batch|get_batch|load_batch|fetch_batch|input_pipeline"


@dataclass(frozen=True, slots=True)
class HostName:
    """One row of the table.

    Attributes:
        kinds: Kinds of host events it is about.
        pattern: Regular expression on the name, for Polars and Python.
        cause: What such an event holds the host for.
        least_ns: Only events at least this long: shorter ones merely hand work over.
        source: Where the names are from.
    """

    kinds: tuple[str, ...]
    pattern: str
    cause: Cause
    source: str
    least_ns: int = 0


_ENQUEUE_NS: Final = 100_000
"""Enqueueing a collective takes some ten microseconds; a call that takes longer waits for someone."""

HOST_NAMES: Final = (
    HostName(("sync",), ".", Cause.SYNC, "schema: kind sync"),
    HostName(("op",), READS, Cause.SYNC, "pytorch aten/src/ATen/native/Scalar.cpp"),
    HostName(("api",), ALLOCATOR_CALLS, Cause.ALLOCATOR, "CUDA and HIP runtime and driver API"),
    HostName(("api",), GRAPH_CAPTURE_CALLS, Cause.COMPILE, "CUDA and HIP runtime API"),
    HostName(("api", "overhead"), CODE_LOADING, Cause.COMPILE, "recorded trace; CUDA driver API"),
    HostName(("compile",), ".", Cause.COMPILE, "schema: kind compile"),
    HostName(
        ("python",),
        r"torch/_dynamo/convert_frame\.py\(\d+\): (_compile|compile_inner)$"
        r"|triton/(compiler/compiler|runtime/autotuner)\.py\(\d+\): (compile|_bench|benchmark)$"
        r"|jax/_src/compiler\.py\(\d+\): \w*compile\w*$",
        Cause.COMPILE,
        "file and function names in the sources",
    ),
    HostName(
        ("overhead",), r"^(Activity Buffer Request|Buffer Flush|Resource|Instrumentation)", Cause.PROFILER, "Kineto"
    ),
    HostName(
        ("overhead",), r"(?i)overhead|flush|buffer|instrument|profiling|CUPTI", Cause.PROFILER, "CUPTI overhead kinds"
    ),
    HostName(
        ("python",),
        PROFILER_FRAMES,
        Cause.PROFILER,
        "pytorch torch/profiler/profiler.py; recorded trace of JAX",
    ),
    HostName(("annotation", "op"), r"^enumerate\((DataLoader|DataPipe)\)#", Cause.DATA_LOADING, "recorded trace"),
    HostName(("annotation",), DATA_WORDS, Cause.DATA_LOADING, "words users choose"),
    HostName(
        ("annotation", "python", "op"),
        r"^\[pl\]\[profile\].*(dataloader\w*next|fetching)|^Iterator(GetNext)?\b|^Iterator::",
        Cause.DATA_LOADING,
        "Lightning profiler; tf.data",
    ),
    HostName(
        ("python",),
        r"torch/utils/data/dataloader\.py\(\d+\): (__next__|_next_data|_get_data|_try_get_data)$"
        r"|torch/utils/data/_utils/fetch\.py\(\d+\): fetch$",
        Cause.DATA_LOADING,
        "pytorch torch/utils/data",
    ),
    HostName(
        ("python",),
        r"^Python GC$|^<built-in (function|method) collect\b",
        Cause.GARBAGE_COLLECTION,
        "recorded trace, torch 2.13 with record_python_gc_info",
    ),
    HostName(("annotation",), r"^(nccl|hccl|xccl|gloo|mpi|ucc):", Cause.COLLECTIVE, "recorded trace", _ENQUEUE_NS),
    HostName(
        ("op",), r"^c10d::|^_c10d_functional::|^record_param_comms$", Cause.COLLECTIVE, "recorded trace", _ENQUEUE_NS
    ),
    HostName(
        ("python",),
        r"torch/distributed/distributed_c10d\.py\(\d+\): "
        r"(barrier|monitored_barrier|recv|send|batch_isend_irecv|all_\w+|broadcast\w*|reduce\w*|gather\w*|scatter\w*)$",
        Cause.COLLECTIVE,
        "pytorch torch/distributed/distributed_c10d.py",
        _ENQUEUE_NS,
    ),
)
"""What host events stand for; of several rows that match, the first."""
