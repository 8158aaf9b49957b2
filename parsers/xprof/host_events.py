"""What the events of host threads mean, by name.

Source: names of TraceMe in jax 0.10.2, jaxlib and libtpu as recorded in real profiles, and
tsl/profiler/utils/xplane_schema.cc. They are renamed about once a year, so several spellings stand side by side.
"""

from __future__ import annotations

import re
from typing import Final

COMPILE: Final = re.compile(
    r"^(backend_compile(_and_load)?|trace_to_jaxpr\w*|lower_sharding_computation|lower_jaxpr\w*|jaxpr_to_mlir\w*"
    r"|XlaCompile\w*(:.*)?|Xla(Autotune|EmitGpuAsm|OptForModule)\w*(:.*)?"
    r"|(PjRt|Tfrt)\w*Client::(Compile\w*|Load\w*Executable)|PjRtCApiClient::CompileAndLoad.*|PJRT_Client_Compile.*"
    r"|CpuCompiler::\w+|GpuCompiler::\w+|NVPTXCompiler::\w+|AMDGPUCompiler::\w+|XLA::TPU\b.*|LoadProgramCacheMiss"
    r"|Phase \d+ .*|LSRAv2\b.*)"
)
"""Spans of compilation. The passes within them have no pattern of their own: their threads tell, see COMPILE_THREAD."""

COMPILE_THREAD: Final = re.compile(
    r"^(tf_)?(PjRtCompilerThreadPool|xla-?(cpu|gpu)-(codegen|llvm)\w*|xla_compil\w*|pjrt_compil\w*)"
)
"""Threads that do nothing but compile."""

SYNC: Final = re.compile(
    r"^(np\.asarray\(jax\.Array\)|\w*[Bb]lock_?[Uu]ntil_?([Rr]eady|[Dd]one)\w*|\w+::(Await|BlockHostUntilDone|ToLiteral)\w*"
    r"|ThunkExecutor::Execute \(wait for completion\)|ReadSyncFlag|Wait for \w+ holds|(cuda|hip|cu)\w*Synchronize\w*"
    r"|(cuda|hip|cu)(Event|Stream)Query)$"
)
"""The host waits, or asks whether it must."""

TRANSFER: Final = re.compile(
    r"^(DevicePut(WithSharding)?|tpu::System::Transfer(To|From)Device|TransferLiteral(To|From)Device\w*"
    r"|TransferTo(Infeed|Device)|TransferFrom(Outfeed|Device)|Memcpy[HD]2[HD])$"
)
"""Copies between host and device as the host sees them, one event each; the parts of a copy have other names."""

OP: Final = re.compile(r"^PjitFunction\(")
"""A call of a compiled function."""

LAUNCH: Final = re.compile(
    r"^((Common|Tfrt|PjRt|PJRT_)\w*Execut\w*(::\w+)?( .*)?|PJRT_LoadedExecutable_Execute.*|GpuExecutable::ExecuteThunks"
    r"|ThunkExecutor::Execute|DoEnqueueProgram|EnqueueContinuationProgram|tpu::System::Execute.*|Scheduled \w+::Execute"
    r"|ExecuteReplicated\.__call__|Launch\w*|H2D Dispatch|D2H Dispatch|PCIe/Memcpy Dispatch|shard_args|ParseArguments)$"
)
"""Calls of the run time on the way to the device."""

MEMORY: Final = re.compile(r"^Memory(Allocation|Deallocation)$")
"""Instants of the allocator's accounts."""

PYTHON_THREAD: Final = re.compile(r"^(python\d*|main|MainThread|Thread-\d+.*)$", re.IGNORECASE)
"""Threads on which users' own ranges are."""

_INTERNAL: Final = re.compile(
    r"::|=>|^ThreadpoolListener|^\w*(Impl|Client|Executable)\.\w+$"
    r"|^(Handle|Wait for|Allocate|Acquire|Release|Resolve|Build|Complete|Collect|Record|Load"
    r"|Make|Map|Then|Copy|Transpose|Delineari[sz]e|Lineari[sz]e|Xla|Executor|Function|Compute|Thunks?|Process|Prepare|Schedule)"
    r"|^BatchedCopyToDevice|^batched_copy_array_to_devices|^copy_to_host_async$|^pickle_util\.\w+$"
    r"|XLA GPU module$|^cpp_pjit|^[a-z0-9]+([-_][a-z0-9]+)+ \(|^(dce|cse|algsimp|DCE|CSE)$"
)
"""Names that the run time and the compiler give to their own ranges."""


def kind_of(name: str, thread: str) -> str:
    """Event kind of a host event.

    A range whose name nobody knows is the user's own on a Python thread, and unknown on any other.

    Args:
        name: As recorded.
        thread: Name of its thread, without the number.
    """
    if name.startswith("$"):
        return "python"
    for pattern, kind in ((OP, "op"), (COMPILE, "compile"), (SYNC, "sync"), (TRANSFER, "memcpy"), (MEMORY, "counter")):
        if pattern.match(name):
            return kind
    if COMPILE_THREAD.match(thread) and not name.startswith("ThreadpoolListener"):
        return "compile"
    if LAUNCH.match(name):
        return "api"
    if _INTERNAL.search(name) or not name:
        return "other"
    return "annotation" if PYTHON_THREAD.match(thread) else "other"
