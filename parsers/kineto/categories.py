"""What a Kineto category means on the common timeline, for every vintage since 2020."""

from __future__ import annotations

import re
from typing import Final

HOST_CATEGORIES: Final[dict[str, str]] = {
    "cpu_op": "op",
    "operator": "op",  # 2020-2021: capitalised, and record_function ranges share the category
    "user_annotation": "annotation",
    "python_function": "python",
    "cuda_runtime": "api",  # ROCm files use it too, with hip* names
    "cuda_driver": "api",
    "runtime": "api",
    "hip_runtime": "api",
    "hip_driver": "api",
    "xpu_runtime": "api",
    "xpu_driver": "api",
    "mtia_runtime": "api",
    "hpu_runtime": "api",
    "privateuse1_runtime": "api",
    "privateuse1_driver": "api",
    "glow_runtime": "api",
    "overhead": "overhead",
    "cpu_instant_event": "counter",
}
"""Lower-cased category of a row on a host thread to its kind."""

DEVICE_CATEGORIES: Final[dict[str, str]] = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
    "gpu_user_annotation": "annotation",
    "cuda_sync": "sync",
    "hip_sync": "sync",
    "xpu_sync": "sync",
    "cuda_event": "other",
    "mtia_ccp_events": "other",  # refined by name, see MTIA_KINDS
    "mtia_workloadd": "other",
    "mtia_insight": "counter",
    "hpu_op": "kernel",
    "collective_comm": "collective",
    "cuda_profiler_range": "counter",  # CUPTI range profiler: counters per kernel, serialised; not a timing
    "gpu_pm_counter": "counter",
}
"""Lower-cased category of a row on a device to its kind."""

MTIA_KINDS: Final[dict[str, str]] = {
    "pe_exe": "kernel",
    "dma_request": "memcpy",
    "event_wait": "async_wait",
}
"""Command of an MTIA queue to its kind; every other command is ``other``."""

SYNC_CALL: Final = r"^(cuda|cu|hip|musa|mu|xpu|ur)\w*Synchronize(_\w+)?$"
"""Runtime and driver calls that block the host until the device is done (Polars and Python regex)."""

COMPILE_NAME: Final = r"\(dynamo_timed\)$"
"""Ranges in which torch.compile compiles."""

OLD_ANNOTATION_NAME: Final = re.compile(
    r"^(ProfilerStep\s*#\d+|Optimizer\.(step|zero_grad)#.*|enumerate\(DataLoader\)#.*|DistributedDataParallel\.forward)$"
)
"""2021 traces put record_function ranges in the category of operators; these names tell them apart."""
